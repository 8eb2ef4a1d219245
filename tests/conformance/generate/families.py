"""Families: which parts a case is put together from. A part may rely on the nodes and Pods that stand before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from tests.conformance.generate import boundaries, neighbours, nodes, preemption, profiles, resources, storage, volumes
from tests.conformance.generate.draw import Draw, Fields

Part = Callable[[Draw], None]

_PLAIN: Mapping[str, Sequence[Part]] = {
    "taints": (nodes.taints,),
    "cordons": (nodes.cordons,),
    "nodeaffinity": (nodes.node_affinity,),
    "nodename": (nodes.node_names,),
    "nodeports": (nodes.ports,),
    "imagelocality": (nodes.images,),
    "declaredfeatures": (nodes.features,),
    "resources": (resources.fuller, resources.scalars),
    "containers": (resources.fuller, resources.many_containers, resources.overhead),
    "podlevel": (resources.fuller, resources.pod_level),
    "resized": (resources.fuller, resources.resized),
    "nothing": (resources.nothing,),
    "toomuch": (resources.far_too_much,),
    "topologyspread": (neighbours.neighbours, neighbours.spread),
    "defaultspread": (neighbours.neighbours, neighbours.default_spreading),
    "interpodaffinity": (neighbours.namespaces, neighbours.neighbours, neighbours.pod_affinity),
    "affinityargs": (neighbours.neighbours, neighbours.pod_affinity, profiles.affinity_arguments),
    "firstofitskind": (neighbours.neighbours, neighbours.first_of_its_kind),
    "ghosts": (neighbours.ghosts,),
    "unlabelled": (neighbours.unlabelled_node, neighbours.neighbours, neighbours.spread, neighbours.pod_affinity),
    "volumesbound": (volumes.bound,),
    "volumesgone": (volumes.gone,),
    "volumesbroken": (volumes.broken,),
    "volumeslocal": (volumes.local,),
    "volumesmade": (volumes.provisioned,),
    "volumescrash": (volumes.provisioned, volumes.crashes),
    "volumesone": (volumes.one_pod_only,),
    "volumesdisks": (resources.fuller, volumes.disks),
    "volumeslimits": (resources.fuller, volumes.limits),
    "volumesephemeral": (volumes.ephemeral,),
    "volumesmigrated": (storage.migrated,),
    "volumesclasses": (storage.classes,),
    "volumespools": (storage.pools,),
    "volumesshared": (resources.fuller, storage.shared),
    "gates": (nodes.gates,),
    "oddamounts": (resources.fuller, boundaries.amounts),
    "oddnames": (resources.fuller, boundaries.names),
    "oddlayers": (resources.fuller, boundaries.layered, boundaries.other_schedulers),
    "oddimages": (boundaries.images,),
    "oddspread": (nodes.taints, nodes.node_affinity, neighbours.neighbours, boundaries.spread),
    "oddneighbours": (neighbours.namespaces, neighbours.neighbours, boundaries.pod_affinity),
    "oddnodes": (boundaries.node_affinity, boundaries.tolerations),
    "preemption": (preemption.full_nodes,),
    "budgets": (preemption.full_nodes, preemption.budgets),
    "overlapping": (preemption.full_nodes, preemption.overlapping_budgets),
    "plainvictims": (preemption.full_nodes, preemption.plain_victims, preemption.overlapping_budgets),
    "closecalls": (preemption.close_calls,),
    "faults": (preemption.full_nodes, preemption.faults),
    "faultsnominated": (preemption.full_nodes, preemption.other_nominations, preemption.faults),
    "terminating": (preemption.full_nodes, preemption.terminating, preemption.own_nomination),
    "never": (preemption.full_nodes, preemption.never),
    "nominated": (preemption.full_nodes, preemption.own_nomination),
    "nominations": (preemption.full_nodes, preemption.some_free_nodes, preemption.other_nominations),
}

_COMBINED: Sequence[Part] = (
    nodes.taints, nodes.cordons, nodes.node_affinity, nodes.ports, nodes.images, nodes.features, resources.scalars,
    resources.many_containers, resources.pod_level, resources.resized, neighbours.spread, neighbours.pod_affinity,
    neighbours.default_spreading, volumes.bound, volumes.local, volumes.provisioned, volumes.disks, volumes.limits,
    storage.migrated, storage.classes, boundaries.names, boundaries.layered, boundaries.spread,
    boundaries.pod_affinity, boundaries.node_affinity,
    boundaries.tolerations, preemption.other_nominations, preemption.own_nomination, preemption.budgets,
)  # fmt: skip

_CROWDED: Sequence[Part] = (
    nodes.taints, nodes.cordons, nodes.node_affinity, nodes.ports, nodes.features, neighbours.spread,
    neighbours.pod_affinity, volumes.one_pod_only,
    volumes.disks, volumes.limits, resources.scalars, boundaries.spread, boundaries.pod_affinity,
    boundaries.other_schedulers, storage.shared, preemption.plain_victims, preemption.budgets, preemption.terminating,
    preemption.other_nominations, preemption.own_nomination,
)  # fmt: skip


def _combined(draw: Draw) -> None:
    """Put two to five parts together that were not made for each other."""
    neighbours.namespaces(draw)
    draw.pick((neighbours.neighbours, resources.fuller))(draw)
    for part in _in_order(draw, _COMBINED, 2, 5):
        part(draw)


def _preempting(draw: Draw) -> None:
    """Put one to three parts together where no node has room."""
    neighbours.namespaces(draw)
    preemption.full_nodes(draw)
    for part in _in_order(draw, _CROWDED, 1, 3):
        part(draw)


def _configured(draw: Draw) -> None:
    """Put parts together under another profile."""
    draw.pick((_combined, _combined, _preempting))(draw)
    profiles.another_profile(draw)


def _by_point(draw: Draw) -> None:
    """Put parts together under a profile that says what runs at single points."""
    draw.pick((_combined, _combined, _preempting))(draw)
    profiles.by_point(draw)


def _in_order(draw: Draw, parts: Sequence[Part], least: int, most: int) -> list[Part]:
    """Return a few of the parts, in their order: what is wanted for scalars is asked of what is there before."""
    chosen = draw.some(range(len(parts)), least, most)
    return [parts[i] for i in sorted(chosen)]


_WHOLE: Mapping[str, Part] = {
    "combined": _combined, "preempting": _preempting, "configured": _configured, "bypoint": _by_point
}  # fmt: skip
FAMILIES: Sequence[str] = (*_PLAIN, *_WHOLE)
_SHARE = 6
"""How many cases of each family in _WHOLE stand beside one of each plain family."""
_NO_NODES = 150
"""One case in so many has no node at all."""


def cases(seed: int, n: int, families: Sequence[str] = FAMILIES) -> Iterator[Fields]:
    """Yield n cases, the same ones for the same seed and families, spread over the families."""
    order = turns(families)
    for number in range(n):
        yield _case(Draw(seed, order[number % len(order)], number))


def turns(families: Sequence[str] = FAMILIES) -> list[str]:
    """Return the families in the order in which they have their turn, those in _WHOLE several times."""
    return [family for family in families for _ in range(_SHARE if family in _WHOLE else 1)]


def case_named(name: str) -> Fields:
    """Return one case of `cases` again, ValueError where none can have this name."""
    seed, family, number = name.rsplit("-", 2)
    if family not in FAMILIES:
        raise ValueError(f"no family is named {family!r}")
    return _case(Draw(int(seed), family, int(number)))


def _case(draw: Draw) -> Fields:
    if draw.number % _NO_NODES == _NO_NODES - 1:
        draw.tags.append("no nodes")
        return draw.case()
    draw.add_nodes()
    draw.add_pods(draw.count(0, 8))
    parts = _PLAIN.get(draw.family) or (_WHOLE[draw.family],)
    for part in parts:
        part(draw)
    return draw.case()
