from __future__ import annotations

import copy
import math
import pickle
import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from scheduler.model.rules import (
    Canary,
    Curve,
    FilterMissing,
    Mode,
    Rule,
    RuleFilter,
    Signal,
    WeightSignal,
)
from scheduler.model.signals import Freshness
from tests.builders import make_node
from tests.signals.columns.store_world import BURN, CPU, HOT, SCORED, ZONE, World, crossed, rules_of


def test_before_the_first_answer_every_signal_is_absent() -> None:
    table = World("a", "b", rules=rules_of(HOT)).freeze()
    assert set(table.columns) == {"cpu", "zone", "burn"}
    assert table.columns["cpu"].age_s == math.inf
    assert table.columns["cpu"].freshness is Freshness.ABSENT
    assert np.isnan(table.columns["cpu"].values).all()
    assert table.tripped["hot"].tolist() == [False, False]
    assert table.open_valves == frozenset()


def test_values_stand_in_the_rows_of_their_nodes() -> None:
    world = World("c", "a", "b", rules=rules_of(HOT))
    world.publish({"a": 0.1, "b": 0.9})
    assert world.values() == [None, 0.1, 0.9]
    assert world.tripped() == [False, False, True]


def test_age_is_time_since_evaluation_plus_lag() -> None:
    world = World("a", rules=rules_of())
    world.publish({"a": 1.0}, lag_s=12.0)
    world.clock.now_s += 10.0
    assert world.freeze().columns["cpu"].age_s == pytest.approx(22.0)


def test_zones_and_the_cluster_are_spread_over_rows() -> None:
    world = World(rules=rules_of())
    for name, zone in (("a", "z1"), ("b", "z2"), ("c", ""), ("d", "z1"), ("e", "z9")):
        world.table.set_node(make_node(name, labels={"zone": zone} if zone else {}))
    world.publish({"z1": 0.1, "z2": 0.2, "gone": 5.0}, ZONE)
    world.publish({}, BURN, value=7.0)
    assert world.values("zone") == [0.1, 0.2, None, 0.1, None]
    assert world.values("burn") == [7.0] * 5
    world.table.set_node(make_node("b", labels={"zone": "z1"}))
    assert world.values("zone") == [0.1, 0.1, None, 0.1, None]
    world.table.remove_node("a")
    assert world.values("zone") == [None, 0.1, None, 0.1, None]


def test_a_label_no_node_has_yet() -> None:
    world = World("a", rules=rules_of())
    world.publish({"z1": 0.1}, ZONE)
    assert world.values("zone") == [None]
    world.table.set_node(make_node("a", labels={"zone": "z1"}))
    assert world.values("zone") == [0.1]


def test_columns_follow_nodes_that_come_and_go() -> None:
    world = World("a", "b", rules=rules_of(HOT))
    world.publish({"a": 0.9, "b": 0.2})
    world.table.remove_node("a")
    assert world.values() == [None, 0.2]
    world.table.set_node(make_node("c"))
    assert world.values() == [None, 0.2], "the new node has taken the row of the old one"
    world.identify()
    assert world.publish({"b": 0.2, "c": 0.95}) == {"hot"}
    assert world.values() == [0.95, 0.2]
    assert world.tripped() == [True, False]


def test_answers_for_an_earlier_identity_still_hit_their_nodes() -> None:
    world = World("a", "b", rules=rules_of())
    answer = world.answer(CPU, {"a": 0.1, "b": 0.2})
    world.table.set_node(make_node("aa"))
    world.identify()
    world.store.publish(answer)
    assert world.values() == [0.1, 0.2, None]


def test_an_answer_for_unknown_nodes_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    world = World("a", rules=rules_of())
    world.publish({"a": 0.1})
    world.clock.now_s += 1.0
    assert world.publish({"a": 0.5}, identity_generation=77) == frozenset()
    assert world.values() == [0.1]
    assert "an answer for unknown nodes was dropped" in caplog.text


