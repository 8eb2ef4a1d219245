"""Families of Pods by what it takes to decide on them, and the clusters of 20,000 placed Pods that they come to."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from scheduler.decision.decision import Decision
from scheduler.model.catalog import CatalogObject
from scheduler.model.objects import Node
from scheduler.model.pods import PodInfo
from scheduler.model.state import ClusterState
from scheduler.model.volumes import PersistentVolume, PersistentVolumeClaim
from tests.builders import cluster_of, make_node, make_pod, object_of
from tests.plugins.volumes import objects as volumes

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
N_ZONES = 3
N_PLACED_EACH = 4
"""Placed Pods on each node."""

_N_APPS = 200
_DRIVER = "csi.example.com"
_N_FREE = 3_000
"""Volumes that no claim has yet, in all zones."""
_IN_FLIGHT = 10
"""Decisions until the victims of a preemption have gone: so many Pods are nominated at a time."""

Spec = dict[str, Any]
Arrive = Callable[[ClusterState, int], PodInfo]
Settle = Callable[[ClusterState, PodInfo, Decision], None]


@dataclass(frozen=True, slots=True)
class Family:
    """Pods of one kind.

    `cluster(n_nodes)` makes the state they come to; `arrive(state, i)` brings the i-th of them there, with its claims;
    `settle` does to the state what follows a decision, in the running scheduler and outside.
    """

    name: str
    target_ms: float
    cluster: Callable[[int], ClusterState]
    arrive: Arrive
    settle: Settle
    is_preempting: bool = False


def _selector(app: str) -> Spec:
    return {"matchLabels": {"app": app}}


def _term(app: str, key: str) -> Spec:
    return {"labelSelector": _selector(app), "topologyKey": key}


def _spread(app: str, when: str, skew: int) -> Spec:
    one = {"maxSkew": skew, "topologyKey": ZONE, "whenUnsatisfiable": when, "labelSelector": _selector(app)}
    return {"topologySpreadConstraints": [one]}


def _required(kind: str, key: str) -> Callable[[str], Spec]:
    return lambda app: {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [_term(app, key)]}}}


def _preferred(app: str) -> Spec:
    weighted = [{"weight": 50, "podAffinityTerm": _term(app, ZONE)}]
    return {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}}


KINDS: dict[str, Callable[[str], Spec]] = {
    "stateless": lambda app: {},
    "soft spread over zones": lambda app: _spread(app, "ScheduleAnyway", 1),
    "hard spread over zones, maxSkew 5": lambda app: _spread(app, "DoNotSchedule", 5),
    "spread by the system's defaults, with Services": lambda app: {},
    "anti-affinity on hostname": _required("podAntiAffinity", HOST),
    "required affinity in a zone": _required("podAffinity", ZONE),
    "preferred affinity in a zone": _preferred,
}
"""What the Pods of an application ask for, given its label; the placed ones ask for it, too."""

_SERVED = "spread by the system's defaults, with Services"


def _app(number: int, kind: str) -> str:
    """Return one of the applications of a kind: they take turns."""
    kinds = list(KINDS)
    return f"a{kinds.index(kind) + len(kinds) * (number % (_N_APPS // len(kinds)))}"


def _kind_of(app_number: int) -> str:
    return list(KINDS)[app_number % len(KINDS)]


def _nodes(n_nodes: int, cpu: str) -> list[Node]:
    return [make_node(f"n{i:05}", labels={ZONE: f"z{i % N_ZONES}"}, cpu=cpu, memory="64Gi") for i in range(n_nodes)]


def _using_disk(number: int) -> Spec:
    return {"volumes": [{"name": "disk", "gcePersistentDisk": {"pdName": f"disk-{number}"}}]}


def _services() -> list[CatalogObject]:
    apps = [f"a{i}" for i in range(_N_APPS) if _kind_of(i) == _SERVED]
    return [
        object_of("Service", {"metadata": {"name": app, "namespace": "default"}, "spec": {"selector": {"app": app}}})
        for app in apps
    ]


def roomy(n_nodes: int) -> ClusterState:
    """Return nodes with room, and placed Pods of 200 applications of all KINDS, a part of them with Services."""
    return cluster_of(_nodes(n_nodes, cpu="16"), _placed(n_nodes), objects=_services())


def _placed(n_nodes: int) -> Iterator[PodInfo]:
    for i in range(n_nodes * N_PLACED_EACH):
        # Shifted in each round over the nodes, so that no two Pods of an application are on one node.
        node = (i + i // n_nodes * (_N_APPS // N_PLACED_EACH)) % n_nodes
        app = f"a{i % _N_APPS}"
        spec = KINDS[_kind_of(i % _N_APPS)](app)
        yield make_pod(f"p{i}", node=f"n{node:05}", cpu="100m", memory="500Mi", labels={"app": app}, spec=spec)


def stored(n_nodes: int) -> ClusterState:
    """Return the same with a Pod on each node that uses a volume of its own; most nodes may attach no more of them."""
    objects: list[CatalogObject] = [
        *_services(),
        volumes.csi_driver(_DRIVER, storageCapacity=True),
        volumes.storage_class("static", provisioner="kubernetes.io/no-provisioner"),
        volumes.storage_class("made", provisioner=_DRIVER),
    ]
    for zone in range(N_ZONES):
        near = {"matchLabels": {ZONE: f"z{zone}"}}
        objects.append(volumes.pool(f"pool-{zone}", storage_class="made", selector=near, capacity=f"{900 + zone}Gi"))
        for k in range(_N_FREE // N_ZONES):
            affinity = [volumes.term(ZONE, f"z{zone}")]
            objects.append(volumes.volume(f"free-{zone}-{k}", storage_class="static", affinity=affinity))
    using = []
    for i in range(n_nodes):
        objects.append(volumes.csi_node(f"n{i:05}", csi_example_com=1 if i % 5 < 3 else 16))
        objects += _bound(f"used-{i}", zone=i % N_ZONES)
        spec = {"volumes": [{"name": "data", **volumes.claim_volume(f"used-{i}")}]}
        using.append(make_pod(f"using-{i}", node=f"n{i:05}", cpu="100m", memory="500Mi", spec=spec))
    nodes = _nodes(n_nodes, cpu="16")
    pods = itertools.islice(_placed(n_nodes), n_nodes * (N_PLACED_EACH - 1))
    return cluster_of(nodes, [*pods, *using], objects=objects)


def _bound(name: str, zone: int, storage_class: str = "") -> list[CatalogObject]:
    """Return a claim and the volume that it is bound to, which a zone can reach."""
    affinity = [volumes.term(ZONE, f"z{zone}")]
    source = volumes.csi(_DRIVER, handle=name)
    return [
        volumes.claim(name, volume=name, storage_class=storage_class, phase="Bound"),
        volumes.volume(name, storage_class=storage_class, affinity=affinity, made_for=name, phase="Bound", csi=source),
    ]


def full(n_nodes: int) -> ClusterState:
    """Return nodes that four Pods of low priority fill, one with a host port and one with a disk each.

    Budgets cover a half of the Pods.
    """
    budgets = [_budget(i, allowed=i % 2) for i in range(_N_APPS // 2)]
    return cluster_of(_nodes(n_nodes, cpu="8"), _filling(n_nodes), objects=budgets)


def guarded(n_nodes: int) -> ClusterState:
    """Return the same with budgets over all Pods that let nobody go, so that all nodes have to be tried."""
    budgets = [_budget(i, allowed=0) for i in range(_N_APPS)]
    return cluster_of(_nodes(n_nodes, cpu="8"), _filling(n_nodes), objects=budgets)


def _filling(n_nodes: int) -> list[PodInfo]:
    return [
        make_pod(
            f"p{i}-{k}",
            node=f"n{i:05}",
            cpu="1900m",
            memory="1Gi",
            priority=k + 1,
            labels={"app": f"a{(N_PLACED_EACH * i + k) % _N_APPS}"},
            ports=[{"hostPort": 80}] if k == 0 else [],
            spec=_using_disk(i % _N_APPS) if k == 1 else {},
            status={"startTime": f"2026-01-01T{(i + k) % 24:02}:{i % 60:02}:00Z"},
        )
        for i in range(n_nodes)
        for k in range(N_PLACED_EACH)
    ]


def _budget(app: int, allowed: int) -> CatalogObject:
    status, spec = {"disruptionsAllowed": allowed}, {"selector": _selector(f"a{app}")}
    named = {"name": f"b{app}", "namespace": "default"}
    return object_of("PodDisruptionBudget", {"metadata": named, "spec": spec, "status": status})


def place(state: ClusterState, pod: PodInfo, decision: Decision) -> None:
    state.place(pod, decision.row)


def bind_volumes(state: ClusterState, pod: PodInfo, decision: Decision) -> None:
    """Bind the Pod's claim as its class says: to a free volume that its zone reaches, or to one made there."""
    zone = decision.row % N_ZONES
    claim = state.catalog.get(PersistentVolumeClaim, f"{pod.name}-0", pod.namespace)
    assert claim is not None
    name, storage_class = claim.metadata.name, claim.spec.storage_class_name or ""
    if not claim.spec.volume_name:
        if storage_class == "static":
            free = next(one for one in state.catalog.all(PersistentVolume) if _is_free(one, zone))
            state.remove_object(PersistentVolume, "", free.metadata.name)
        for item in _bound(name, zone, storage_class):
            state.set_object(item)
    state.place(pod, decision.row)


