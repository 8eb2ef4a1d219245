"""What every filter and score plugin, examples too, has to hold, over random small clusters and Pods."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler.framework.plugin import (
    FilterPlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
)
from scheduler.framework.status import PreFilterResult, Rejection, ScoreTerm, Status
from scheduler.model.arrays import Rows
from scheduler.model.catalog import CatalogObject
from scheduler.model.objects import Node
from scheduler.model.pods import PodInfo
from scheduler.model.rules import (
    Curve,
    FilterMissing,
    Match,
    Rule,
    RuleFilter,
    RuleScore,
    RuleSet,
    ScoreMissing,
    Signal,
    WeightSignal,
)
from scheduler.model.signals import SignalColumn, SignalTable
from scheduler.model.snapshot import Snapshot
from scheduler.plugins import DEFAULT_CHAIN, default_chain
from scheduler.plugins.examples.label_score import LabelScore, LabelScoreArgs
from scheduler.plugins.examples.team_nodes import TEAM, TeamNodes
from tests.builders import cluster_of, make_node, make_pod, object_of, snapshot_of
from tests.plugins import volumes

EXAMPLES = (TeamNodes(), LabelScore(LabelScoreArgs(label="zone", worst=9, best=-3)))
EVERY = (*EXAMPLES, *(one.plugin for one in default_chain()))
FILTERS = [plugin for plugin in EVERY if isinstance(plugin, FilterPlugin)]
SCORES = [plugin for plugin in EVERY if isinstance(plugin, ScorePlugin)]
PLUGINS = [plugin for plugin in EVERY if isinstance(plugin, FilterPlugin | ScorePlugin)]
ALL: Rows = slice(None)

every_plugin = pytest.mark.parametrize("plugin", PLUGINS, ids=lambda plugin: plugin.name)
every_filter = pytest.mark.parametrize("plugin", FILTERS, ids=lambda plugin: plugin.name)
every_score = pytest.mark.parametrize("plugin", SCORES, ids=lambda plugin: plugin.name)
random_worlds = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])

TAINTS = [{"key": "k", "value": v, "effect": e} for v in "ab" for e in ("NoSchedule", "PreferNoSchedule", "NoExecute")]
FEATURES = ("UserNamespacesHostNetworkSupport", "RestartAllContainersOnContainerExits", "Unheard")
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
    *(volumes.csi_node(f"n{i}", csi_example_com=i) for i in range(3)),
)
VOLUMES = (
    *map(volumes.claim_volume, ("bound", "free", "made")),
    {"gcePersistentDisk": {"pdName": "d"}},
    {"awsElasticBlockStore": {"volumeID": "vol-1"}},
)
CURVE = Curve((0.0, 0.5, 1.0), (100.0, 30.0, 0.0))


@dataclass(frozen=True)
class World:
    """What a test builds its snapshots from; `samples` is (n_signals, n_nodes), NaN for missing."""

    nodes: tuple[Node, ...]
    pods: tuple[PodInfo, ...]
    pod: PodInfo
    samples: tuple[tuple[float, ...], ...]
    age_s: float

    def snapshot(self) -> Snapshot:
        state = cluster_of(self.nodes, self.pods, objects=[RED_NAMESPACE, WEB_SERVICE, *STORAGE])
        return Snapshot(state, self._signals(state.nodes.n_rows), 0.0)

    def permuted(self, order: Sequence[int]) -> World:
        samples = tuple(tuple(column[i] for i in order) for column in self.samples)
        return World(tuple(self.nodes[i] for i in order), self.pods, self.pod, samples, self.age_s)

    def _signals(self, n_rows: int) -> SignalTable:
        """Return the table; rows of Pods on unknown nodes have no sample. `load` is cluster-wide."""
        names = [f"s{i}" for i in range(len(self.samples))]
        signals = {name: Signal(name, "up") for name in [*names, "load"]}
        padding = (float("nan"),) * (n_rows - len(self.nodes))
        values = {name: np.array(column + padding) for name, column in zip(names, self.samples, strict=True)}
        values["load"] = np.full(n_rows, 0.5)
        columns = {name: SignalColumn(signals[name], column, self.age_s) for name, column in values.items()}
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
        return SignalTable(RuleSet(signals, tuple(rules)), columns, tripped)


@st.composite
def worlds(draw: st.DrawFn, min_nodes: int = 0, max_nodes: int = 6) -> World:
    n = draw(st.integers(min_nodes, max_nodes))
    label = st.sampled_from(["", "a", "b", "7", "-3"])
    # One size for all: an image is as large as the first node that brought it says, so there order does matter.
    image_bytes = draw(st.integers(0, 10**10))
    nodes = tuple(
        make_node(
            f"n{i}",
            cpu=draw(st.sampled_from(["0", "250m", "2", "64"])),
            memory=draw(st.sampled_from(["0", "1Gi", "80Ti"])),
            pods=draw(st.sampled_from([0, 1, 10])),
            labels={"zone": draw(label)},
            taints=draw(st.lists(st.sampled_from(TAINTS), max_size=2, unique_by=str)),
            unschedulable=draw(st.booleans()),
            images={"app:latest": image_bytes} if draw(st.booleans()) else None,
            extended={"nvidia.com/gpu": 4} if draw(st.booleans()) else None,
            features=draw(st.lists(st.sampled_from(FEATURES), unique=True)),
        )
        for i in range(n)
    )
    pods = tuple(
        draw(pods_to_place(f"placed-{i}", node=f"n{draw(st.integers(0, n))}")) for i in range(draw(st.integers(0, 4)))
    )
    sample = st.one_of(st.just(float("nan")), st.floats(0, 1))
    samples = tuple(tuple(draw(sample) for _ in range(n)) for _ in range(3))
    return World(nodes, pods, draw(pods_to_place("pod")), samples, draw(st.sampled_from([0.0, 40.0, 100.0])))


@st.composite
def spread_constraints(draw: st.DrawFn) -> dict[str, Any]:
    selector = st.sampled_from([None, {}, {"matchLabels": {"app": "web"}}, {"matchLabels": {"app": "db"}}])
    policy = st.sampled_from(["Honor", "Ignore"])
    constraint: dict[str, Any] = {
        "maxSkew": draw(st.integers(1, 3)),
        "topologyKey": draw(st.sampled_from(["zone", "kubernetes.io/hostname", "nowhere"])),
        "whenUnsatisfiable": draw(st.sampled_from(["DoNotSchedule", "ScheduleAnyway"])),
        "labelSelector": draw(selector),
        "matchLabelKeys": draw(st.sampled_from([[], [TEAM]])),
        "nodeAffinityPolicy": draw(policy),
        "nodeTaintsPolicy": draw(policy),
    }
    if constraint["whenUnsatisfiable"] == "DoNotSchedule":
        constraint["minDomains"] = draw(st.integers(1, 3))
    return constraint


@st.composite
def terms_about_pods(draw: st.DrawFn) -> dict[str, Any]:
    selector = st.sampled_from([{}, {"matchLabels": {"app": "web"}}, {"matchLabels": {"app": "db"}}])
    term = st.fixed_dictionaries(
        {"topologyKey": st.sampled_from(["zone", "kubernetes.io/hostname", "nowhere"]), "labelSelector": selector},
        optional={"namespaceSelector": st.sampled_from([{}, {"matchLabels": {"team": "red"}}])},
    )
    weighted = st.fixed_dictionaries({"weight": st.integers(1, 100), "podAffinityTerm": term})
    return {
        "requiredDuringSchedulingIgnoredDuringExecution": draw(st.lists(term, max_size=1)),
        "preferredDuringSchedulingIgnoredDuringExecution": draw(st.lists(weighted, max_size=1)),
    }


@st.composite
def pods_to_place(draw: st.DrawFn, name: str, node: str = "") -> PodInfo:
    requests: dict[str, Any] = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "cpu": st.sampled_from(["0", "100m", "3"]),
                "memory": st.sampled_from(["64Mi", "2Gi", "8Ei"]),
                "nvidia.com/gpu": st.integers(0, 5),
                "example.com/nowhere": st.integers(0, 1),
            },
        )
    )
    spec: dict[str, Any] = {}
    if draw(st.booleans()):
        spec["tolerations"] = [{"key": "k", "operator": draw(st.sampled_from(["Exists", "Equal"])), "value": "a"}]
    if draw(st.booleans()):
        spec["nodeSelector"] = {"zone": "a"}
    if draw(st.booleans()):
        spec |= {"hostNetwork": True, "hostUsers": False}
    operator = draw(st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]))
    values = {"In": ["a", "b"], "NotIn": ["a"], "Gt": ["2"], "Lt": ["2"]}.get(operator, [])
    expression = {"matchExpressions": [{"key": "zone", "operator": operator, "values": values}]}
    if draw(st.booleans()):
        preferred = [{"weight": draw(st.integers(1, 100)), "preference": expression}]
        spec["affinity"] = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    for kind in draw(st.lists(st.sampled_from(["podAffinity", "podAntiAffinity"]), max_size=2, unique=True)):
        spec["affinity"] = {**spec.get("affinity", {}), kind: draw(terms_about_pods())}
    chosen = draw(st.lists(st.sampled_from(VOLUMES), max_size=2)) if draw(st.booleans()) else []
    spec["volumes"] = [{"name": f"v{i}", **source} for i, source in enumerate(chosen)]
    spec["topologySpreadConstraints"] = draw(st.lists(spread_constraints(), max_size=2))
    ports = [{"hostPort": 80, "hostIP": draw(st.sampled_from(["", "10.0.0.1"]))}] if draw(st.booleans()) else []
    labels = {"app": draw(st.sampled_from(["web", "db"])), TEAM: draw(st.sampled_from(["red", "blue"]))}
    return make_pod(name, node=node, ports=ports, spec=spec, labels=labels, **requests)


def state_of(plugin: object, pod: PodInfo, snapshot: Snapshot, rows: Rows, *, scoring: bool) -> tuple[bool, object]:
    """Return (skipped, state) as the runner would hand it to Filter or Score."""
    state: object = None
    if isinstance(plugin, PreFilterPlugin):
        result = plugin.prefilter(pod, snapshot)
        if isinstance(result, Status) and not scoring:
            return True, None
        state = result.state if isinstance(result, PreFilterResult) else None
    if scoring and isinstance(plugin, PreScorePlugin):
        prescored = plugin.prescore(pod, snapshot, rows)
        return isinstance(prescored, Status), prescored
    return False, state


def run_filter(plugin: FilterPlugin, pod: PodInfo, snapshot: Snapshot, rows: Rows = ALL) -> list[Rejection]:
    skipped, state = state_of(plugin, pod, snapshot, rows, scoring=False)
    return [] if skipped else list(plugin.filter(state, pod, snapshot, rows))


def run_score(plugin: ScorePlugin, pod: PodInfo, snapshot: Snapshot, rows: Rows = ALL) -> list[ScoreTerm]:
    """Score some of the nodes, of which all are feasible."""
    skipped, state = state_of(plugin, pod, snapshot, ALL, scoring=True)
    terms = [] if skipped else plugin.score(state, pod, snapshot, rows)
    return [replace(term, values=term.values[rows], is_column=False) if term.is_column else term for term in terms]


def verdicts(rejections: Sequence[Rejection], n: int) -> list[set[tuple[int, str]]]:
    """Return per row the (code, reason) pairs that refuse it."""
    return [{(one.code, one.reason) for one in rejections if one.mask[i]} for i in range(n)]


def by_name(terms: Sequence[ScoreTerm]) -> dict[str, tuple[list[float], float | None]]:
    return {term.name: (term.values.tolist(), term.weight) for term in terms}


@every_filter
@random_worlds
@given(world=worlds())
def test_a_mask_is_bool_and_as_long_as_the_rows(plugin: FilterPlugin, world: World) -> None:
    snapshot = world.snapshot()

    for rejection in run_filter(plugin, world.pod, snapshot):
        assert rejection.mask.dtype == np.bool_
        assert rejection.mask.shape == (snapshot.nodes.n_rows,)
        assert rejection.reason


@every_filter
@random_worlds
@given(world=worlds(min_nodes=1), data=st.data())
def test_a_filter_says_of_any_subset_what_it_says_of_all(
    plugin: FilterPlugin, world: World, data: st.DataObject
) -> None:
    snapshot = world.snapshot()
    n = snapshot.nodes.n_rows
    chosen = sorted(data.draw(st.sets(st.integers(0, n - 1))))

    whole = verdicts(run_filter(plugin, world.pod, snapshot), n)
    part = verdicts(run_filter(plugin, world.pod, snapshot, np.array(chosen, dtype=np.int64)), len(chosen))

    assert part == [whole[row] for row in chosen]


@every_score
@random_worlds
@given(world=worlds(min_nodes=1), data=st.data())
def test_a_raw_score_does_not_depend_on_who_else_is_looked_at(
    plugin: ScorePlugin, world: World, data: st.DataObject
) -> None:
    snapshot = world.snapshot()
    chosen = sorted(data.draw(st.sets(st.integers(0, snapshot.nodes.n_rows - 1))))

    whole = by_name(run_score(plugin, world.pod, snapshot))
    part = by_name(run_score(plugin, world.pod, snapshot, np.array(chosen, dtype=np.int64)))

    assert part == {name: ([values[row] for row in chosen], weight) for name, (values, weight) in whole.items()}


@every_filter
@random_worlds
@given(world=worlds(min_nodes=1), data=st.data())
def test_the_order_of_nodes_does_not_change_a_verdict(plugin: FilterPlugin, world: World, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(world.nodes))))
    before, after = world.snapshot(), world.permuted(order).snapshot()

    whole = verdicts(run_filter(plugin, world.pod, before), before.nodes.n_rows)
    moved = verdicts(run_filter(plugin, world.pod, after), after.nodes.n_rows)

    assert moved[: len(order)] == [whole[i] for i in order]


@every_score
@random_worlds
@given(world=worlds(min_nodes=1), data=st.data())
def test_the_order_of_nodes_does_not_change_a_score(plugin: ScorePlugin, world: World, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(world.nodes))))
    before, after = world.snapshot(), world.permuted(order).snapshot()

    whole = by_name(run_score(plugin, world.pod, before))
    moved = by_name(run_score(plugin, world.pod, after))

    assert {name: (values[: len(order)], weight) for name, (values, weight) in moved.items()} == {
        name: ([values[i] for i in order], weight) for name, (values, weight) in whole.items()
    }


@every_score
@random_worlds
@given(world=worlds(min_nodes=1))
def test_raw_scores_are_finite_and_normalised_ones_lie_in_0_to_100(plugin: ScorePlugin, world: World) -> None:
    snapshot = world.snapshot()

    for term in run_score(plugin, world.pod, snapshot):
        values = plugin.normalize(term)
        assert np.isfinite(term.values).all()
        assert term.values.shape == values.shape == (snapshot.nodes.n_rows,)
        assert (values >= 0).all()
        assert (values <= 100).all()
        assert term.weight is None or 0 <= term.weight <= 100


@every_plugin
@random_worlds
@given(world=worlds())
def test_the_same_question_twice_has_the_same_answer_and_changes_nothing(plugin: Any, world: World) -> None:
    snapshot = world.snapshot()
    nodes = snapshot.nodes
    columns = (nodes.alive, nodes.allocatable, nodes.requested, nodes.nonzero_requested, nodes.n_pods)
    before = [column.copy() for column in columns]
    samples = [column.values.copy() for column in snapshot.signals.columns.values()]

    if isinstance(plugin, FilterPlugin):
        first, second = (verdicts(run_filter(plugin, world.pod, snapshot), nodes.n_rows) for _ in range(2))
        assert first == second
    if isinstance(plugin, ScorePlugin) and nodes.n_rows:
        once, again = (by_name(run_score(plugin, world.pod, snapshot)) for _ in range(2))
        assert once == again

    assert all(np.array_equal(a, b) for a, b in zip(before, columns, strict=True))
    now = [column.values for column in snapshot.signals.columns.values()]
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(samples, now, strict=True))


@pytest.mark.parametrize("n", [0, 1], ids=["no node", "one node"])
@every_plugin
def test_the_smallest_clusters_work(plugin: Any, n: int) -> None:
    snapshot = snapshot_of([make_node(f"n{i}") for i in range(n)])
    pod = make_pod(cpu="1", memory="1Gi", ports=[{"hostPort": 80}], spec={"nodeSelector": {"a": "b"}})

    if isinstance(plugin, FilterPlugin):
        assert all(len(one.mask) == n for one in run_filter(plugin, pod, snapshot))
    if isinstance(plugin, ScorePlugin):
        assert all(len(term.values) == n for term in run_score(plugin, pod, snapshot))


@every_plugin
def test_signals_without_any_sample_raise_no_warning(plugin: Any) -> None:
    nodes = tuple(make_node(f"n{i}") for i in range(4))
    nothing = (float("nan"),) * 4
    world = World(nodes, (), make_pod(cpu="1"), (nothing, nothing, nothing), 0.0)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if isinstance(plugin, FilterPlugin):
            run_filter(plugin, world.pod, world.snapshot())
        if isinstance(plugin, ScorePlugin):
            terms = run_score(plugin, world.pod, world.snapshot())
            assert all(np.isfinite(term.values).all() for term in terms)


def test_the_chain_names_each_plugin_by_its_class() -> None:
    assert [link.name for link in DEFAULT_CHAIN] == [link.factory().name for link in DEFAULT_CHAIN]


def test_signals_come_last_among_filters_and_scores() -> None:
    assert FILTERS[-1].name == "SignalFilter"
    assert SCORES[-1].name == "SignalScore"