def test_trips_change_only_with_samples_and_keep_their_history() -> None:
    world = World("a", "b", rules=rules_of(HOT, SCORED))
    assert world.publish({"a": 0.75, "b": 0.9}) == {"hot"}
    assert world.tripped() == [False, True]
    assert world.publish({"a": 0.75, "b": 0.75}) == frozenset()
    assert world.tripped() == [False, True]
    assert world.publish({"a": 0.75, "b": 0.7}) == {"hot"}
    assert world.tripped() == [False, False]


def test_a_node_without_a_sample_is_not_tripped() -> None:
    world = World("a", rules=rules_of(HOT))
    world.publish({"a": 0.9})
    assert world.publish({}) == {"hot"}
    assert world.tripped() == [False]
    assert world.publish({"a": 0.75}) == frozenset()
    assert world.tripped() == [False]


def test_missing_samples_are_verdicts_where_the_rule_rejects_them() -> None:
    strict = Rule("strict", "cpu", filter=RuleFilter(max=0.8, max_clear=0.8, missing=FilterMissing.REJECT))
    world = World("a", "b", rules=rules_of(strict))
    assert world.publish({"a": 0.1}) == {"strict"}
    assert world.publish({"a": 0.2}) == frozenset()
    assert world.publish({"a": 0.2, "b": 0.2}) == {"strict"}
    assert world.publish({"a": 0.2}) == {"strict"}


def test_a_failure_leaves_the_last_answer_until_it_is_too_old() -> None:
    world = World("a", rules=rules_of(HOT))
    world.publish({"a": 0.9})
    world.clock.now_s += 50.0
    assert world.publish({}, error="refused", error_kind="unreachable") == frozenset()
    assert world.values() == [0.9]
    assert world.tripped() == [True]
    assert world.store.expire(world.clock.now_s) == frozenset()
    world.clock.now_s += 10.1
    table = world.freeze()
    assert table.columns["cpu"].freshness is Freshness.ABSENT
    assert table.tripped["hot"].tolist() == [False]
    assert world.store.expire(world.clock.now_s) == {"hot"}
    assert world.store.expire(world.clock.now_s) == frozenset(), "said once"
    world.clock.now_s += 1000.0
    world.store.expire(world.clock.now_s)
    assert world.store.answer("cpu") is None
    assert world.freeze().columns["cpu"].age_s == math.inf
    world.publish({"a": 0.75})
    assert world.tripped() == [False], "history does not outlive its samples"


def test_late_answers_do_not_displace_newer_ones() -> None:
    world = World("a", rules=rules_of())
    world.publish({"a": 0.2})
    world.publish({"a": 0.1}, evaluated_at_s=world.clock.now_s - 5.0)
    assert world.values() == [0.2]


def test_a_doubtful_answer_opens_the_valve_and_displaces_no_good_one() -> None:
    world = World("a", "b", rules=rules_of(HOT))
    world.publish({"a": 0.9, "b": 0.1})
    world.clock.now_s += 15.0
    assert world.publish({"a": 0.5}, is_suspect=True) == {"hot"}
    table = world.freeze()
    assert world.values() == [0.9, 0.1]
    assert table.open_valves == {"hot"}
    assert table.columns["cpu"].age_s == pytest.approx(15.0)
    (change,) = world.store.drain_valve_changes()
    assert (change.rule, change.is_open, change.reason) == ("hot", True, "suspect")
    assert world.publish({"a": 0.9, "b": 0.1}) == {"hot"}
    assert world.freeze().open_valves == frozenset()
    assert [change.is_open for change in world.store.drain_valve_changes()] == [False]


def test_a_doubtful_answer_is_used_where_no_good_one_is_in_force() -> None:
    world = World("a", rules=rules_of(HOT))
    world.publish({"a": 0.9}, is_suspect=True)
    assert world.values() == [0.9]
    assert world.freeze().open_valves == {"hot"}
    world.clock.now_s += 15.0
    world.publish({"a": 0.4}, is_suspect=True)
    assert world.values() == [0.4]


