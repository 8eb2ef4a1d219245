"""The kinds of Pods in the race: what they ask for, and what has to hold of where they are in the end.

The shapes are those of kube-scheduler's own scheduler_perf (TopologySpreading, SchedulingPodAntiAffinity,
SchedulingPreferredPodAffinity, MixedSchedulingBasePod), over three zones.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.competitors import NAMESPACE
from tests.support import manifests
from tests.support.manifests import Json

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"

_ZONES = ("zone-0", "zone-1", "zone-2")
_MAX_SKEW = 5
_SET = 1_000
"""Pods that name each other: as many as there are nodes could not be more of one set, each alone on its node."""
_MOSTLY = 0.9

Labels = dict[str, str]
Where = Mapping[str, str]
"""Node name by Pod name, of Pods that belong to one set."""


class RuleBroken(Exception):
    """A competitor has won by placing Pods where they may not be."""


@dataclass(frozen=True, slots=True)
class Kind:
    """`constraint` is the PodSpec of a Pod with these labels; `check` looks at one set's Pods, each bound."""

    name: str
    constraint: Callable[[Labels], Json]
    check: Callable[[Where], None]


def node(number: int) -> Json:
    """Return a node of the race; its zone follows from its number."""
    name = f"node-{number:05}"
    return manifests.node(name, cpu="4", memory="32Gi", pods="110", labels={ZONE: zone_of(name)})


def zone_of(node_name: str) -> str:
    return _ZONES[int(node_name.rpartition("-")[2]) % len(_ZONES)]


def pod(name: str, number: int, mixed: Sequence[Kind], scheduler_name: str) -> Json:
    """Return a Pod of the race, of one of the kinds in turn."""
    labels = labels_of(number, mixed)
    kind = mixed[number % len(mixed)]
    return manifests.pod(
        name,
        namespace=NAMESPACE,
        cpu="100m",
        memory="500Mi",
        scheduler_name=scheduler_name,
        labels=labels,
        spec=kind.constraint(labels),
    )


def labels_of(number: int, mixed: Sequence[Kind]) -> Labels:
    """Return the labels of a Pod: its kind, and its set within it."""
    return {"kind": mixed[number % len(mixed)].name, "set": f"set-{number // len(mixed) // _SET}"}


def check(pods: Sequence[Json], mixed: Sequence[Kind]) -> None:
    """Raise RuleBroken where a Pod has no node, or is where its kind does not allow it."""
    unbound = [pod["metadata"]["name"] for pod in pods if not pod["spec"].get("nodeName")]
    if unbound:
        raise RuleBroken(f"{len(unbound)} Pods have no node, {unbound[0]} among them")
    sets: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for one in pods:
        labels = one["metadata"]["labels"]
        sets[labels["kind"], labels["set"]][one["metadata"]["name"]] = one["spec"]["nodeName"]
    for kind in mixed:
        for (name, _), where in sets.items():
            if name == kind.name:
                kind.check(where)


def _terms(labels: Labels, key: str) -> Json:
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}}


def _plain(_labels: Labels) -> Json:
    return {}


def _spread(labels: Labels) -> Json:
    constraint = {**_terms(labels, ZONE), "maxSkew": _MAX_SKEW, "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [constraint]}


def _apart(labels: Labels) -> Json:
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_terms(labels, HOST)]}}}


def _near(labels: Labels) -> Json:
    preferred = [{"weight": 100, "podAffinityTerm": _terms(labels, ZONE)}]
    return {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}}


def _is_anywhere(_where: Where) -> None:
    """Every node will do."""


def _is_spread(where: Where) -> None:
    counts = Counter(zone_of(node_name) for node_name in where.values())
    by_zone = {zone: counts[zone] for zone in _ZONES}
    if max(by_zone.values()) - min(by_zone.values()) > _MAX_SKEW:
        raise RuleBroken(f"the skew is above {_MAX_SKEW}: {by_zone}")


def _is_apart(where: Where) -> None:
    node_name, n_pods = Counter(where.values()).most_common(1)[0]
    if n_pods > 1:
        raise RuleBroken(f"{n_pods} Pods that must be apart are on {node_name}")


def _is_near(where: Where) -> None:
    (_, n_pods), *_ = Counter(zone_of(node_name) for node_name in where.values()).most_common(1)
    if n_pods < _MOSTLY * len(where):
        raise RuleBroken(f"only {n_pods} of {len(where)} Pods that want to be together share a zone")


PLAIN = Kind("plain", _plain, _is_anywhere)
SPREAD = Kind("spread", _spread, _is_spread)
ANTI_AFFINITY = Kind("anti-affinity", _apart, _is_apart)
PREFERRED_AFFINITY = Kind("preferred-affinity", _near, _is_near)

KINDS: Mapping[str, tuple[Kind, ...]] = {
    **{kind.name: (kind,) for kind in (PLAIN, SPREAD, ANTI_AFFINITY, PREFERRED_AFFINITY)},
    "mix": (PLAIN, SPREAD, ANTI_AFFINITY, PREFERRED_AFFINITY),
}
"""Name -> the kinds of which the Pods are, in turn."""
