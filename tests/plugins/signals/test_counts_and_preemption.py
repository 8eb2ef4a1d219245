"""Preemption beside rules that count: nobody is pushed aside for a count, and no Pod that a count needs."""

from __future__ import annotations

import pytest

from scheduler.decision.decide import decide
from scheduler.decision.decision import Decision
from scheduler.model.pods import PodInfo
from scheduler.model.signals import SignalTable
from scheduler.model.snapshot import Snapshot
from scheduler.signals.format.rule_files import parse_rule_files
from tests.builders import cluster_of, default_profile, make_node, make_pod

PROFILE = default_profile()


def rules(signal: str, limit: str) -> SignalTable:
    text = f"""\
apiVersion: vane.dev/v1
kind: Rules
signals: {{it: {signal}}}
rules:
  - {{name: limit, signal: it, filter: {{{limit}}}}}
"""
    return SignalTable(parse_rule_files({"a.yaml": text.encode()}))


def low(name: str, node: str, app: str) -> PodInfo:
    return make_pod(name, node=node, labels={"app": app}, priority=0, cpu="4")


def decided(table: SignalTable, *pods: PodInfo, nodes: str = "ab", asking: PodInfo | None = None) -> Decision:
    state = cluster_of([make_node(name, labels={"zone": "z"}) for name in nodes], pods)
    pod = asking or make_pod("high", labels={"app": "web"}, priority=100, cpu="4")
    return decide(pod, Snapshot(state, table, 0.0), PROFILE)


COUNT = "{count: {same: [app]}}"


def test_nobody_is_pushed_aside_to_make_a_count_smaller() -> None:
    there = make_pod("there", node="a", labels={"app": "web"}, priority=0)
    decision = decided(rules(COUNT, "max: 0"), there, nodes="a")

    assert not decision.nomination
    assert decision.victims == ()


def test_who_is_in_the_way_for_other_reasons_may_be_one_that_counted() -> None:
    decision = decided(rules(COUNT, "max: 0"), low("there", "a", "web"), nodes="a")

    assert decision.nomination == "a"


def test_one_that_will_count_on_for_its_window_is_left_in_peace() -> None:
    table = rules("{count: {same: [app], window: 1h}}", "max: 0")
    decision = decided(table, low("a-web", "a", "web"), low("b-db", "b", "db"))
    assert (decision.nomination, [pod.name for pod in decision.victims]) == ("b", ["b-db"])

    assert not decided(table, low("there", "a", "web"), nodes="a").nomination


def test_who_is_in_the_way_for_other_reasons_is_pushed_aside_where_the_count_allows_it() -> None:
    companion = make_pod("companion", node="a", labels={"app": "web"}, priority=200)
    decision = decided(rules(COUNT, "max: 0"), low("a-web", "a", "web"), companion, low("b-db", "b", "db"))

    assert decision.nomination == "b"
    assert [pod.name for pod in decision.victims] == ["b-db"]


@pytest.mark.parametrize("signal", [COUNT, "{count: {same: [app]}, by: zone}", "{count: {same: [app]}, by: cluster}"])
def test_a_pod_that_a_count_needs_is_no_victim(signal: str) -> None:
    """Without the only Pod of its kind the node would refuse: pushing that one aside would help nobody."""
    decision = decided(rules(signal, "min: 1"), low("web", "a", "web"), nodes="a")

    assert not decision.nomination
    assert decision.victims == ()


def test_of_two_nodes_the_one_that_keeps_enough_is_emptied() -> None:
    companion = make_pod("companion", node="b", labels={"app": "web"}, priority=200)
    decision = decided(rules(COUNT, "min: 1"), low("a-web", "a", "web"), low("b-web", "b", "web"), companion)

    assert decision.nomination == "b"
    assert [pod.name for pod in decision.victims] == ["b-web"]


@pytest.mark.parametrize(("signal", "limit"), [("{pods: {}}", "min: 1"), ("{requested: cpu, unit: ratio}", "min: 50%")])
def test_sums_over_pods_are_those_without_the_victims(signal: str, limit: str) -> None:
    assert not decided(rules(signal, limit), low("there", "a", "web"), nodes="a").nomination


def test_pods_that_were_promised_the_node_count() -> None:
    rival = make_pod("rival", nominated="a", labels={"app": "web"}, priority=100)
    asking = make_pod("new", labels={"app": "web"}, priority=100)

    assert decided(rules(COUNT, "max: 0"), rival, asking=asking).node_name == "b"