def _is_free(volume: PersistentVolume, zone: int) -> bool:
    return volume.metadata.name.startswith(f"free-{zone}-")


def _arrive(kind: str) -> Arrive:
    def arrive(state: ClusterState, number: int) -> PodInfo:
        app = _app(number, kind)
        labels = {"app": app}
        return make_pod(f"new-{number}", cpu="100m", memory="500Mi", labels=labels, spec=KINDS[kind](app))

    return arrive


def _arrive_claiming(storage_class: str, n_claims: int = 1) -> Arrive:
    """Return how Pods arrive with claims of a class, or, without one, bound to volumes of one zone."""

    def arrive(state: ClusterState, number: int) -> PodInfo:
        names = [f"new-{number}-{k}" for k in range(n_claims)]
        for name in names:
            wanted = [volumes.claim(name, storage_class=storage_class)]
            for item in wanted if storage_class else _bound(name, number % N_ZONES):
                state.set_object(item)
        mounted = [{"name": name, **volumes.claim_volume(name)} for name in names]
        return make_pod(f"new-{number}", cpu="100m", memory="500Mi", spec={"volumes": mounted})

    return arrive


def _arrive_in_turn(kinds: Sequence[Arrive]) -> Arrive:
    return lambda state, number: kinds[number % len(kinds)](state, number)


