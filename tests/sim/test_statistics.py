from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.sim.law import SERVICE_MS
from scheduler.sim.nodes import make_nodes
from scheduler.sim.statistics import Ledger, interval, summary
from scheduler.sim.workloads import Behaviour
from scheduler.sim.world import SimWorld

HEAVY = Behaviour(6.8, 0.0)


def test_hot_time_is_pod_seconds_above_80_per_cent() -> None:
    world, ledger = SimWorld(make_nodes(), seed=1), Ledger()
    world.start("1", "batch-1", "node-a1", HEAVY)
    world.start("2", "batch-2", "node-a2", Behaviour(1.0, 0.0))
    world.start("3", "batch-3", "node-a2", Behaviour(1.0, 0.0))
    ledger.lasted(world.states(0.0), 2.0)
    ledger.lasted(world.states(2.0), 3.0)
    figures = ledger.figures()
    assert figures.hot_pod_s == pytest.approx(5.0)
    assert figures.pod_s == pytest.approx(15.0)
    assert figures.hot_share == pytest.approx(1 / 3)


def test_the_p99_served_is_that_of_the_law() -> None:
    world, ledger = SimWorld(make_nodes(), seed=1), Ledger()
    world.start("1", "web-1", "node-c1", Behaviour(3.0, 0.0, requests_per_s=40.0))
    states = world.states(0.0)
    cpu = next(state.cpu for state in states if state.node.name == "node-c1")
    ledger.lasted(states, 1.0)
    expected = 14.0 + SERVICE_MS / (1.0 - cpu) * math.log(100.0)
    assert ledger.figures().p99_ms == pytest.approx(expected, rel=0.01)
    slow = math.exp(-(250.0 - 14.0) / (SERVICE_MS / (1.0 - cpu)))
    assert ledger.figures().slow_share == pytest.approx(slow, abs=1e-12)


def test_fragments_are_a_mean_over_time() -> None:
    world, ledger = SimWorld(make_nodes(), seed=1), Ledger()
    ledger.lasted(world.states(0.0), 1.0)
    world.start("1", "train-1", "gpu-a1", Behaviour(0.5, 0.0, framebuffer_mib=8_192.0))
    ledger.lasted(world.states(1.0), 3.0)
    assert ledger.figures().fragments_gib == pytest.approx(32.0 * 3 / 4)


def test_bindings_count_from_creation_and_only_those_of_the_tour() -> None:
    ledger = Ledger()
    for i in range(4):
        ledger.created(str(i), 10.0)
    ledger.bound("0", 10.01)
    ledger.bound("1", 10.03)
    ledger.bound("stranger", 99.0)
    figures = ledger.figures()
    assert (figures.n_created, figures.n_bound) == (4, 2)
    assert figures.bind_p50_ms == pytest.approx(20.0)
    assert ledger.first_bound_s == 10.01


def test_what_was_not_measured_is_no_number() -> None:
    figures = Ledger().figures()
    for value in (figures.hot_share, figures.p99_ms, figures.slow_share, figures.fragments_gib, figures.bind_p99_ms):
        assert math.isnan(value)


def test_the_summary_is_a_line_per_figure_and_a_column_per_arm() -> None:
    ledger = Ledger()
    ledger.created("1", 0.0)
    ledger.bound("1", 0.012)
    text = summary({"with rules": ledger.figures(), "without rules": Ledger().figures()}, seed=5)
    assert "seed 5" in text
    assert "Pods placed" + " " * 24 + f"{'1 of 1':>18}{'0 of 0':>18}" in text
    assert f"{'12 ms':>18}{'-':>18}" in text
    assert max(map(len, text.splitlines())) <= 120


def test_an_interval_is_students() -> None:
    # R: t.test(c(1, 2, 3, 4, 5)) gives 3 and [1.036757, 4.963243].
    found = interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert found.mean == 3.0
    assert found.half == pytest.approx(1.963243, rel=1e-3)
    assert str(found) == "3.0 ± 2.0"
    with pytest.raises(ValueError, match="at least two"):
        interval([1.0])


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=60), st.floats(-1e3, 1e3))
def test_an_interval_moves_with_its_values(values: list[float], by: float) -> None:
    here, there = interval(values), interval([value + by for value in values])
    assert there.mean == pytest.approx(here.mean + by, abs=1e-5)
    assert there.half == pytest.approx(here.half, rel=1e-6, abs=1e-5)
    assert here.half >= 0.0