def test_a_valve_opens_by_the_share_of_living_nodes() -> None:
    valve = Rule("hot", "cpu", filter=RuleFilter(max=0.8, max_clear=0.8, valve=0.5))
    world = World("a", "b", "c", "d", rules=rules_of(valve))
    world.publish({"a": 0.9, "b": 0.9, "c": 0.1, "d": 0.1})
    assert world.freeze().open_valves == frozenset()
    world.table.remove_node("d")
    assert world.freeze().open_valves == {"hot"}
    (change,) = world.store.drain_valve_changes()
    assert (change.n_refused, change.n_nodes, change.reason) == (2, 3, "share")
    assert world.tripped() == [True, True, False, False], "the bits stay for what is shown"


def test_a_valve_counts_nodes_refused_for_want_of_a_sample() -> None:
    limits = RuleFilter(max=0.8, max_clear=0.8, valve=0.5, missing=FilterMissing.REJECT)
    world = World("a", "b", rules=rules_of(Rule("hot", "cpu", filter=limits)))
    assert world.freeze().open_valves == {"hot"}
    world.publish({"a": 0.1, "b": 0.1})
    assert world.freeze().open_valves == frozenset()
    world.clock.now_s += 61.0
    assert world.freeze().open_valves == {"hot"}


def test_answers_to_new_signals_may_come_before_their_rules() -> None:
    world = World("a", rules=rules_of(HOT))
    world.publish({"a": 0.1})
    changed = Signal("cpu", "another_expression")
    assert world.publish({"a": 0.95}, changed) == frozenset()
    assert world.values() == [0.1]
    assert world.store.set_rules(rules_of(HOT, signals=(changed,), generation=2)) == {"hot"}
    assert world.values() == [0.95]
    assert world.tripped() == [True]


def test_a_reload_keeps_the_answers_and_trips_of_what_is_unchanged() -> None:
    world = World("a", "b", rules=rules_of(HOT, Rule("other", "cpu", filter=RuleFilter(max=0.5, max_clear=0.5))))
    world.publish({"a": 0.9, "b": 0.1})
    world.publish({"a": 0.75, "b": 0.1})
    weighted = Rule("hot", "cpu", filter=HOT.filter, score=SCORED.score, weight=9.0, where="moved")
    assert world.store.set_rules(rules_of(weighted, generation=2)) == {"other"}
    assert world.values() == [0.75, 0.1]
    assert world.tripped() == [True, False]
    assert set(world.freeze().tripped) == {"hot"}
    tighter = Rule("hot", "cpu", filter=RuleFilter(max=0.8, max_clear=0.6))
    assert world.store.set_rules(rules_of(tighter, generation=3)) == {"hot"}
    assert world.tripped() == [False, False], "a changed rule starts clear"


def test_a_rule_in_shadow_is_never_among_the_changed_ones() -> None:
    shadow = replace(HOT, mode=Mode.SHADOW)
    world = World("a", "b", rules=rules_of(shadow))
    assert world.publish({"a": 0.9, "b": 0.1}) == frozenset()
    assert world.tripped() == [True, False], "yet it is computed"
    tighter = replace(shadow, filter=RuleFilter(max=0.05, max_clear=0.05))
    assert world.store.set_rules(rules_of(tighter, generation=2)) == frozenset()
    world.clock.now_s += 60.1
    assert world.store.expire(world.clock.now_s) == frozenset()
    assert world.store.set_rules(rules_of(generation=3)) == frozenset()


@pytest.mark.parametrize("trial", [{"mode": Mode.SHADOW}, {"canary": Canary(10.0)}])
def test_a_rule_that_begins_or_ceases_to_act_is_changed_and_keeps_its_trips(trial: dict[str, Any]) -> None:
    world = World("a", "b", rules=rules_of(HOT))
    world.publish({"a": 0.9, "b": 0.1})
    world.publish({"a": 0.75, "b": 0.1})
    assert world.store.set_rules(rules_of(replace(HOT, **trial), generation=2)) == {"hot"}
    assert world.tripped() == [True, False]
    assert world.store.set_rules(rules_of(HOT, generation=3)) == {"hot"}
    assert world.tripped() == [True, False]
    assert world.store.set_rules(rules_of(HOT, generation=4)) == frozenset()


