"""A rule for which samples end earlier than the signal says: it alone fades, misses and brings Pods back earlier."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from scheduler.framework.status import Rejection
from scheduler.model.rules import Curve, FilterMissing, Rule, RuleFilter, RuleScore
from scheduler.model.signals import Freshness
from scheduler.model.snapshot import Snapshot
from scheduler.plugins.signals import SignalFilter
from tests.builders import cluster_of, compiled, make_node, make_pod
from tests.signals.columns.store_world import World, rules_of

NODES = [make_node(name) for name in "abc"]
POD = make_pod()
PATIENT = Rule("patient", "cpu", filter=RuleFilter(max=0.8), score=RuleScore(Curve((0.0, 1.0), (100.0, 0.0))))
HASTY = replace(PATIENT, name="hasty", max_age_s=40.0)


def world_of(*rules: Rule) -> World:
    return World("a", "b", "c", rules=rules_of(*rules))


def snapshot(world: World) -> Snapshot:
    return Snapshot(cluster_of(NODES), world.freeze(), world.clock.now_s)


def freshness(rule: Rule, at: Snapshot) -> Freshness:
    column = compiled(rule, at).reading.column(POD, at)
    assert column is not None
    return column.freshness


@pytest.mark.parametrize(
    ("age_s", "hasty", "patient"),
    [
        (30.0, Freshness.FRESH, Freshness.FRESH),
        (39.0, Freshness.FADING, Freshness.FADING),
        (41.0, Freshness.ABSENT, Freshness.FADING),
        (61.0, Freshness.ABSENT, Freshness.ABSENT),
    ],
)
def test_it_ends_earlier_and_no_other_does(age_s: float, hasty: Freshness, patient: Freshness) -> None:
    world = world_of(HASTY, PATIENT)
    world.publish({"a": 0.9, "b": 0.5, "c": 0.1})
    world.clock.now_s += age_s
    at = snapshot(world)

    assert (freshness(HASTY, at), freshness(PATIENT, at)) == (hasty, patient)
    for rule, state in ((HASTY, hasty), (PATIENT, patient)):
        tripped = compiled(rule, at).reading.tripped(POD, at)
        assert (None if tripped is None else tripped.tolist()) == (
            None if state is Freshness.ABSENT else [True, False, False]
        )
        assert at.signals.tripped[rule.name].any() == (state is not Freshness.ABSENT)


def test_it_fades_faster() -> None:
    world = world_of(HASTY, PATIENT)
    world.publish({"a": 1.0, "b": 0.5, "c": 0.0})
    world.clock.now_s += 35.0
    at = snapshot(world)

    assert compiled(HASTY, at).scores(POD, at).tolist() == pytest.approx([25.0, 50.0, 75.0])
    assert compiled(PATIENT, at).scores(POD, at).tolist() == pytest.approx([50 - 50 * 25 / 30, 50.0, 50 + 50 * 25 / 30])


def test_while_all_is_fresh_nothing_is_made_anew() -> None:
    world = world_of(HASTY)
    world.publish({"a": 1.0, "b": 0.5, "c": 0.0})
    at = snapshot(world)

    assert compiled(HASTY, at).reading.column(POD, at) is at.signals.columns["cpu"]
    assert compiled(HASTY, at).reading.tripped(POD, at) is at.signals.tripped["hasty"]


def test_a_node_whose_own_sample_is_old_misses_earlier() -> None:
    strict = replace(HASTY, filter=RuleFilter(max=0.8, missing=FilterMissing.REJECT))
    world = world_of(strict, PATIENT)
    world.publish({"a": 0.9, "b": 0.9, "c": 0.1}, lag_by_key={"a": 35.0})
    world.clock.now_s += 10.0
    at = snapshot(world)

    for rule, tripped in ((strict, [False, True, False]), (PATIENT, [True, True, False])):
        found = compiled(rule, at).reading.tripped(POD, at)
        assert found is not None
        assert found.tolist() == tripped
    unmeasured = compiled(strict, at).reading.unmeasured(POD, at)
    assert unmeasured is not None
    assert unmeasured.tolist() == [True, False, False]


def test_what_it_misses_it_refuses_where_it_says_so_and_the_valve_counts_that() -> None:
    strict = replace(HASTY, filter=RuleFilter(max=0.8, missing=FilterMissing.REJECT, valve=0.5))
    world = world_of(strict)
    world.publish({"a": 0.9, "b": 0.5, "c": 0.1})
    assert not compiled(strict, snapshot(world)).reading.is_valve_open(POD, snapshot(world))
    world.clock.now_s += 41.0
    at = snapshot(world)

    assert compiled(strict, at).reading.is_valve_open(POD, at)
    without = replace(strict, filter=RuleFilter(max=0.8, missing=FilterMissing.REJECT))
    world.store.set_rules(rules_of(without, generation=2))
    assert refused(snapshot(world)) == [True, True, True]


def refused(at: Snapshot) -> list[bool]:
    found: list[Rejection] = list(SignalFilter().filter(None, POD, at, slice(None)))
    masks: list[bool] = np.logical_or.reduce([one.mask for one in found]).tolist()
    return masks


def test_pods_come_back_when_it_ends_and_when_it_has_a_sample_again() -> None:
    strict = replace(HASTY, filter=RuleFilter(max=0.8, missing=FilterMissing.REJECT))
    world = world_of(strict, PATIENT)
    world.publish({"a": 0.1, "b": 0.1, "c": 0.1})
    world.clock.now_s += 41.0
    assert world.store.expire(world.clock.now_s) == {"hasty"}
    assert world.store.expire(world.clock.now_s) == frozenset(), "said once"
    assert world.publish({"a": 0.1, "b": 0.1, "c": 0.1}) == {"hasty"}
    assert world.store.expire(world.clock.now_s) == frozenset()
    world.clock.now_s += 61.0
    assert world.store.expire(world.clock.now_s) == {"hasty", "patient"}


def test_another_max_age_is_another_rule_with_the_same_trips() -> None:
    world = world_of(PATIENT)
    world.publish({"a": 0.9, "b": 0.1, "c": 0.1})
    assert world.store.set_rules(rules_of(replace(PATIENT, max_age_s=40.0), generation=2)) == {"patient"}
    assert world.tripped("patient") == [True, False, False]
