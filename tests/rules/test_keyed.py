"""What Pods read of cards, workloads and pairs, through the real ingest, the store and the plugins."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest

from scheduler.decision.decide import decide
from scheduler.decision.record import record_of
from scheduler.model.pods import PodInfo
from scheduler.model.rules import (
    Calls,
    Rule,
    RuleFilter,
    RuleScore,
    ScoreMissing,
)
from scheduler.plugins.signals import SignalFilter
from tests.builders import compiled, default_profile, make_pod
from tests.plugins.run import refusals
from tests.signals.columns.keyed_world import (
    CARD_SAMPLES,
    CART,
    FALLING,
    GPU,
    P99,
    PAIR_SAMPLES,
    RTT,
    ZONES,
    Kept,
    Sample,
    cards,
    cart,
    over_cards,
    pairs,
    workload,
)


def over_pairs(limits: RuleFilter | None = None, calls: Calls = Calls(CART)) -> Rule:  # noqa: B008
    return Rule("r", "rtt", filter=limits, score=FALLING, calls=calls)


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
        tripped = compiled(rule, snapshot).reading.tripped(pod, snapshot)
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
    kept.publish(GPU, CARD_SAMPLES)
    table = kept.table()
    assert table.columns["util"].values[:3].tolist() == [55.25, 95.0, 50.0]
    assert table.columns["util"].has_sample.tolist() == [True, True, True, False, False]
    assert table.tripped["r"].tolist() == [True, True, False, False, False]


def test_a_snapshot_can_be_detached() -> None:
    kept = Kept(over_pairs(RuleFilter(max=5.0, max_clear=5.0)), pods=[cart("a")])
    kept.publish(RTT, PAIR_SAMPLES)
    detached = kept.snapshot().detach()
    kept.publish(RTT, pairs(z1z1=100.0))
    assert "".join(sorted(refusals(SignalFilter(), make_pod(), detached))) == "cd"


def test_a_record_says_whose_value_it_was_and_that_the_valve_was_open() -> None:
    kept = Kept(over_cards(RuleFilter(max=90.0, max_clear=90.0, valve=0.3)))
    kept.publish(GPU, CARD_SAMPLES)
    profile = default_profile()
    told = []
    for n in (1, 3):
        pod, snapshot = make_pod(extended={"nvidia.com/gpu": n}), kept.snapshot()
        (use,) = record_of(pod, snapshot, decide(pod, snapshot, profile), "vane", 0.0).rules
        told.append((use.key, use.is_valve_open))
    assert told == [("1", False), ("3", True)]
