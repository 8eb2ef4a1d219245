"""NodeIdentity: every name by which a series may mean a node."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from scheduler.model.objects import Node

_HOSTNAME_LABEL = "kubernetes.io/hostname"


class NodeIdentity(msgspec.Struct, frozen=True):
    """The nodes of one moment; columns are exchanged in the order of `names`.

    `aliases` maps node names, addresses, the hostname label and provider names to an index of `names`;
    what could mean two nodes is left out. `generation` grows with every change.
    """

    generation: int = 0
    names: tuple[str, ...] = ()
    aliases: dict[str, int] = {}

    @classmethod
    def of(cls, generation: int, nodes: Iterable[Node]) -> NodeIdentity:
        ordered = sorted(nodes, key=lambda node: node.metadata.name)
        aliases: dict[str, int] = {}
        ambiguous: set[str] = set()
        for index, node in enumerate(ordered):
            for alias in _aliases(node):
                if aliases.setdefault(alias, index) != index:
                    ambiguous.add(alias)
        names = tuple(node.metadata.name for node in ordered)
        kept = {alias: index for alias, index in aliases.items() if alias not in ambiguous}
        return cls(generation, names, kept | {name: index for index, name in enumerate(names)})


def _aliases(node: Node) -> set[str]:
    found = {address.address for address in node.status.addresses or []}
    found.add((node.metadata.labels or {}).get(_HOSTNAME_LABEL, ""))
    found.add(node.spec.provider_id)
    found.add(node.spec.provider_id.rpartition("/")[2])
    return found - {""}
