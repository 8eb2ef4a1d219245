"""A filter with `soft_after`: a Pod that has waited longer is only scored by the rule."""

from __future__ import annotations

from tests.builders import make_node, make_pod
from tests.loop.harness import Harness

RULES = """
apiVersion: vane.dev/v1
kind: Rules
signals:
  use: {expr: use, by: node, unit: ratio, max_age: 1d}
rules:
  - name: hot
    signal: use
    filter: {max: 0.8, soft_after: 10m}
    score: {best: 0, worst: 1}
    weight: 10
"""
HOT = {"a": 0.95, "b": 0.9}


def hot_cluster(rules: str = RULES) -> Harness:
    harness = Harness()
    harness.list_nodes(make_node("a"), make_node("b"))
    harness.list_pods()
    harness.load_rules(rules)
    harness.answer("use", HOT)
    return harness


def run_until(harness: Harness, end_s: float) -> None:
    """Let time pass in steps of a second, as the loop does."""
    while harness.now_s < end_s:
        harness.now_s += 1.0
        harness.world.queue.tick(harness.now_s)
        harness.run()


def test_a_pod_is_refused_until_it_has_waited_long_enough_and_then_goes_where_the_rule_says_best() -> None:
    harness = hot_cluster()
    begun_s = harness.now_s
    harness.see(make_pod("p"))
    run_until(harness, begun_s + 599.0)
    assert harness.placed() == {}
    run_until(harness, begun_s + 602.0)
    assert harness.placed() == {"p": "b"}
    record = harness.world.records.latest("default/p")
    assert record is not None
    (use,) = record.rules
    assert (use.rule, use.is_soft, use.acts, use.value) == ("hot", True, True, 0.9)
    assert [term.name for term in record.terms if term.name == "hot"] == ["hot"], "it scores as ever"


def test_pods_that_a_rule_holds_back_are_counted_until_they_are_placed() -> None:
    harness = hot_cluster()
    begun_s = harness.now_s
    harness.see(make_pod("p"))
    harness.see(make_pod("too-large", cpu="1000"))
    harness.run()
    assert 'vane_rule_held_pods{rule="hot"} 1.0' in harness.metrics_page(), "no node has room for the other"
    run_until(harness, begun_s + 602.0)
    assert 'vane_rule_held_pods{rule="hot"} 0.0' in harness.metrics_page()


def test_what_a_pod_spends_gated_does_not_count() -> None:
    harness = hot_cluster()
    begun_s = harness.now_s
    gated = make_pod("p", version="1", spec={"schedulingGates": [{"name": "quota"}]})
    harness.see(gated)
    run_until(harness, begun_s + 1200.0)
    harness.see(make_pod("p", version="2"), "MODIFIED")
    run_until(harness, begun_s + 1200.0 + 590.0)
    assert harness.placed() == {}
    run_until(harness, begun_s + 1200.0 + 610.0)
    assert harness.placed() == {"p": "b"}


def test_without_it_a_pod_waits_as_long_as_the_rule_refuses() -> None:
    harness = hot_cluster(RULES.replace(", soft_after: 10m", ""))
    begun_s = harness.now_s
    harness.see(make_pod("p"))
    run_until(harness, begun_s + 1800.0)
    assert harness.placed() == {}


def test_of_two_rules_the_later_one_still_refuses() -> None:
    other = """
  - {name: hotter, signal: use, filter: {max: 0.85, soft_after: 20m}}
"""
    harness = hot_cluster(RULES + other)
    begun_s = harness.now_s
    harness.see(make_pod("p"))
    run_until(harness, begun_s + 1195.0)
    assert harness.placed() == {}
    run_until(harness, begun_s + 1203.0)
    assert harness.placed() == {"p": "b"}


def test_a_wave_that_waited_together_does_not_come_back_at_once() -> None:
    harness = hot_cluster()
    begun_s = harness.now_s
    for i in range(60):
        harness.see(make_pod(f"p-{i}", cpu="10m"))
    run_until(harness, begun_s + 599.0)
    assert harness.placed() == {}
    harness.now_s = begun_s + 600.0
    harness.world.queue.tick(harness.now_s)
    harness.run()
    assert len(harness.placed()) < 60, "within the same moment"
    n_placed = 0
    for _ in range(10):
        n_placed += len(harness.placed())
        harness.settle()
        harness.now_s += 0.5
        harness.world.queue.tick(harness.now_s)
        harness.run()
    assert n_placed == 60
