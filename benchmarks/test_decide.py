"""Each plugin alone, and the whole of `decide`, at 5,000 nodes: `make bench-micro`.

One Pod is decided again and again on one snapshot, so the processor's caches are warm and nothing changes between the
decisions; `benchmarks.decide_alone` places each Pod before it decides the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.decide_alone import make_pod, make_state, make_store
from benchmarks.families import ZONE, Family, families, full
from scheduler.decision.decide import decide
from scheduler.decision.record import record_of
from scheduler.framework.plugin import FilterPlugin, PreFilterPlugin, PreScorePlugin, ScorePlugin
from scheduler.framework.profile import Profile
from scheduler.framework.status import PreFilterResult, Status
from scheduler.model.arrays import FloatArray, IntArray, Rows
from scheduler.model.snapshot import Snapshot
from scheduler.model.views import NodeView
from scheduler.plugins import default_chain
from tests import builders

N_NODES = 5_000
NOW_S = 1_000.0
ALL: Rows = slice(None)


def make_snapshot(profile: Profile, n_rules: int) -> Snapshot:
    """Return 5,000 nodes, a third of them with a Pod, and `n_rules` rules whose signals were just answered."""
    state = make_state(N_NODES, profile)
    for i in range(0, N_NODES, 3):
        state.place(make_pod(N_NODES + i), i)
    return Snapshot(state, make_store(n_rules, state, NOW_S).freeze(NodeView(state.nodes), NOW_S), NOW_S)


PROFILE = Profile.build("vane", default_chain())
SNAPSHOT = make_snapshot(PROFILE, 20)
POD = make_pod(0)


def scored(plugin: ScorePlugin, state: object) -> list[IntArray | FloatArray]:
    """Return the normalised values, as the score phase asks for them."""
    terms = plugin.score(state, POD, SNAPSHOT, ALL)
    return [term.values if term.is_column else plugin.normalize(term) for term in terms]


def steps() -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield each plugin at each of its points that the Pod does not skip."""
    for plugin in (enabled.plugin for enabled in default_chain()):
        state: object = None
        if isinstance(plugin, PreFilterPlugin):
            yield f"{plugin.name}-prefilter", partial(plugin.prefilter, POD, SNAPSHOT)
            state = plugin.prefilter(POD, SNAPSHOT)
        if isinstance(plugin, FilterPlugin) and not isinstance(state, Status):
            given = state.state if isinstance(state, PreFilterResult) else None
            yield f"{plugin.name}-filter", partial(plugin.filter, given, POD, SNAPSHOT, ALL)
        if isinstance(plugin, PreScorePlugin):
            yield f"{plugin.name}-prescore", partial(plugin.prescore, POD, SNAPSHOT, ALL)
            state = plugin.prescore(POD, SNAPSHOT, ALL)
        if isinstance(plugin, ScorePlugin) and not isinstance(state, Status):
            yield f"{plugin.name}-score", partial(scored, plugin, state)


@pytest.mark.parametrize("step", [pytest.param(step, id=name) for name, step in steps()])
def test_plugin(benchmark: BenchmarkFixture, step: Callable[[], object]) -> None:
    benchmark(step)


@pytest.mark.parametrize("n_rules", [0, 20])
def test_decide(benchmark: BenchmarkFixture, n_rules: int) -> None:
    snapshot = make_snapshot(PROFILE, n_rules)
    decision = benchmark(lambda: decide(POD, snapshot, PROFILE))
    assert decision.is_scheduled


@pytest.mark.parametrize("family", [pytest.param(one, id=one.name) for one in families() if not one.is_preempting])
def test_family(benchmark: BenchmarkFixture, family: Family) -> None:
    state = family.cluster(N_NODES)
    pod = family.arrive(state, 0)
    snapshot = Snapshot(state, builders.NO_SIGNALS, NOW_S)
    decision = benchmark(lambda: decide(pod, snapshot, PROFILE))
    assert decision.is_scheduled


SPREAD = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
PREEMPTORS: dict[str, dict[str, Any]] = {
    "room": {"cpu": "4"},
    "too-large": {"cpu": "9"},
    "host-port": {"cpu": "4", "ports": [{"hostPort": 80}]},
    "hard-spread": {
        "cpu": "4",
        "labels": {"app": "a1"},
        "spec": {"topologySpreadConstraints": [{**SPREAD, "labelSelector": {"matchLabels": {"app": "a1"}}}]},
    },
}


@pytest.mark.parametrize("kind", PREEMPTORS)
def test_preempt(benchmark: BenchmarkFixture, full_cluster: Snapshot, kind: str) -> None:
    pod = builders.make_pod(kind, priority=100, **PREEMPTORS[kind])
    decision = benchmark(lambda: decide(pod, full_cluster, PROFILE))
    assert bool(decision.victims) == (kind != "too-large")


@pytest.fixture(scope="module")
def full_cluster() -> Snapshot:
    return Snapshot(full(N_NODES), builders.NO_SIGNALS, NOW_S)


@pytest.mark.parametrize("n_rules", [0, 20])
def test_record(benchmark: BenchmarkFixture, n_rules: int) -> None:
    snapshot = make_snapshot(PROFILE, n_rules)
    decision = decide(POD, snapshot, PROFILE)
    record = benchmark(lambda: record_of(POD, snapshot, decision, PROFILE.scheduler_name, 0.0))
    assert np.array_equal(record.total, sum(term.contribution for term in record.terms))
