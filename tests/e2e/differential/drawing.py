"""Draws a cluster and the Pods to place in it, from the parts that conformance cases are made of.

Each Pod is the target of a case of its own, whose small cluster is thrown away but for what the Pod names: its claims
and their volumes, its owner and services, and the Pods that hold the same claims. They stand before it is submitted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from tests.conformance.generate import neighbours, nodes, resources, volumes
from tests.conformance.generate.draw import Draw, Fields, name_of

Part = Callable[[Draw], None]

POLITE = {"important": 1_000, "urgent": 1_000_000}
"""Classes whose Pods come before the others in the queue and evict nobody: victims would be other ones each time."""

CLAIMED = ("persistentvolumeclaims", "persistentvolumes", "storageclasses")
OWNERS = ("services", "replicasets", "statefulsets", "replicationcontrollers")
_SPREAD_BY_DEFAULT = "team-a"
"""Services are in this namespace alone, so that Pods of others stay without default constraints."""


def _important(draw: Draw) -> None:
    draw.target["spec"]["priorityClassName"] = draw.pick(tuple(POLITE))


def _default_spreading(draw: Draw) -> None:
    draw.target["metadata"]["namespace"] = _SPREAD_BY_DEFAULT
    neighbours.default_spreading(draw)


_PARTS: Sequence[Part] = (
    nodes.taints, nodes.cordons, nodes.node_affinity, nodes.ports, nodes.images, nodes.features, resources.fuller,
    resources.scalars, resources.many_containers, resources.pod_level, resources.nothing, resources.far_too_much,
    neighbours.spread, neighbours.pod_affinity, neighbours.first_of_its_kind, volumes.bound, volumes.broken,
    volumes.one_pod_only, volumes.disks, volumes.limits, _important, _default_spreading,
)  # fmt: skip

_TOGETHER: Sequence[Part] = (
    nodes.taints, nodes.node_affinity, nodes.ports, nodes.images, resources.fuller, resources.many_containers,
    neighbours.spread, neighbours.pod_affinity, volumes.bound, volumes.disks, volumes.limits, _important,
)  # fmt: skip

_SOME_NODES: Sequence[tuple[Part, float]] = (
    (nodes.images, 0.9), (nodes.taints, 0.25), (nodes.features, 0.3), (resources.scalars, 0.5), (volumes.limits, 0.7),
)  # fmt: skip
"""What is made of a share of the nodes."""

_CORDONED = 0.05
_HARD_TAINT = {"key": "dedicated", "value": "a", "effect": "NoSchedule"}
"""On a few nodes: all that the part about taints draws may be soft ones."""

_SOME_PODS: Sequence[tuple[Part, float]] = (
    (neighbours.pod_affinity, 0.15), (nodes.ports, 0.2), (volumes.disks, 0.2), (resources.resized, 0.2),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class DrawnPod:
    """A Pod to submit; `objects` have to stand before, by the API's plural names."""

    manifest: Fields
    objects: dict[str, list[Fields]]
    waits_for_consumer: bool = False

    @property
    def name(self) -> str:
        return name_of(self.manifest)


def draw_cluster(seed: int, n_nodes: int) -> dict[str, list[Fields]]:
    """Return nodes of many kinds, a Pod for each of them, and what else stands in the cluster from the start."""
    draw = Draw(seed, "live", 0)
    draw.add_nodes(n_nodes, n_nodes)
    neighbours.namespaces(draw)
    draw.add_pods(n_nodes)
    for part, share in _SOME_NODES:
        _among(draw, "nodes", share, part)
    for node in draw.some(draw.nodes, 1, round(_CORDONED * n_nodes)):
        node["spec"]["unschedulable"] = True
    for node in draw.some(draw.nodes, 2, 4):
        node["spec"]["taints"] = [dict(_HARD_TAINT)]
    for part, share in _SOME_PODS:
        _among(draw, "pods", share, part)
    neighbours.unlabelled_node(draw)
    for pod in draw.placed:
        _drop_ephemeral(pod["spec"])
    for name, value in POLITE.items():
        draw.add("priorityclasses", priority_class(name, value) | {"preemptionPolicy": "Never"})
    return as_submitted(draw.objects)


def _drop_ephemeral(spec: Fields) -> None:
    """Drop what may be another's claim: whoever comes to the node of such a Pod with a volume fails, and most do."""
    if "volumes" in spec:
        spec["volumes"] = [one for one in spec["volumes"] if "ephemeral" not in one]


def priority_class(name: str, value: int) -> Fields:
    return {"metadata": {"name": name}, "value": value}


def as_submitted(objects: Mapping[str, list[Fields]]) -> dict[str, list[Fields]]:
    """Take out what the API server fills in itself, or refuses to be told."""
    return {plural: [_as_submitted(plural, one) for one in items] for plural, items in objects.items() if items}


def _among(draw: Draw, plural: str, share: float, part: Part) -> None:
    """Let a part see only some of the objects of a kind, and what it adds."""
    items = draw.objects[plural]
    few = round(share * len(items))
    seen = draw.some(items, few, few)
    draw.objects[plural] = list(seen)
    part(draw)
    draw.objects[plural] = items + draw.objects[plural][len(seen) :]


