"""What Pods read of cards, through the real ingest, the store and the plugins."""

from __future__ import annotations

import pytest

from scheduler.model.rules import (
    FilterMissing,
    RuleFilter,
)
from scheduler.rules.compiled import CompiledRules
from tests.builders import make_node, make_pod
from tests.signals.columns.keyed_world import (
    CARD_SAMPLES,
    FALLING,
    GPU,
    RISING,
    Kept,
    cards,
    over_cards,
    wanting,
)


class TestCards:
    SAMPLES = CARD_SAMPLES

    def test_a_pod_reads_the_worst_of_the_best_cards_that_it_needs(self) -> None:
        kept = Kept(over_cards(score=FALLING))
        kept.publish(GPU, self.SAMPLES)
        assert kept.values(wanting(1)) == [10, 91, 50, None, None]
        assert kept.values(wanting(2)) == [20, 99, 50, None, None]
        assert kept.values(wanting(4)) == [96, 99, 50, None, None]
        assert kept.values(wanting(9)) == [96, 99, 50, None, None]

    def test_best_is_high_where_the_rule_says_so(self) -> None:
        kept = Kept(over_cards(score=RISING))
        kept.publish(GPU, self.SAMPLES)
        assert kept.values(wanting(1)) == [96, 99, 50, None, None]
        assert kept.values(wanting(3)) == [20, 91, 50, None, None]
        least = Kept(over_cards(RuleFilter(min=5.0, min_clear=5.0)))
        least.publish(GPU, self.SAMPLES)
        assert least.values(wanting(1)) == [96, 99, 50, None, None]

    def test_a_node_needs_so_many_cards_within_the_limit(self) -> None:
        kept = Kept(over_cards(RuleFilter(max=90.0, max_clear=90.0)))
        assert kept.publish(GPU, self.SAMPLES) == {"r"}
        assert kept.refused(wanting(1)) == "b"
        assert kept.refused(wanting(2)) == "b"
        assert kept.refused(wanting(3)) == "ab"

    @pytest.mark.parametrize(
        ("resource", "is_card"),
        [
            ("nvidia.com/gpu", True),
            ("nvidia.com/gpu.shared", True),
            ("nvidia.com/mig-1g.10gb", True),
            ("amd.com/gpu", True),
            ("amd.com/cpx_nps4", True),
            ("gpu.intel.com/xe", True),
            ("gpu.intel.com/i915_monitoring", False),
            ("example.com/nvidia.com-gpu", False),
        ],
    )
    def test_only_pods_that_ask_for_cards_are_concerned(self, resource: str, is_card: bool) -> None:
        limits = RuleFilter(max=90.0, max_clear=90.0, missing=FilterMissing.REJECT)
        kept = Kept(over_cards(limits, FALLING))
        kept.publish(GPU, self.SAMPLES)
        pod = make_pod(extended={resource: 1})
        assert CompiledRules(kept.rules).rules[0].concerns(pod) is is_card
        assert kept.refused(pod) == ("bde" if is_card else "")

    def test_trips_belong_to_cards(self) -> None:
        kept = Kept(over_cards(RuleFilter(max=90.0, max_clear=70.0)))
        kept.publish(GPU, [*cards("a", 95, 10), *cards("b", 80, 10)])
        assert kept.refused(wanting(2)) == "a"
        assert kept.publish(GPU, [*cards("a", 80, 10), *cards("b", 80, 10)]) == frozenset()
        assert kept.refused(wanting(2)) == "a", "80 is not clear yet"
        assert kept.publish(GPU, [*cards("a", 10, 80), *cards("b", 80, 10)]) == {"r"}
        assert kept.refused(wanting(2)) == "", "the other card was never tripped"

    def test_trips_outlive_other_cards_and_another_identity(self) -> None:
        kept = Kept(over_cards(RuleFilter(max=90.0, max_clear=70.0)))
        kept.publish(GPU, [*cards("b", 95), *cards("c", 95)])
        node = make_node("aa")
        kept.nodes.append(node)
        kept.state.set_node(node)
        kept.identify()
        kept.publish(GPU, [*cards("aa", 75), *cards("a", 75, 75), *cards("b", 75), *cards("c", 60)])
        assert kept.refused(wanting(1)) == "b"

    def test_a_card_that_has_gone_trips_no_more(self) -> None:
        kept = Kept(over_cards(RuleFilter(max=90.0, max_clear=70.0)))
        kept.publish(GPU, [*cards("a", 10), *cards("b", 95)])
        assert kept.publish(GPU, cards("a", 10)) == {"r"}
        assert kept.refused(wanting(1)) == ""

    def test_a_valve_counts_for_the_pod_at_hand(self) -> None:
        kept = Kept(over_cards(RuleFilter(max=90.0, max_clear=90.0, valve=0.3)))
        kept.publish(GPU, self.SAMPLES)
        assert kept.refused(wanting(1)) == "b", "one of five"
        assert kept.refused(wanting(3)) == "", "two of five are more than 30 %"

    def test_a_doubtful_answer_opens_the_valve(self) -> None:
        kept = Kept(over_cards(RuleFilter(max=90.0, max_clear=90.0)))
        kept.publish(GPU, [sample for node in "abcde" for sample in cards(node, 95)])
        assert kept.refused(wanting(1)) == "abcde"
        kept.publish(GPU, cards("a", 95))
        assert kept.table().open_valves == {"r"}
        assert kept.refused(wanting(1)) == ""

    def test_an_absent_signal_trips_nothing(self) -> None:
        kept = Kept(over_cards(RuleFilter(max=90.0, max_clear=90.0), FALLING))
        kept.publish(GPU, self.SAMPLES)
        kept.clock.now_s += 100.0
        assert kept.refused(wanting(1)) == ""
        assert kept.scores(wanting(1)) == [50.0] * 5
        assert kept.store.expire(kept.clock.now_s) == {"r"}

    def test_without_an_answer_cards_are_missing(self) -> None:
        kept = Kept(over_cards(RuleFilter(max=90.0, max_clear=90.0, missing=FilterMissing.REJECT), FALLING))
        assert kept.refused(wanting(1)) == "abcde"
        assert kept.scores(wanting(1)) == [50.0] * 5
