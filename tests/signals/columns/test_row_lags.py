"""Nodes whose own samples are older than those of the others, in the store."""

from __future__ import annotations

import pytest

from scheduler.model.rules import FilterMissing, Rule, RuleFilter
from scheduler.model.signals import Freshness
from tests.builders import make_node
from tests.signals.columns.store_world import CPU, HOT, SCORED, ZONE, World, rules_of

STRICT = Rule("strict", "cpu", filter=RuleFilter(max=0.8, max_clear=0.8, missing=FilterMissing.REJECT))
NODES = {"a": 0.9, "b": 0.2, "c": 0.9}


def test_a_lag_of_a_node_adds_to_the_age_of_its_row_and_ends_its_sample_alone() -> None:
    world = World("a", "b", "c", rules=rules_of(HOT, STRICT))
    world.publish(NODES, lag_s=2.0, lag_by_key={"a": 40.0})

    column = world.freeze().columns["cpu"]
    assert column.age_s == 2.0
    assert [column.age_at(row) for row in range(3)] == [40.0, 2.0, 2.0]
    assert world.tripped() == [True, False, True]

    world.clock.now_s += 20.0
    assert world.values() == [0.9, 0.2, 0.9], "exactly max_age is not too old"
    generation = world.freeze().generation
    world.clock.now_s += 0.5
    table = world.freeze()
    assert world.values() == [None, 0.2, 0.9]
    assert table.columns["cpu"].row_lag_s is None, "nobody lags any more who has a sample"
    assert (world.tripped(), world.tripped("strict")) == ([False, False, True],) * 2
    assert list(table.columns["cpu"].has_sample) == [False, True, True]
    assert table.generation > generation
    assert world.freeze().columns["cpu"].values is table.columns["cpu"].values, "made once"


def test_a_row_that_is_no_longer_fresh_has_not_all_its_confidence_for_a_moment_more() -> None:
    world = World("a", "b", "c", rules=rules_of(HOT, SCORED))
    world.clock.now_s += 0.01
    world.publish(NODES, lag_by_key={"a": 20.0})
    states = []
    for _ in range(100):
        world.clock.now_s += 0.11
        column = world.freeze().columns["cpu"]
        confidence = column.row_confidence
        assert confidence is not None
        states.append(column.freshness_at(0))
        assert states[-1] is Freshness.FRESH or confidence[0] < 1.0
        assert confidence[1] == 1.0, "only its own sample is old"
    assert set(states) == {Freshness.FRESH, Freshness.FADING}


def test_rows_end_one_after_the_other() -> None:
    world = World("a", "b", "c", rules=rules_of(HOT))
    world.publish(NODES, lag_by_key={"a": 50.0, "b": 40.0})
    seen = []
    for _ in range(3):
        seen.append(world.values())
        world.clock.now_s += 10.5
    assert seen == [[0.9, 0.2, 0.9], [None, 0.2, 0.9], [None, None, 0.9]]


def test_a_verdict_that_ends_with_a_sample_is_told_with_the_next_answer() -> None:
    world = World("a", "b", "c", rules=rules_of(HOT))
    world.publish(NODES, lag_by_key={"a": 50.0})
    world.clock.now_s += 15.0
    assert world.publish({"b": 0.2, "c": 0.9}) == {"hot"}
    assert world.publish({"b": 0.2, "c": 0.9}) == frozenset()


def test_the_next_answer_brings_a_node_back() -> None:
    world = World("a", "b", "c", rules=rules_of(HOT))
    world.publish(NODES, lag_by_key={"a": 59.0})
    world.clock.now_s += 15.0
    assert world.values() == [None, 0.2, 0.9]
    world.publish({**NODES, "a": 0.75})
    assert world.values() == [0.75, 0.2, 0.9]
    assert world.freeze().columns["cpu"].row_lag_s is None


@pytest.mark.parametrize("lag_by_key", [{}, {"somebody else": 59.0}])
def test_with_nobody_lagging_nothing_is_kept_by_row(lag_by_key: dict[str, float]) -> None:
    world = World("a", "b", "c", rules=rules_of(HOT))
    world.publish(NODES, lag_by_key=lag_by_key)
    assert world.freeze().columns["cpu"].row_lag_s is None


def test_domains_lag_as_nodes_do() -> None:
    world = World("a", rules=rules_of(signals=(CPU, ZONE)))
    for i in range(3):
        world.table.set_node(make_node(f"z{i}", labels={"zone": f"z{i}"}))
    world.publish({"z1": 1.0, "z2": 2.0}, ZONE, lag_by_key={"z2": 30.0})

    column = world.freeze().columns["zone"]
    assert [column.age_at(row) for row in range(4)] == [0.0, 0.0, 0.0, 30.0]
