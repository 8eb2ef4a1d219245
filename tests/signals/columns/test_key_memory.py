"""Smoothing: the weight of past samples halves with each half-life, by the times of the samples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.model.rules import ByKind, Rule, RuleFilter, Signal
from scheduler.signals.columns.key_memory import KeyMemory, smooth
from tests.builders import make_node
from tests.signals.columns.store_world import NAN, World, rules_of

CALM = Signal("cpu", "node_cpu", interval_s=15.0, max_age_s=60.0, smoothing_s=30.0)
ZONE = Signal("zone", "zone_p99", by=ByKind.LABEL, label="zone", smoothing_s=30.0)
HOT = Rule("hot", "cpu", filter=RuleFilter(max=0.8, max_clear=0.8))


def world_of(*names: str, rules: tuple[Rule, ...] = ()) -> World:
    return World(*names, rules=rules_of(*rules, signals=(CALM, ZONE)))


def after(world: World, seconds: float, values: dict[str, float], signal: Signal = CALM, **fields: Any) -> list[Any]:
    world.clock.now_s += seconds
    world.publish(values, signal, smoothing_s=signal.smoothing_s, **fields)
    return world.values(signal.name)


def test_a_half_life_after_a_step_half_of_it_shows() -> None:
    world = world_of("a", "b")
    assert after(world, 0.0, {"a": 0.0, "b": 1.0}) == [0.0, 1.0]
    assert after(world, 30.0, {"a": 1.0, "b": 0.0}) == [0.5, 0.5]
    assert after(world, 30.0, {"a": 1.0, "b": 0.0}) == [0.75, 0.25]


def test_two_steps_are_as_one_of_their_time() -> None:
    world = world_of("a", "b")
    after(world, 0.0, {"a": 0.0, "b": 0.0})
    after(world, 10.0, {"a": 1.0, "b": NAN})
    (a, b) = after(world, 20.0, {"a": 1.0, "b": 1.0})
    assert a == pytest.approx(0.5)
    assert b == pytest.approx(0.5)


def test_a_missing_sample_neither_enters_nor_stays() -> None:
    world = world_of("a")
    after(world, 0.0, {"a": 0.0})
    assert after(world, 15.0, {}) == [None]
    assert after(world, 15.0, {"a": 1.0}) == [0.5]


def test_after_a_gap_longer_than_max_age_a_key_starts_anew() -> None:
    world = world_of("a", "b")
    after(world, 0.0, {"a": 0.0, "b": 0.0})
    for _ in range(4):
        after(world, 15.0, {"b": 0.0})
    assert after(world, 1.0, {"a": 1.0, "b": 0.0}) == [1.0, 0.0]


def test_after_an_outage_longer_than_max_age_all_keys_start_anew() -> None:
    world = world_of("a")
    after(world, 0.0, {"a": 0.0})
    assert after(world, 61.0, {"a": 1.0}) == [1.0]


def test_a_domain_that_vanishes_for_a_while_goes_on_where_it_was() -> None:
    world = World(rules=rules_of(signals=(CALM, ZONE)))
    for name in ("z1", "z2"):
        world.table.set_node(make_node(name, labels={"zone": name}))
    after(world, 0.0, {"z1": 0.0, "z2": 8.0}, ZONE)
    assert after(world, 15.0, {"z2": 8.0}, ZONE) == [None, 8.0]
    assert after(world, 15.0, {"z2": 8.0, "z1": 4.0}, ZONE) == [2.0, 8.0]
    after(world, 31.0, {"z2": 8.0}, ZONE)
    after(world, 30.0, {"z2": 8.0}, ZONE)
    assert after(world, 15.0, {"z1": 4.0, "z2": 8.0}, ZONE) == [4.0, 8.0]


def test_the_times_are_those_of_the_samples() -> None:
    world = world_of("a", "b")
    after(world, 0.0, {"a": 0.0, "b": 0.0}, lag_s=15.0)
    assert after(world, 15.0, {"a": 1.0, "b": 1.0}, lag_s=0.0, lag_by_key={"b": 30.0}) == [0.5, 0.0]


def test_the_same_sample_again_changes_nothing() -> None:
    world = world_of("a")
    after(world, 0.0, {"a": 0.0})
    first = after(world, 15.0, {"a": 1.0})
    assert after(world, 15.0, {"a": 1.0}, lag_s=15.0) == first


def test_a_doubtful_answer_does_not_enter() -> None:
    world = world_of("a")
    after(world, 0.0, {"a": 0.0})
    assert after(world, 15.0, {"a": 1.0}, is_suspect=True) == [0.0]
    assert after(world, 15.0, {"a": 1.0}) == [0.5]


def test_a_filter_goes_by_the_smoothed_value() -> None:
    world = world_of("a", rules=(HOT,))
    after(world, 0.0, {"a": 0.0})
    after(world, 30.0, {"a": 1.0})
    assert world.tripped() == [False]
    after(world, 60.0, {"a": 1.0})
    assert world.tripped() == [True]


def test_a_signal_that_is_smoothed_from_now_on_starts_with_its_next_sample() -> None:
    world = world_of("a")
    world.publish({"a": 0.0})
    assert after(world, 15.0, {"a": 1.0}) == [1.0]
    assert after(world, 30.0, {"a": 0.0}) == [0.5]


@given(
    half_life_s=st.floats(1.0, 600.0),
    samples=st.lists(
        st.tuples(st.floats(0.0, 100.0), st.one_of(st.just(NAN), st.floats(-1e6, 1e6))), min_size=1, max_size=30
    ),
)
def test_as_a_plain_loop_says_and_never_beyond_the_samples(
    half_life_s: float, samples: list[tuple[float, float]]
) -> None:
    now_s, last_s, expected, memory = 0.0, -math.inf, NAN, None
    seen: list[float] = []
    for step_s, value in samples:
        now_s += step_s
        found, memory = smooth(half_life_s, 60.0, np.array([value]), ("a",), np.array([now_s]), memory)
        if math.isnan(value):
            assert math.isnan(found[0])
            continue
        seen.append(value)
        weight = 2.0 ** (-(now_s - last_s) / half_life_s)
        expected = value if now_s - last_s > 60.0 else weight * expected + (1.0 - weight) * value
        last_s = now_s
        assert found[0] == pytest.approx(expected, rel=1e-9, abs=1e-6)
        assert min(seen) - 1e-6 <= found[0] <= max(seen) + 1e-6


def test_what_is_gone_is_forgotten_in_time() -> None:
    memory: KeyMemory | None = None
    for i in range(100):
        _, memory = smooth(30.0, 60.0, np.array([1.0]), (f"zone-{i}",), np.array([15.0 * i]), memory)
    assert memory is not None
    assert set(memory.gone) == {f"zone-{i}" for i in (96, 97, 98)}
