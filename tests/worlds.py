"""Random small clusters and Pods that touch every plugin and every index, drawn from a `Random`: a seed is a world."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, TypeVar

import numpy as np

from scheduler.model.catalog import CatalogObject
from scheduler.model.objects import Node
from scheduler.model.pods import PodInfo
from scheduler.model.real_allocatable import ANNOTATION
from scheduler.model.rules import (
    BuiltIn,
    BuiltInKind,
    ByKind,
    Curve,
    Effect,
    EffectKind,
    FilterMissing,
    Match,
    Rule,
    RuleFilter,
    RuleScore,
    RuleSet,
    ScoreMissing,
    Signal,
    Tenant,
    Unit,
    WeightSignal,
)
from scheduler.model.signals import SignalColumn, SignalTable
from scheduler.model.snapshot import Snapshot
from scheduler.model.state import ClusterState
from scheduler.plugins.examples.team_nodes import TEAM
from tests.builders import cluster_of, make_node, make_pod, object_of
from tests.keyed_columns import KEYED_RULES, KEYED_SIGNALS, keyed_columns
from tests.plugins.volumes import objects as volumes

T = TypeVar("T")
Test = Callable[..., None]

TAINTS = [{"key": "k", "value": v, "effect": e} for v in "ab" for e in ("NoSchedule", "PreferNoSchedule", "NoExecute")]
FIGURES = ('{"cpu": "1500m"}', '{"cpu": 60, "memory": "512Mi", "nvidia.com/gpu": 2}', "{}", '{"cpu": "many"}', "two")
FEATURES = ("UserNamespacesHostNetworkSupport", "RestartAllContainersOnContainerExits", "Unheard")
TOPOLOGY_KEYS = ("zone", "kubernetes.io/hostname", "nowhere")
WEB, DB = {"matchLabels": {"app": "web"}}, {"matchLabels": {"app": "db"}}
RED_NAMESPACE = object_of("Namespace", {"metadata": {"name": "default", "labels": {"team": "red"}}})
WEB_SERVICE = object_of(
    "Service", {"metadata": {"name": "web", "namespace": "default"}, "spec": {"selector": {"app": "web"}}}
)
STORAGE: tuple[CatalogObject, ...] = (
    volumes.storage_class("static", provisioner="kubernetes.io/no-provisioner"),
    volumes.storage_class("pooled"),
    volumes.csi_driver(storageCapacity=True),
    volumes.pool("near", storage_class="pooled", selector={"matchLabels": {"zone": "a"}}, capacity="8Gi"),
    volumes.pool("far", storage_class="pooled", selector={"matchLabels": {"zone": "7"}}, capacity="90Gi"),
    volumes.claim("bound", volume="bound", modes=["ReadWriteOncePod"]),
    volumes.volume("bound", affinity=[volumes.term("zone", "a", "b")], csi=volumes.csi()),
    volumes.claim("free", storage_class="static"),
    volumes.volume("free-a", storage_class="static", size="6Gi", affinity=[volumes.term("zone", "a")]),
    volumes.volume("free-b", storage_class="static", size="9Gi", affinity=[volumes.term("zone", "b", "a")]),
    volumes.claim("made", storage_class="pooled"),
    volumes.claim("zonal", volume="zonal"),
    volumes.volume("zonal", labels={volumes.ZONE: "1"}, csi=volumes.csi(handle="z")),
    volumes.attachment("attached", "n1", "zonal"),
    *(volumes.claim(f"guest-{i}-v0", storage_class="pooled") for i in range(1, 5)),
    *(volumes.csi_node(f"n{i}", csi_example_com=i) for i in range(3)),
)
OBJECTS: tuple[CatalogObject, ...] = (RED_NAMESPACE, WEB_SERVICE, *STORAGE)
CHANGED_OBJECTS: tuple[CatalogObject, ...] = (
    volumes.claim("free", storage_class="static", volume="free-a"),
    volumes.volume("free-a", storage_class="static", size="6Gi", made_for="free"),
    volumes.volume("free-b", storage_class="static", size="9Gi", made_for="free"),
    volumes.attachment("attached", "n2", "bound"),
    volumes.storage_class("pooled", provisioner="other.example.com"),
    volumes.pool("near", storage_class="pooled", selector={"matchLabels": {"zone": "b"}}, capacity="8Gi"),
    volumes.csi_node("n1", csi_example_com=5, other_example_com=None),
)
"""Later versions of some of them."""

VOLUMES = (
    *map(volumes.claim_volume, ("bound", "free", "made", "zonal")),
    {"gcePersistentDisk": {"pdName": "d"}},
    {"gcePersistentDisk": {"pdName": "d", "readOnly": True}},
    {"awsElasticBlockStore": {"volumeID": "vol-1"}},
)
EPHEMERAL = ({"ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "pooled"}}}},)
"""Volumes that let attempts fail, where the Pod is one of those whose claims were made for nobody."""

TENANTS = (
    Tenant(
        "red",
        namespace_labels={"team": ("red", "pink")},
        per_mille=1_250,
        resources=("cpu", "memory"),
        bounds=(Rule("tenant red, s0", "s0", filter=RuleFilter(max=0.8, missing=FilterMissing.REJECT)),),
    ),
    Tenant("rest", per_mille=500, resources=("cpu", "nvidia.com/gpu")),
)
"""All Pods are of the one or the other, by whether their Namespace is there."""

BUILT_IN = {
    signal.name: signal
    for signal in (
        Signal("mates", "", built_in=BuiltIn(BuiltInKind.COUNT, same=("app",))),
        Signal(
            "near",
            "",
            by=ByKind.LABEL,
            label="zone",
            built_in=BuiltIn(BuiltInKind.COUNT, same=(TEAM, "app"), window_s=30.0, all_namespaces=True),
        ),
        Signal("crowd", "", by=ByKind.CLUSTER, built_in=BuiltIn(BuiltInKind.PODS)),
        Signal("full", "", unit=Unit.RATIO, built_in=BuiltIn(BuiltInKind.REQUESTED, resource="cpu")),
        Signal("gpus", "", by=ByKind.LABEL, label="zone", built_in=BuiltIn(BuiltInKind.REQUESTED, "nvidia.com/gpu")),
    )
}
INFLIGHT = {
    "s0": Signal("s0", "up", unit=Unit.RATIO, inflight=Effect(EffectKind.REQUEST, "cpu")),
    "s2": Signal(
        "s2", "up", by=ByKind.LABEL, label="zone", unit=Unit.RATIO, inflight=Effect(EffectKind.CONSTANT, "cpu", 300.0)
    ),
}
"""To which placed Pods add, on their node and in their zone."""

_BLUE_WEB = Match(labels={"app": "web", TEAM: "blue"})
BUILT_IN_RULES = (
    Rule("one-mate", "mates", filter=RuleFilter(max=1.0), score=RuleScore(Curve((0.0, 10.0), (100.0, 0.0)))),
    Rule("near", "near", _BLUE_WEB, filter=RuleFilter(min=1.0, missing=FilterMissing.REJECT)),
    Rule("crowd", "crowd", filter=RuleFilter(max=4.0)),
    Rule("full", "full", _BLUE_WEB, filter=RuleFilter(max=1.5)),
    Rule("gpus", "gpus", filter=RuleFilter(max=6.0), score=RuleScore(Curve((0.0, 4.0), (0.0, 100.0)))),
)

CURVE = Curve((0.0, 0.5, 1.0), (100.0, 30.0, 0.0))


def each_seed(n: int) -> Callable[[Test], Test]:
    """Run a test `n` times, each with a `random` of its own; a failure names the seed, by which it comes again.

    The seeds are texts of the test, its plugin (if it has one) and a number, so that no two tests draw the same worlds.
    """

    def decorate(test: Test) -> Test:
        signature = inspect.signature(test)

        @functools.wraps(test)
        def run(**given: Any) -> None:
            plugin = getattr(given.get("plugin"), "name", "")
            for number in range(n):
                seed = f"{test.__name__} {plugin} {number}"
                try:
                    test(random=Random(seed), **given)
                except BaseException as error:
                    error.add_note(f"in the world of Random({seed!r})")
                    raise

        others = [one for name, one in signature.parameters.items() if name != "random"]
        vars(run)["__signature__"] = signature.replace(parameters=others)
        return run

    return decorate


@dataclass(frozen=True)
class World:
    """What a test builds its snapshots from; `samples` is (n_signals, n_nodes), NaN for missing."""

    nodes: tuple[Node, ...]
    pods: tuple[PodInfo, ...]
    pod: PodInfo
    samples: tuple[tuple[float, ...], ...]
    age_s: float

    def state(self) -> ClusterState:
        return cluster_of(self.nodes, self.pods, objects=OBJECTS)

    def snapshot(self, state: ClusterState | None = None) -> Snapshot:
        """Return a snapshot of the world, or of a state that came from it."""
        state = state or self.state()
        return Snapshot(state, self._signals(state.nodes.n_rows), 0.0)

    def permuted(self, order: Sequence[int]) -> World:
        samples = tuple(tuple(column[i] for i in order) for column in self.samples)
        return World(tuple(self.nodes[i] for i in order), self.pods, self.pod, samples, self.age_s)

    def _signals(self, n_rows: int) -> SignalTable:
        """Return the table; rows of Pods on unknown nodes have no sample. `load` is cluster-wide."""
        names = [f"s{i}" for i in range(len(self.samples))]
        signals = {name: INFLIGHT.get(name, Signal(name, "up")) for name in [*names, "load"]}
        padding = (float("nan"),) * (n_rows - len(self.nodes))
        values = {name: np.array(column + padding) for name, column in zip(names, self.samples, strict=True)}
        values["load"] = np.full(n_rows, 0.5)
        columns = {
            name: SignalColumn(signals[name], column, self.age_s, as_of_unix_s=0.0) for name, column in values.items()
        }
        rules = [
            Rule(
                f"r{i}",
                f"s{i}",
                match=Match(labels={"app": "web"}) if i == 1 else Match(),
                filter=RuleFilter(max=0.8, missing=list(FilterMissing)[i % 2]),
                score=RuleScore(CURVE, list(ScoreMissing)[i % 3]),
                weight=WeightSignal("load", Curve((0.0, 1.0), (1.0, 9.0)), 2.0) if i == 2 else 3.0,
            )
            for i in range(len(self.samples) + 1)
        ]
        tripped = {f"r{i}": values[name] > 0.8 for i, name in enumerate(names)}
        if names:
            tripped["tenant red, s0"] = tripped["r0"]
        nothing = np.full(n_rows, float("nan"))
        columns |= {name: SignalColumn(signal, nothing, self.age_s) for name, signal in KEYED_SIGNALS.items()}
        keyed = keyed_columns(self.nodes, n_rows, self.samples[0] if self.samples else ())
        everything = RuleSet(
            signals | BUILT_IN | KEYED_SIGNALS, (*rules, *BUILT_IN_RULES, *KEYED_RULES), tenants=TENANTS
        )
        return SignalTable(everything, columns, tripped, keyed=keyed)


def is_so(random: Random) -> bool:
    return random.random() < 0.5


def some_of(random: Random, values: Sequence[T], most: int) -> list[T]:
    """Return up to `most` different ones of the values, in any order."""
    return random.sample(values, random.randint(0, most))


def random_world(random: Random, min_nodes: int = 0, max_nodes: int = 6) -> World:
    n = random.randint(min_nodes, max_nodes)
    # One size for all: an image is as large as the first node that brought it says, so there order does matter.
    image_bytes = random.randint(0, 10**10)
    nodes = tuple(random_node(random, f"n{i}", image_bytes) for i in range(n))
    where = [f"n{random.randint(0, n)}" for _ in range(random.randint(0, 4))]
    pods = tuple(random_pod(random, f"placed-{i}", node=node) for i, node in enumerate(where))
    pod = random_pod(random, "pod", node=random.choice([*[""] * 7, "n0"]))
    samples = tuple(tuple(_sample(random) for _ in range(n)) for _ in range(3))
    return World(nodes, pods, pod, samples, random.choice([0.0, 40.0, 100.0]))


def _sample(random: Random) -> float:
    return random.choice([float("nan"), 0.0, 0.8, 1.0, random.random(), random.random()])


def random_node(random: Random, name: str, image_bytes: int) -> Node:
    zone = random.choice(["", "a", "b", "7", "-3"])
    return make_node(
        name,
        cpu=random.choice(["0", "250m", "2", "64"]),
        memory=random.choice(["0", "1Gi", "80Ti"]),
        pods=random.choice([0, 1, 10]),
        labels={"zone": zone, volumes.ZONE: random.choice("12")},
        taints=some_of(random, TAINTS, 2),
        unschedulable=is_so(random),
        images={"app:latest": image_bytes} if is_so(random) else None,
        extended={"nvidia.com/gpu": 4} if is_so(random) else None,
        features=some_of(random, FEATURES, 3),
        annotations=_published(Random(f"{name} {image_bytes}")),
    )


def _published(random: Random) -> dict[str, str] | None:
    return {ANNOTATION: random.choice(FIGURES)} if is_so(random) else None


def _spread_constraint(random: Random) -> dict[str, Any]:
    policies = ["Honor", "Ignore"]
    constraint: dict[str, Any] = {
        "maxSkew": random.randint(1, 3),
        "topologyKey": random.choice(TOPOLOGY_KEYS),
        "whenUnsatisfiable": random.choice(["DoNotSchedule", "ScheduleAnyway"]),
        "labelSelector": random.choice([None, {}, WEB, DB]),
        "matchLabelKeys": random.choice([[], [TEAM]]),
        "nodeAffinityPolicy": random.choice(policies),
        "nodeTaintsPolicy": random.choice(policies),
    }
    if constraint["whenUnsatisfiable"] == "DoNotSchedule":
        constraint["minDomains"] = random.randint(1, 3)
    return constraint


def _term(random: Random) -> dict[str, Any]:
    term = {"topologyKey": random.choice(TOPOLOGY_KEYS), "labelSelector": random.choice([{}, WEB, DB])}
    if is_so(random):
        term["namespaceSelector"] = random.choice([{}, {"matchLabels": {"team": "red"}}])
    return term


def _terms_about_pods(random: Random) -> dict[str, Any]:
    required, preferred = is_so(random), is_so(random)
    weighted = {"weight": random.randint(1, 100), "podAffinityTerm": _term(random)}
    return {
        "requiredDuringSchedulingIgnoredDuringExecution": [_term(random)] if required else [],
        "preferredDuringSchedulingIgnoredDuringExecution": [weighted] if preferred else [],
    }


def _affinity(random: Random) -> dict[str, Any]:
    affinity: dict[str, Any] = {}
    if is_so(random):
        operator = random.choice(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
        values = {"In": ["a", "b"], "NotIn": ["a"], "Gt": ["2"], "Lt": ["2"]}.get(operator, [])
        expression = {"matchExpressions": [{"key": "zone", "operator": operator, "values": values}]}
        preferred = [{"weight": random.randint(1, 100), "preference": expression}]
        affinity["nodeAffinity"] = {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
    for kind in some_of(random, ["podAffinity", "podAntiAffinity"], 2):
        affinity[kind] = _terms_about_pods(random)
    return affinity


_REQUESTS: dict[str, Sequence[str | int]] = {
    "cpu": ["0", "100m", "3"],
    "memory": ["64Mi", "2Gi", "8Ei"],
    "nvidia.com/gpu": range(6),
    "example.com/nowhere": [0, 1],
}


def random_pod(
    random: Random,
    name: str,
    node: str = "",
    nominated: str = "",
    more_volumes: Sequence[Mapping[str, Any]] = (),
) -> PodInfo:
    requests = {resource: random.choice(amounts) for resource, amounts in _REQUESTS.items() if is_so(random)}
    spec: dict[str, Any] = {}
    if is_so(random):
        spec["tolerations"] = [{"key": "k", "operator": random.choice(["Exists", "Equal"]), "value": "a"}]
    if is_so(random):
        spec["nodeSelector"] = {"zone": "a"}
    if is_so(random):
        spec |= {"hostNetwork": True, "hostUsers": False}
    if affinity := _affinity(random):
        spec["affinity"] = affinity
    if is_so(random):
        chosen = random.choices([*VOLUMES, *more_volumes], k=random.randint(0, 2))
        spec["volumes"] = [{"name": f"v{i}", **source} for i, source in enumerate(chosen)]
    spec["topologySpreadConstraints"] = [_spread_constraint(random) for _ in range(random.randint(0, 2))]
    ports = [{"hostPort": 80, "hostIP": random.choice(["", "10.0.0.1"])}] if is_so(random) else []
    labels = {"app": random.choice(["web", "db"]), TEAM: random.choice(["red", "blue"])}
    # One resource is no identifier, so all are handed over as such.
    return make_pod(
        name,
        node=node,
        nominated=nominated,
        priority=random.choice([None, 0, 5, 10]),
        ports=ports,
        spec=spec,
        labels=labels,
        extended=requests,
    )