def _settle_any(state: ClusterState, pod: PodInfo, decision: Decision) -> None:
    (bind_volumes if pod.pod.spec.volumes else place)(state, pod, decision)


def _arrive_urgent(spec: Callable[[str], Spec], ports: Sequence[Spec] = ()) -> Arrive:
    """Return how Pods arrive that fit nowhere unless others leave."""

    def arrive(state: ClusterState, number: int) -> PodInfo:
        app = f"a{number % _N_APPS}"
        labels = {"app": app}
        return make_pod(f"new-{number}", cpu="4", priority=100, labels=labels, ports=ports, spec=spec(app))

    return arrive


class Eviction:
    """Preemption as it goes on outside: the victims leave some decisions later, then the Pod takes their place."""

    def __init__(self) -> None:
        self._waiting: list[tuple[PodInfo, str, Sequence[PodInfo]]] = []

    def settle(self, state: ClusterState, pod: PodInfo, decision: Decision) -> None:
        if decision.nomination is None:
            state.place(pod, decision.row)
        else:
            state.nominated.setdefault(decision.nomination, {})[pod.uid] = pod
            self._waiting.append((pod, decision.nomination, decision.victims))
        if len(self._waiting) > _IN_FLIGHT:
            self._finish(state, *self._waiting.pop(0))

    def _finish(self, state: ClusterState, pod: PodInfo, node: str, victims: Sequence[PodInfo]) -> None:
        row = state.nodes.row_of(node)
        assert row is not None
        there = {one.uid for one in state.pods_on(row)}
        for victim in victims:
            if victim.uid in there:
                state.displace(victim, row)
        del state.nominated[node][pod.uid]
        if not state.nominated[node]:
            del state.nominated[node]
        state.place(pod, row)


_CLAIMING = {
    "a bound volume": _arrive_claiming(""),
    "three bound volumes, attach limits": _arrive_claiming("", n_claims=3),
    "WaitForFirstConsumer, volumes at hand": _arrive_claiming("static"),
    "WaitForFirstConsumer, volumes to be made": _arrive_claiming("made"),
}
_URGENT = {
    "room": _arrive_urgent(lambda app: {}),
    "a host port": _arrive_urgent(lambda app: {}, ports=[{"hostPort": 80}]),
    "hard spread over zones, maxSkew 1": _arrive_urgent(lambda app: _spread(app, "DoNotSchedule", 1)),
    "required affinity in a zone": _arrive_urgent(_required("podAffinity", ZONE)),
    "anti-affinity on hostname": _arrive_urgent(_required("podAntiAffinity", HOST)),
    "a disk in use": _arrive_urgent(lambda app: _using_disk(int(app[1:]))),
}


def families() -> list[Family]:
    """Return all of them; each run needs new ones."""
    plain = {kind: _arrive(kind) for kind in KINDS}
    mixed = _arrive_in_turn([*plain.values(), *_CLAIMING.values()])
    return [
        *(Family(name, 5.0, roomy, arrive, place) for name, arrive in plain.items()),
        *(Family(name, 20.0, stored, arrive, bind_volumes) for name, arrive in _CLAIMING.items()),
        Family("a mix of all above", 20.0, stored, mixed, _settle_any),
        *(
            Family(f"preemption: {name}", 150.0, full, arrive, Eviction().settle, is_preempting=True)
            for name, arrive in _URGENT.items()
        ),
        Family("preemption: budgets let nobody go", 150.0, guarded, _URGENT["room"], Eviction().settle, True),
    ]
