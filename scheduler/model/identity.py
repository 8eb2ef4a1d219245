"""NodeIdentity: every name by which a series may mean a node; and what is told of it as nodes come and go."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from scheduler.model.objects import Node

_HOSTNAME_LABEL = "kubernetes.io/hostname"


class NodeNames(msgspec.Struct, frozen=True, array_like=True):
    """One node, and what else may mean it: its addresses, its hostname label and its provider's names."""

    name: str
    aliases: tuple[str, ...]

    @classmethod
    def of(cls, node: Node) -> NodeNames:
        found = {address.address for address in node.status.addresses or []}
        found.add((node.metadata.labels or {}).get(_HOSTNAME_LABEL, ""))
        found.add(node.spec.provider_id)
        found.add(node.spec.provider_id.rpartition("/")[2])
        return cls(node.metadata.name, tuple(sorted(found - {""})))


class NodeChanges(msgspec.Struct, frozen=True):
    """What a generation of NodeIdentity changes: nodes that are new or have other names, and those that are gone."""

    generation: int
    named: tuple[NodeNames, ...] = ()
    gone: tuple[str, ...] = ()


class NodeIdentity(msgspec.Struct, frozen=True):
    """The nodes of one moment; columns are exchanged in the order of `names`.

    `aliases` maps node names and all else that may mean them to an index of `names`; what could mean two nodes is left
    out. `generation` grows with every change.
    """

    generation: int = 0
    names: tuple[str, ...] = ()
    aliases: dict[str, int] = {}

    @classmethod
    def of(cls, generation: int, nodes: Iterable[Node]) -> NodeIdentity:
        return cls.of_names(generation, map(NodeNames.of, nodes))

    @classmethod
    def of_names(cls, generation: int, nodes: Iterable[NodeNames]) -> NodeIdentity:
        ordered = sorted(nodes, key=lambda node: node.name)
        aliases: dict[str, int] = {}
        ambiguous: set[str] = set()
        for index, node in enumerate(ordered):
            for alias in node.aliases:
                if aliases.setdefault(alias, index) != index:
                    ambiguous.add(alias)
        names = tuple(node.name for node in ordered)
        kept = {alias: index for alias, index in aliases.items() if alias not in ambiguous}
        return cls(generation, names, kept | {name: index for index, name in enumerate(names)})


class KnownNodes:
    """All that changes have told so far."""

    def __init__(self) -> None:
        self._generation = 0
        self._nodes: dict[str, NodeNames] = {}

    def apply(self, changes: NodeChanges) -> None:
        self._generation = changes.generation
        for name in changes.gone:
            self._nodes.pop(name, None)
        for node in changes.named:
            self._nodes[node.name] = node

    def all(self) -> NodeChanges:
        """Return all of it as one change, for who knows nothing yet."""
        return NodeChanges(self._generation, tuple(self._nodes.values()))

    def identity(self) -> NodeIdentity:
        return NodeIdentity.of_names(self._generation, self._nodes.values())