def draw_pods(seed: int) -> Iterator[DrawnPod]:
    """Yield Pods without end: each second one of a single part, part after part, the others of two to four."""
    for number in count():
        draw = Draw(seed, "live", number + 1)
        draw.target["metadata"]["name"] = f"drawn-{number:03d}"
        draw.add_nodes()
        draw.add_pods(8)
        for part in _parts_of(draw, number):
            part(draw)
        yield _drawn(draw)


def _parts_of(draw: Draw, number: int) -> Sequence[Part]:
    if number % 2 == 0:
        return (_PARTS[number // 2 % len(_PARTS)],)
    chosen = draw.some(range(len(_TOGETHER)), 2, 4)
    return [_TOGETHER[i] for i in sorted(chosen)]


def _drawn(draw: Draw) -> DrawnPod:
    own = [pod for pod in draw.placed if any("persistentVolumeClaim" in one for one in pod["spec"].get("volumes", []))]
    kept = {plural: draw.objects.get(plural, []) for plural in (*CLAIMED, *OWNERS)} | {"pods": own}
    target = draw.target
    prefix = name_of(target)
    _rename_claimed(kept, [target, *own], prefix)
    _rename_owners(kept, target, prefix)
    for pod in own:
        pod["metadata"]["name"] = f"{prefix}-{name_of(pod)}"
        _drop_ephemeral(pod["spec"])
    return DrawnPod(
        manifest=as_submitted({"pods": [target]})["pods"][0],
        objects=as_submitted(kept),
        waits_for_consumer=_waits_for_consumer(kept, target),
    )


def _rename_claimed(kept: dict[str, list[Fields]], pods: Sequence[Fields], prefix: str) -> None:
    """Give claims, volumes and classes names that no other Pod's have, wherever they are named."""
    renamed = {plural: {name_of(one): _own_name(one, prefix) for one in kept[plural]} for plural in CLAIMED}
    claims, by_name, classes = (renamed[plural] for plural in CLAIMED)
    for plural in CLAIMED:
        for one in kept[plural]:
            one["metadata"]["name"] = renamed[plural][name_of(one)]
            spec = one.get("spec", {})
            for field, names in (("volumeName", by_name), ("storageClassName", classes)):
                if field in spec:
                    spec[field] = names.get(spec[field], spec[field])
            if "claimRef" in spec:
                spec["claimRef"]["name"] = claims.get(spec["claimRef"]["name"], spec["claimRef"]["name"])
    for pod in pods:
        for volume in pod["spec"].get("volumes", []):
            if "persistentVolumeClaim" in volume:
                source = volume["persistentVolumeClaim"]
                source["claimName"] = claims.get(source["claimName"], source["claimName"])


def _own_name(fields: Fields, prefix: str) -> str:
    """Return a name that begins with the Pod's; the claim of an ephemeral volume has it already."""
    name = name_of(fields)
    return name if name.startswith(f"{prefix}-") else f"{prefix}-{name}"


def _rename_owners(kept: dict[str, list[Fields]], target: Fields, prefix: str) -> None:
    for plural in OWNERS:
        for one in kept[plural]:
            one["metadata"]["name"] = f"{prefix}-{name_of(one)}"
    for reference in target["metadata"].get("ownerReferences", []):
        reference["name"] = f"{prefix}-{reference['name']}"


def _waits_for_consumer(kept: dict[str, list[Fields]], target: Fields) -> bool:
    """Return whether a claim of the Pod is bound only after the Pod has a node, which takes a PV controller."""
    late = {name_of(one) for one in kept["storageclasses"] if one["volumeBindingMode"] == "WaitForFirstConsumer"}
    waiting = {
        name_of(claim)
        for claim in kept["persistentvolumeclaims"]
        if claim["spec"].get("storageClassName") in late and "volumeName" not in claim["spec"]
    }
    used = (one.get("persistentVolumeClaim", {}).get("claimName") for one in target["spec"].get("volumes", []))
    return not waiting.isdisjoint(used)


def _as_submitted(plural: str, fields: Fields) -> Fields:
    for field in ("uid", "creationTimestamp"):
        fields["metadata"].pop(field, None)
    if plural == "pods":
        _pod_as_submitted(fields["spec"])
    if plural in OWNERS and plural != "services":
        fields["spec"]["replicas"] = 0
    return fields


def _pod_as_submitted(spec: Fields) -> None:
    """Leave priorities to classes, and to the API server what it makes of (mis)matchLabelKeys."""
    for field in ("priority", "preemptionPolicy", "schedulerName"):
        spec.pop(field, None)
    holders = list(spec.get("topologySpreadConstraints", []))
    for kind in ("podAffinity", "podAntiAffinity"):
        for terms in spec.get("affinity", {}).get(kind, {}).values():
            holders += [term.get("podAffinityTerm", term) for term in terms]
    for holder in holders:
        merged = {*holder.get("matchLabelKeys", ()), *holder.get("mismatchLabelKeys", ())}
        if merged:
            selector = holder["labelSelector"]
            kept = [one for one in selector.get("matchExpressions", []) if one["key"] not in merged]
            selector.pop("matchExpressions", None)
            if kept:
                selector["matchExpressions"] = kept