def test_a_cycle_with_nothing_new_shares_the_arrays() -> None:
    world = World("a", "b", rules=rules_of(HOT))
    world.publish({"a": 0.9, "b": 0.1})
    one = world.freeze()
    world.clock.now_s += 1.0
    world.table.add_usage(0, {}, (0, 0), 1)
    two = world.freeze()
    assert two.columns["cpu"].values is one.columns["cpu"].values
    assert two.tripped["hot"] is one.tripped["hot"]
    assert two.generation == one.generation
    assert two.columns["cpu"].age_s == one.columns["cpu"].age_s + 1.0
    world.publish({"a": 0.9, "b": 0.1})
    assert world.freeze().generation > two.generation


def test_arrays_are_read_only_and_tables_can_be_copied() -> None:
    world = World("a", rules=rules_of(HOT))
    world.publish({"a": 0.9})
    world.publish({"z": 1.0}, ZONE)
    table = world.freeze()
    for array in (table.columns["cpu"].values, table.columns["zone"].values, table.tripped["hot"]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    assert copy.deepcopy(table).columns["cpu"].values.tolist() == [0.9]
    assert pickle.loads(pickle.dumps(table)).columns["cpu"].values.tolist() == [0.9]


def test_no_nodes_and_no_rules() -> None:
    world = World(rules=rules_of(HOT))
    assert world.publish({}) == frozenset()
    assert world.freeze().columns["cpu"].values.shape == (0,)
    assert World("a").freeze().columns == {}


def test_publications_from_threads_are_seen_whole() -> None:
    world = World(*(f"n{i}" for i in range(50)), rules=rules_of(HOT))
    is_done = threading.Event()

    def publish(value: float) -> None:
        while not is_done.is_set():
            world.publish(dict.fromkeys(world.identity.names, value))

    threads = [threading.Thread(target=publish, args=(value,)) for value in (0.1, 0.9)]
    world.publish(dict.fromkeys(world.identity.names, 0.1))
    for thread in threads:
        thread.start()
    for _ in range(500):
        table = world.freeze()
        values = set(table.columns["cpu"].values.tolist())
        assert len(values) == 1
        assert set(table.tripped["hot"].tolist()) == {values.pop() > 0.8}
    is_done.set()
    for thread in threads:
        thread.join()


def test_rule_sets_and_identities_cross_processes() -> None:
    rules = rules_of(
        HOT,
        SCORED,
        Rule("w", "cpu", score=SCORED.score, weight=WeightSignal("burn", Curve((0.0, 1.0), (1.0, 2.0)), 0.0)),
        signals=(CPU, Signal("r", "x", range=(-math.inf, math.inf))),
    )
    assert crossed(rules) == rules
    identity = World("a", "b").identity
    assert crossed(identity) == identity


def test_samples_stay_fresh_for_twice_the_time_between_them() -> None:
    signal = Signal("cpu", "node_cpu", is_max_age_written=False)
    world = World("a", rules=rules_of(HOT, signals=(signal,)))
    world.publish({"a": 0.9}, signal, spacing_s=60.0, max_age_s=240.0)
    states: list[tuple[float, str, bool]] = []
    for age_s in (119.0, 121.0, 239.0, 241.0):
        world.clock.now_s += age_s - (states[-1][0] if states else 0.0)
        column = world.freeze().columns["cpu"]
        states.append((age_s, column.freshness.value, bool(world.freeze().tripped["hot"][0])))
    assert states == [
        (119.0, "fresh", True),
        (121.0, "fading", True),
        (239.0, "fading", True),
        (241.0, "absent", False),
    ]
    assert column.signal.shown_after_s == 45.0, "a node's own sample may be so much older than the newest of all"
    world.publish({"a": 0.9}, signal)
    assert world.freeze().columns["cpu"].signal.max_age_s == 60.0
