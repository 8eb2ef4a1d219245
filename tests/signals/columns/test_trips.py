"""Trip bits: hysteresis, valves, and the hold time: a verdict that has changed stays, by the times of the samples."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.model.rules import FilterMissing, Rule, RuleFilter
from scheduler.signals.columns.store import SignalStore
from scheduler.signals.columns.trips import Trips, advance, refused, valve_reason
from tests.builders import make_node
from tests.signals.columns.store_world import BURN, ZONE, World, rules_of

NAN = math.nan
LIMITS = RuleFilter(max=0.8, max_clear=0.7)
HELD = Rule("hot", "cpu", filter=RuleFilter(max=0.8, max_clear=0.7, hold_s=60.0))


@pytest.mark.parametrize(
    ("value", "was_tripped", "is_tripped"),
    [
        (0.81, False, True),
        (0.80, False, False),
        (0.75, False, False),
        (0.75, True, True),
        (0.70, True, False),
        (0.60, True, False),
        (NAN, True, False),
        (NAN, False, False),
    ],
)
def test_hysteresis_of_a_maximum(value: float, was_tripped: bool, is_tripped: bool) -> None:
    assert advance(LIMITS, np.array([value]), np.array([was_tripped])).tolist() == [is_tripped]


@pytest.mark.parametrize(
    ("value", "was_tripped", "is_tripped"),
    [(9.0, False, True), (10.0, False, False), (15.0, True, True), (15.0, False, False), (20.0, True, False)],
)
def test_hysteresis_of_a_minimum(value: float, was_tripped: bool, is_tripped: bool) -> None:
    low = RuleFilter(min=10.0, min_clear=20.0)
    assert advance(low, np.array([value]), np.array([was_tripped])).tolist() == [is_tripped]


def test_a_rule_that_starts_compares_plainly() -> None:
    assert advance(LIMITS, np.array([0.9, 0.75, NAN]), None).tolist() == [True, False, False]


@pytest.mark.parametrize("clear", [None, 0.8])
def test_without_a_clear_of_its_own_the_limit_is_the_limit(clear: float | None) -> None:
    limits = RuleFilter(max=0.8, max_clear=clear)
    assert advance(limits, np.array([0.8, 0.81]), np.array([True, False])).tolist() == [False, True]


def test_both_limits() -> None:
    between = RuleFilter(max=10.0, min=1.0, max_clear=10.0, min_clear=1.0)
    assert advance(between, np.array([0.5, 1.0, 10.0, 11.0]), None).tolist() == [True, False, False, True]


def test_bits_follow_their_names() -> None:
    trips = Trips(("a", "b"), np.array([True, False]))
    assert trips.along(("c", "b", "a")).tolist() == [False, False, True]
    assert trips.along(("c", "a"), default=True).tolist() == [True, True]
    assert Trips((), np.zeros(0, dtype=np.bool_)).along(("a",)).tolist() == [False]


def test_valves() -> None:
    half = RuleFilter(max=1.0, valve=0.5)
    assert valve_reason(half, 5, 10, is_suspect=False) == ""
    assert valve_reason(half, 6, 10, is_suspect=False) == "share"
    assert valve_reason(LIMITS, 10, 10, is_suspect=False) == ""
    assert valve_reason(LIMITS, 0, 10, is_suspect=True) == "suspect"


def test_a_missing_sample_refuses_only_where_the_rule_says_so() -> None:
    tripped, has_sample = np.array([True, False, False]), np.array([True, True, False])
    assert refused(LIMITS, tripped, has_sample).tolist() == [True, False, False]
    strict = RuleFilter(max=1.0, missing=FilterMissing.REJECT)
    assert refused(strict, tripped, has_sample).tolist() == [True, False, True]


def after(world: World, seconds: float, values: dict[str, float], **fields: Any) -> list[bool]:
    world.clock.now_s += seconds
    world.publish(values, **fields)
    return world.tripped()


def test_a_verdict_stays_for_the_hold_time_in_both_directions() -> None:
    world = World("a", rules=rules_of(HELD))
    seen = [after(world, 15.0, {"a": value}) for value in (0.5, 0.9, 0.1, 0.1, 0.1, 0.1, 0.9, 0.9, 0.9, 0.9)]
    assert [bit for (bit,) in seen] == [False, True, True, True, True, False, False, False, False, True]


def test_each_node_is_held_on_its_own() -> None:
    world = World("a", "b", rules=rules_of(HELD))
    assert after(world, 0.0, {"a": 0.9, "b": 0.1}) == [True, False]
    assert after(world, 45.0, {"a": 0.1, "b": 0.9}) == [True, True]
    assert after(world, 15.0, {"a": 0.1, "b": 0.1}) == [False, True]
    assert after(world, 45.0, {"a": 0.1, "b": 0.1}) == [False, False]


def test_hysteresis_goes_on_after_the_hold_time() -> None:
    world = World("a", rules=rules_of(HELD))
    assert after(world, 0.0, {"a": 0.9}) == [True]
    assert after(world, 60.0, {"a": 0.75}) == [True], "above clear"
    assert after(world, 15.0, {"a": 0.7}) == [False]
    assert after(world, 60.0, {"a": 0.75}) == [False]


def test_the_times_are_those_of_the_samples() -> None:
    world = World("a", rules=rules_of(HELD))
    assert after(world, 0.0, {"a": 0.9}, lag_s=50.0) == [True]
    assert after(world, 15.0, {"a": 0.1}, lag_s=5.0) == [False], "60 s lie between the samples"
    assert after(world, 15.0, {"a": 0.9}, lag_s=15.0) == [False]
    assert after(world, 50.0, {"a": 0.9}, lag_s=15.0) == [False]
    assert after(world, 5.0, {"a": 0.9}, lag_s=5.0) == [True]


def test_a_node_whose_own_sample_is_old_is_held_by_that_samples_time() -> None:
    world = World("a", "b", rules=rules_of(HELD))
    assert after(world, 0.0, {"a": 0.9, "b": 0.9}) == [True, True]
    assert after(world, 60.0, {"a": 0.1, "b": 0.1}, lag_by_key={"b": 20.0}) == [False, True]


def test_a_node_that_loses_its_sample_is_held_and_then_as_any_other() -> None:
    world = World("a", rules=rules_of(HELD))
    assert after(world, 0.0, {"a": 0.9}) == [True]
    assert after(world, 15.0, {}) == [True]
    assert after(world, 30.0, {"a": 0.1}) == [True]
    assert after(world, 15.0, {}) == [False]
    assert after(world, 30.0, {"a": 0.9}) == [False]


def test_a_node_that_has_lost_its_sample_is_held_though_others_lag() -> None:
    world = World("a", "b", rules=rules_of(HELD))
    after(world, 0.0, {"a": 0.9, "b": 0.1})
    assert after(world, 15.0, {"b": 0.1}, lag_by_key={"b": 10.0}) == [True, False]


@pytest.mark.parametrize("n_gone", [1, 2])
def test_a_domain_that_vanishes_and_comes_back_is_held(n_gone: int) -> None:
    slow = Rule("hot", "zone", filter=HELD.filter)
    world = World(rules=rules_of(slow))
    for name in ("z1", "z2"):
        world.table.set_node(make_node(name, labels={"zone": name}))
    world.publish({"z1": 0.9, "z2": 0.1}, ZONE)
    for _ in range(n_gone):
        world.clock.now_s += 15.0
        world.publish({"z2": 0.1}, ZONE)
        assert world.tripped() == [False, False], "without a sample, and without a key, nothing is refused"
    world.clock.now_s += 15.0
    world.publish({"z1": 0.1, "z2": 0.1}, ZONE)
    assert world.tripped() == [True, False]
    world.clock.now_s += 30.0
    world.publish({"z1": 0.1}, ZONE)
    assert world.tripped() == [False, False]


def test_a_node_that_is_removed_and_added_again_is_held() -> None:
    world = World("a", "b", rules=rules_of(HELD))
    world.publish({"a": 0.9, "b": 0.1})
    world.table.remove_node("a")
    world.identify()
    after(world, 15.0, {"b": 0.1})
    world.table.set_node(make_node("a"))
    world.identify()
    assert after(world, 15.0, {"a": 0.1, "b": 0.1}) == [True, False]


def test_a_number_for_the_cluster_is_held() -> None:
    world = World("a", rules=rules_of(Rule("hot", "burn", filter=RuleFilter(max=1.0, max_clear=1.0, hold_s=60.0))))
    for seconds, value, expected in ((0.0, 2.0, True), (30.0, 0.0, True), (30.0, 0.0, False)):
        world.clock.now_s += seconds
        world.publish({}, BURN, value=value)
        assert world.tripped() == [expected]


def test_a_reload_keeps_what_is_held_and_a_changed_filter_starts_clear() -> None:
    world = World("a", rules=rules_of(HELD))
    after(world, 0.0, {"a": 0.9})
    world.store.set_rules(rules_of(replace(HELD, weight=7.0), generation=2))
    assert after(world, 15.0, {"a": 0.1}) == [True]
    world.store.set_rules(rules_of(replace(HELD, filter=RuleFilter(max=0.8, max_clear=0.7, hold_s=61.0)), generation=3))
    assert world.tripped() == [False]


def test_a_hold_time_outlasts_the_samples_but_an_absent_signal_refuses_nobody() -> None:
    long = replace(HELD, filter=RuleFilter(max=0.8, max_clear=0.7, hold_s=200.0))
    world = World("a", rules=rules_of(long))
    after(world, 0.0, {"a": 0.9})
    world.clock.now_s += 100.0
    assert world.tripped() == [False]
    assert after(world, 0.0, {"a": 0.1}) == [True]
    assert after(world, 100.0, {"a": 0.1}) == [False]


def test_a_new_leader_starts_clear() -> None:
    world = World("a", rules=rules_of(HELD))
    after(world, 0.0, {"a": 0.9})
    world.store = SignalStore(world.clock)
    world.store.add_identity(world.identity)
    world.store.set_rules(rules_of(HELD))
    assert after(world, 15.0, {"a": 0.1}) == [False]


def test_what_lacks_a_sample_is_refused_at_once_where_the_rule_says_so() -> None:
    strict = replace(HELD, filter=RuleFilter(max=0.8, max_clear=0.8, hold_s=60.0, missing=FilterMissing.REJECT))
    world = World("a", rules=rules_of(strict))
    assert world.publish({"a": 0.1}) == {"hot"}
    assert world.publish({}) == {"hot"}


@settings(max_examples=300, deadline=None)
@given(
    hold_s=st.floats(1.0, 300.0),
    interval_s=st.floats(1.0, 60.0),
    period_s=st.floats(2.0, 400.0),
    phase_s=st.floats(0.0, 400.0),
    duty=st.floats(0.1, 0.9),
    seed=st.integers(0, 2**32),
)
def test_a_square_wave_flips_a_node_at_most_once_per_hold_time(
    hold_s: float, interval_s: float, period_s: float, phase_s: float, duty: float, seed: int
) -> None:
    random = Random(seed)
    rule = replace(HELD, filter=RuleFilter(max=0.8, max_clear=0.7, hold_s=hold_s))
    world = World("a", "b", rules=rules_of(rule))
    began_s, flips_s, last, steady_since_s, wave = world.clock.now_s, list[float](), False, -math.inf, False
    for _ in range(60):
        world.clock.now_s += interval_s
        now_s = world.clock.now_s
        is_high = ((now_s - began_s + phase_s) % period_s) < duty * period_s
        steady_since_s, wave = (steady_since_s, wave) if is_high == wave else (now_s, is_high)
        has_sample = random.random() < 0.9
        world.publish({"a": 0.95 if is_high else 0.05} if has_sample else {})
        if random.random() < 0.1:
            world.store.set_rules(rules_of(replace(rule, weight=random.random()), generation=2))
        bit = bool(world.tripped()[0])
        if bit != last:
            flips_s.append(now_s)
        last = bit
        if has_sample and now_s - steady_since_s >= hold_s and not (flips_s and now_s - flips_s[-1] < hold_s):
            assert bit == is_high, "once it may change, it follows"
    assert all(later - earlier >= hold_s for earlier, later in pairwise(flips_s))
