"""The kinds with two keys beside what else is done to samples: smoothing, hold times, reloads, unknown nodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from scheduler.model.rules import RuleFilter, RuleSet
from tests.builders import make_pod
from tests.signals.columns.keyed_world import FALLING, GPU, Kept, cards, over_cards, wanting

ONE = wanting(1)


def test_cards_are_ranked_by_what_is_smoothed() -> None:
    kept = Kept(over_cards(score=FALLING), signals=(replace(GPU, smoothing_s=1e6),))
    kept.publish(GPU, cards("a", 0, 100))
    kept.publish(GPU, cards("a", 100, 0))
    best = kept.values(ONE)[0]
    assert best == pytest.approx(0.0, abs=0.01), "the first card, which has hardly risen"
    assert kept.values(wanting(2))[0] == pytest.approx(100.0, abs=0.01)


def test_a_hold_time_is_of_each_card() -> None:
    kept = Kept(over_cards(RuleFilter(max=90.0, max_clear=90.0, hold_s=30.0)))
    kept.publish(GPU, [*cards("a", 95), *cards("b", 10)])
    assert kept.refused(ONE) == "a"
    kept.clock.now_s += 10.0
    kept.publish(GPU, [*cards("a", 10), *cards("b", 95)])
    assert kept.refused(ONE) == "ab", "b is new above the limit, a is held"
    kept.clock.now_s += 25.0
    kept.publish(GPU, [*cards("a", 10), *cards("b", 10)])
    assert kept.refused(ONE) == "b"


def test_a_card_that_vanishes_and_comes_back_is_held_and_smoothed() -> None:
    signal = replace(GPU, smoothing_s=10.0)
    kept = Kept(over_cards(RuleFilter(max=90.0, max_clear=90.0, hold_s=60.0), FALLING), signals=(signal,))
    kept.publish(signal, [*cards("a", 100), *cards("b", 0)])
    for _ in range(2):
        kept.clock.now_s += 3.5
        kept.publish(signal, cards("b", 0))
        assert kept.refused(ONE) == "", "no card, no verdict"
    kept.publish(signal, [*cards("a", 0), *cards("b", 0)])
    assert kept.values(ONE)[:2] == pytest.approx([50.0, 0.0]), "10 s after its last sample"
    assert kept.refused(ONE) == "a"


def test_a_reload_keeps_the_trips_of_what_is_unchanged() -> None:
    rule = over_cards(RuleFilter(max=90.0, max_clear=70.0))
    kept = Kept(rule)
    kept.publish(GPU, cards("a", 95))
    kept.publish(GPU, cards("a", 80))
    assert kept.store.set_rules(RuleSet({"util": GPU}, (replace(rule, weight=5.0),), 2)) == frozenset()
    assert kept.refused(ONE) == "a"
    tighter = replace(rule, filter=RuleFilter(max=90.0, max_clear=75.0))
    assert kept.store.set_rules(RuleSet({"util": GPU}, (tighter,), 3)) == {"r"}
    assert kept.refused(ONE) == "", "a changed rule starts clear"


def test_other_keys_are_another_signal() -> None:
    kept = Kept(over_cards(score=FALLING))
    kept.publish(GPU, cards("a", 95))
    kept.store.set_rules(RuleSet({"util": replace(GPU, expr="other")}, kept.rules.rules, 2))
    assert kept.values(ONE) == [None] * 5


def test_an_answer_for_nodes_that_are_not_remembered_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    kept = Kept(over_cards(score=FALLING))
    kept.publish(GPU, cards("a", 95))
    kept.resolver.identity = type(kept.resolver.identity)(77, kept.resolver.identity.names, {})
    kept.publish(GPU, cards("a", 5))
    assert kept.values(ONE)[0] == 95.0
    assert "an answer for unknown nodes was dropped" in caplog.text


def test_columns_follow_nodes_that_come_and_go() -> None:
    kept = Kept(over_cards(RuleFilter(max=90.0, max_clear=90.0), FALLING))
    kept.publish(GPU, [*cards("a", 95), *cards("b", 10)])
    kept.state.remove_node("a")
    assert kept.values(ONE) == [None, 10, None, None, None]
    assert kept.refused(ONE) == ""


def test_a_cycle_with_nothing_new_shares_what_is_brought_to_the_rows() -> None:
    kept = Kept(over_cards(RuleFilter(max=90.0, max_clear=90.0), FALLING))
    kept.publish(GPU, cards("a", 95))
    one = kept.table()
    kept.clock.now_s += 1.0
    two = kept.table()
    assert two.keyed["util"] is one.keyed["util"]
    assert two.generation == one.generation
    kept.publish(GPU, cards("a", 95))
    three = kept.table()
    assert three.keyed["util"] is not two.keyed["util"]
    assert three.keyed["util"].inner is two.keyed["util"].inner, "the keys are the same"


def test_no_node_and_no_sample() -> None:
    empty = Kept(over_cards(RuleFilter(max=90.0, max_clear=90.0), FALLING))
    empty.publish(GPU, [])
    assert empty.values(ONE) == [None] * 5
    assert empty.refused(ONE) == ""
    assert empty.refused(make_pod()) == ""
    nowhere = Kept(over_cards(RuleFilter(max=90.0, max_clear=90.0), FALLING), zones={})
    assert nowhere.values(ONE) == []
    assert np.shape(nowhere.table().columns["util"].values) == (0,)
