"""What Pods read of cards, workloads and pairs, through the real ingest, the store and the plugins."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import msgspec
import numpy as np
import pytest

from scheduler.decision.decide import decide
from scheduler.decision.record import record_of
from scheduler.model.pods import PodInfo
from scheduler.model.rules import (
    ByKind,
    Calls,
    FilterMissing,
    Rule,
    RuleFilter,
    RuleScore,
    RuleSet,
    ScoreMissing,
    Signal,
    WorkloadKey,
)
from scheduler.plugins.signals import SignalFilter
from scheduler.rules.concerned import concerns
from scheduler.rules.reading import read_column, read_tripped
from scheduler.signals.asking.asker import SignalAsker
from tests.builders import default_profile, make_node, make_pod
from tests.plugins.run import refusals
from tests.signals.columns.keyed_world import (
    CART,
    FALLING,
    GPU,
    P99,
    RISING,
    RTT,
    ZONES,
    Kept,
    Sample,
    cards,
    cart,
    over_cards,
    pairs,
    wanting,
    workload,
)


def over_pairs(limits: RuleFilter | None = None, calls: Calls = Calls(CART)) -> Rule:  # noqa: B008
    return Rule("r", "rtt", filter=limits, score=FALLING, calls=calls)


class TestCards:
    SAMPLES = (*cards("a", 10, 20, 95, 96), *cards("b", 91, 99), *cards("c", 50))

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
        assert concerns(kept.rules.rules[0], pod) is is_card
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


class TestWorkloads:
    RULE = Rule("r", "p99", score=FALLING, pod_label="app.kubernetes.io/name")

    @staticmethod
    def of(app: str, namespace: str = "shop") -> PodInfo:
        return make_pod(namespace=namespace, labels={"app.kubernetes.io/name": app})

    def test_a_pod_reads_its_own_workload(self) -> None:
        kept = Kept(self.RULE)
        kept.publish(P99, [*workload("shop", "cart", a=10, c=30), *workload("test", "cart", b=20)])
        assert kept.values(self.of("cart")) == [10, None, 30, None, None]
        assert kept.values(self.of("cart", "test")) == [None, 20, None, None, None]
        assert kept.scores(self.of("cart")) == [90, 80, 70, 80, 80]

    def test_a_new_workload_is_neutral_and_may_go_anywhere(self) -> None:
        strict = RuleFilter(max=50.0, max_clear=50.0, missing=FilterMissing.REJECT)
        kept = Kept(Rule("r", "p99", filter=strict, score=FALLING, pod_label="app.kubernetes.io/name"))
        kept.publish(P99, workload("shop", "cart", a=10, c=90))
        assert kept.scores(self.of("new")) == [50.0] * 5
        assert kept.refused(self.of("new")) == ""
        assert not concerns(kept.rules.rules[0], make_pod(namespace="shop"))
        assert kept.refused(make_pod(namespace="shop")) == ""
        assert kept.refused(self.of("cart")) == "bcde"

    def test_without_an_answer_a_strict_rule_refuses_whoever_has_a_workload(self) -> None:
        strict = RuleFilter(max=50.0, max_clear=50.0, missing=FilterMissing.REJECT)
        kept = Kept(Rule("r", "p99", filter=strict, pod_label="app.kubernetes.io/name"))
        assert kept.refused(self.of("cart")) == "abcde"
        assert kept.refused(make_pod()) == ""

    def test_trips_belong_to_a_workload_on_a_node(self) -> None:
        rule = Rule("r", "p99", filter=RuleFilter(max=50.0, max_clear=20.0), pod_label="app.kubernetes.io/name")
        kept = Kept(rule)
        kept.publish(P99, [*workload("shop", "cart", a=60, b=30), *workload("shop", "web", a=30, b=60)])
        kept.publish(P99, [*workload("shop", "about", a=30), *workload("shop", "cart", a=30, b=30)])
        assert kept.refused(self.of("cart")) == "a"
        assert kept.refused(self.of("about")) == ""
        kept.publish(P99, [*workload("shop", "cart", a=30, b=30, c=30), *workload("shop", "web", a=30, b=30)])
        assert kept.refused(self.of("cart")) == "a"
        assert kept.refused(self.of("web")) == "", "it was not measured in between"

    def test_all_namespaces_are_one_without_a_label_for_it(self) -> None:
        anywhere = Signal("p99", "p99", by=ByKind.WORKLOAD, workload=WorkloadKey("app"))
        kept = Kept(self.RULE)
        kept.signals["p99"] = anywhere
        kept.store.set_rules(RuleSet({"p99": anywhere}, (self.RULE,), 2))
        kept.askers["p99"] = SignalAsker(anywhere, kept.clock, lambda: 0.5)
        kept.publish(anywhere, workload("test", "cart", a=10))
        assert kept.values(self.of("cart")) == [10, None, None, None, None]

    def test_pods_of_one_workload_share_their_arrays(self) -> None:
        kept = Kept(self.RULE)
        kept.publish(P99, workload("shop", "cart", a=10))
        first, second = kept.snapshot(), kept.snapshot()
        one, other = read_column(self.RULE, self.of("cart"), first), read_column(self.RULE, self.of("cart"), second)
        assert one is not None
        assert other is not None
        assert one.values is other.values
        with pytest.raises(ValueError, match="read-only"):
            one.values[0] = 1.0


class TestPairs:
    SAMPLES = pairs(z1z1=1.0, z1z2=20.0, z2z1=22.0, z2z2=2.0, z3z1=60.0)

    def test_a_node_has_the_mean_over_the_called_pods(self) -> None:
        kept = Kept(over_pairs(), pods=[cart("a", 0), cart("b", 1), cart("c", 2)])
        kept.publish(RTT, self.SAMPLES)
        # From z1: two of z1, one of z2; from z3 only the way to z1 is measured; e has no zone.
        expected = [(1 + 1 + 20) / 3, (1 + 1 + 20) / 3, (22 + 22 + 2) / 3, 60.0, None]
        assert kept.values(make_pod()) == [value if value is None else pytest.approx(value) for value in expected]

    def test_called_pods_are_of_the_namespace_unless_all_are_meant(self) -> None:
        pods = [cart("a", 0), cart("c", 1, namespace="other")]
        near = Kept(over_pairs(), pods=pods)
        near.publish(RTT, self.SAMPLES)
        assert near.values(make_pod()) == [1.0, 1.0, 22.0, 60.0, None]
        everywhere = Kept(over_pairs(calls=Calls(CART, all_namespaces=True)), pods=pods)
        everywhere.publish(RTT, self.SAMPLES)
        assert everywhere.values(make_pod())[0] == pytest.approx(10.5)

    def test_a_called_pod_that_is_being_deleted_does_not_count(self) -> None:
        leaving = cart("c", 1).pod
        metadata = msgspec.structs.replace(leaving.metadata, deletion_timestamp="2024-01-01T00:00:00Z")
        kept = Kept(over_pairs(), pods=[cart("a"), PodInfo(msgspec.structs.replace(leaving, metadata=metadata))])
        kept.publish(RTT, self.SAMPLES)
        assert kept.values(make_pod())[:3] == [1.0, 1.0, 22.0]

    def test_values_follow_the_called_pods(self) -> None:
        kept = Kept(over_pairs(), pods=[cart("a")])
        kept.publish(RTT, self.SAMPLES)
        snapshot, another = kept.snapshot(), cart("c", 1)
        before = kept.values(make_pod())
        with snapshot.trial() as trial:
            trial.place(another, 2)
            moved = read_column(kept.rules.rules[0], make_pod(), snapshot)
            assert moved is not None
            assert moved.values[0] == pytest.approx(10.5)
        assert kept.values(make_pod()) == before == [1.0, 1.0, 22.0, 60.0, None]

    def test_a_label_of_the_pod_may_name_the_domain(self) -> None:
        kept = Kept(over_pairs(calls=Calls(pod_label="calls-zone")))
        kept.publish(RTT, self.SAMPLES)
        assert kept.values(make_pod(labels={"calls-zone": "z2"})) == [20.0, 20.0, 2.0, None, None]
        assert kept.values(make_pod(labels={"calls-zone": "z9"})) == [None] * 5
        assert not concerns(kept.rules.rules[0], make_pod())

    def test_a_strict_rule_waits_for_nobody_who_is_not_there(self) -> None:
        strict = RuleFilter(max=50.0, max_clear=50.0, missing=FilterMissing.REJECT)
        kept = Kept(over_pairs(strict))
        kept.publish(RTT, self.SAMPLES)
        assert kept.refused(make_pod()) == ""
        kept.state.place(cart("d"), 3)
        assert kept.refused(make_pod()) == "abcde", "nobody measures the way to z3"

    def test_one_pair_has_plain_hysteresis(self) -> None:
        kept = Kept(over_pairs(RuleFilter(max=50.0, max_clear=20.0)), pods=[cart("a")])
        kept.publish(RTT, self.SAMPLES)
        assert kept.refused(make_pod()) == "d"
        kept.publish(RTT, pairs(z1z1=40.0, z2z1=20.0, z3z1=40.0))
        assert kept.refused(make_pod()) == "d"
        kept.publish(RTT, pairs(z1z1=40.0, z2z1=20.0, z3z1=20.0))
        assert kept.refused(make_pod()) == ""

    @pytest.mark.parametrize(("clear", "refused"), [(50.0, ""), (40.0, "ab")])
    def test_several_pairs_are_refused_for_their_mean(self, clear: float, refused: str) -> None:
        """From z1 one of two pairs is tripped, so that the limit for their mean, 50, lies halfway to clear."""
        kept = Kept(over_pairs(RuleFilter(max=58.0, max_clear=clear)), pods=[cart("a", 0), cart("c", 1)])
        kept.publish(RTT, pairs(z1z1=10.0, z1z2=90.0, z2z1=1.0, z2z2=1.0))
        assert kept.refused(make_pod()) == refused

    def test_a_change_of_values_between_tripped_pairs_may_free_nodes(self) -> None:
        kept = Kept(over_pairs(RuleFilter(max=50.0, max_clear=50.0)), pods=[cart("a", 0), cart("c", 1)])
        kept.publish(RTT, pairs(z1z1=10.0, z1z2=95.0))
        assert kept.refused(make_pod()) == "ab"
        assert kept.publish(RTT, pairs(z1z1=1.0, z1z2=95.0)) == {"r"}
        assert kept.refused(make_pod()) == ""

    def test_preemption_counts_the_called_pods_as_they_leave(self) -> None:
        kept = Kept(over_pairs(RuleFilter(max=50.0, max_clear=50.0)), pods=[cart("a", 0), cart("c", 1)])
        kept.publish(RTT, pairs(z1z1=10.0, z1z2=95.0))
        plugin, snapshot = SignalFilter(), kept.snapshot()
        assert plugin.tally(None, make_pod(), snapshot, [cart("a", 0)]) is None
        assert plugin.tally(None, make_pod(), snapshot, [make_pod("other")]) is not None


def slow_reading(samples: Sequence[Sample], rule: Rule, pod: PodInfo, kept: Kept) -> list[float | None]:
    """Every node on its own, in words: the proof of the columns."""
    found: list[float | None] = []
    for name, zone in ZONES.items():
        values: list[float]
        if rule.signal == "util":
            n = sum(amount for resource, amount in pod.requests.items() if resource == "nvidia.com/gpu")
            ranked = sorted(value for labels, value in samples if labels["Hostname"] == name)
            found.append(ranked[min(n, len(ranked)) - 1] if ranked else None)
            continue
        if rule.signal == "p99":
            key = (pod.namespace, pod.labels["app"])
            values = [
                v for labels, v in samples if (labels["namespace"], labels["app"], labels["node"]) == (*key, name)
            ]
        else:
            placed = [one for row in range(5) for one in kept.state.pods_on(row)]
            called = [ZONES[one.pod.spec.node_name] for one in placed if one.labels.get("app") == "cart"]
            way = {(labels["source"], labels["target"]): value for labels, value in samples}
            values = [way[zone, target] for target in called if (zone, target) in way]
        found.append(sum(values) / len(values) if values else None)
    return found


@pytest.mark.parametrize("seed", range(40))
def test_as_the_plain_loop(seed: int) -> None:
    random = Random(seed)
    pods = [cart(random.choice("abcde"), i) for i in range(random.randint(1, 5))]
    rules = (
        over_cards(RuleFilter(max=50.0, max_clear=50.0), FALLING),
        Rule("w", "p99", filter=RuleFilter(max=50.0, max_clear=50.0), pod_label="app"),
        Rule("p", "rtt", filter=RuleFilter(max=50.0, max_clear=50.0), calls=Calls(CART)),
    )
    kept = Kept(*rules, pods=pods)

    def number() -> float:
        return float(random.randint(0, 100))

    samples = {
        "util": [one for node in "abcde" for one in cards(node, *(number() for _ in range(random.randint(0, 4))))],
        "p99": [
            one
            for app in ("cart", "web")
            for one in workload("default", app, **{node: number() for node in "abcde" if random.random() < 0.6})
        ],
        "rtt": pairs(**{f"z{a}z{b}": number() for a in "123" for b in "123" if random.random() < 0.7}),
    }
    pod = make_pod(labels=CART, extended={"nvidia.com/gpu": random.randint(1, 4)})
    for signal in (GPU, P99, RTT):
        found = samples[signal.name]
        kept.publish(signal, random.sample(found, len(found)))
    snapshot = kept.snapshot()
    some = np.array(sorted(random.sample(range(5), 3)))
    for rule in rules:
        expected = slow_reading(samples[rule.signal], rule, pod, kept)
        assert kept.values(pod, rule.name) == [one if one is None else pytest.approx(one) for one in expected]
        tripped = read_tripped(rule, pod, snapshot)
        if tripped is not None:
            assert tripped.tolist() == [one is not None and one > 50.0 for one in expected], rule.name
    whole, part = (SignalFilter().filter(None, pod, snapshot, rows) for rows in (slice(None), some))
    assert [(one.rule, one.mask[some].tolist()) for one in whole] == [(one.rule, one.mask.tolist()) for one in part]


def test_missing_scores_stand_for_a_new_workload_as_written() -> None:
    worst = RuleScore(FALLING.curve, ScoreMissing.WORST)
    kept = Kept(Rule("r", "p99", score=worst, pod_label="app"))
    kept.publish(P99, workload("default", "cart", a=10))
    assert kept.scores(make_pod(labels=CART)) == [90, 0, 0, 0, 0]
    assert kept.scores(make_pod(labels={"app": "new"})) == [0, 0, 0, 0, 0], "alike, so that nothing is preferred"


def test_pages_see_the_mean_of_a_node_and_whether_anything_there_is_refused() -> None:
    kept = Kept(over_cards(RuleFilter(max=90.0, max_clear=90.0)))
    kept.publish(GPU, TestCards.SAMPLES)
    table = kept.table()
    assert table.columns["util"].values[:3].tolist() == [55.25, 95.0, 50.0]
    assert table.columns["util"].has_sample.tolist() == [True, True, True, False, False]
    assert table.tripped["r"].tolist() == [True, True, False, False, False]


def test_a_snapshot_can_be_detached() -> None:
    kept = Kept(over_pairs(RuleFilter(max=5.0, max_clear=5.0)), pods=[cart("a")])
    kept.publish(RTT, TestPairs.SAMPLES)
    detached = kept.snapshot().detach()
    kept.publish(RTT, pairs(z1z1=100.0))
    assert "".join(sorted(refusals(SignalFilter(), make_pod(), detached))) == "cd"


def test_a_record_says_whose_value_it_was_and_that_the_valve_was_open() -> None:
    kept = Kept(over_cards(RuleFilter(max=90.0, max_clear=90.0, valve=0.3)))
    kept.publish(GPU, TestCards.SAMPLES)
    profile = default_profile()
    told = []
    for n in (1, 3):
        pod, snapshot = make_pod(extended={"nvidia.com/gpu": n}), kept.snapshot()
        (use,) = record_of(pod, snapshot, decide(pod, snapshot, profile), "vane", 0.0).rules
        told.append((use.key, use.is_valve_open))
    assert told == [("1", False), ("3", True)]
