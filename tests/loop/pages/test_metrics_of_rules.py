"""What the metrics page says of rules: how much say they have, whom they turn away, whether they tell nodes apart."""

from __future__ import annotations

import re

import pytest

from scheduler.kube.watch_stream import Changed
from tests.builders import make_node, make_pod
from tests.loop.harness import Harness

SIGNALS = """\
apiVersion: vane.dev/v1
kind: Rules
signals:
  use: {expr: max by (node) (use), by: node, unit: ratio, interval: 10s, max_age: 40s}
  burn: {expr: burn, by: cluster, interval: 10s, max_age: 40s}
"""
RULES = f"""{SIGNALS}
rules:
  - {{name: not-hot, signal: use, filter: {{max: 0.8}}}}
  - {{name: idle, signal: use, score: {{best: 0, worst: 1}}, weight: 3}}
  - {{name: web, match: {{labels: {{tier: web}}}}, signal: use, score: {{best: 0, worst: 0.5}}, weight: 1}}
"""


@pytest.fixture
def harness() -> Harness:
    harness = Harness()
    harness.list_nodes(*(make_node(name) for name in "abcd"))
    harness.list_pods()
    harness.load_rules(RULES)
    harness.answer("use", {"a": 0.9, "b": 0.2, "c": 0.4, "d": 0.85})
    return harness


def by_rule(harness: Harness, metric: str) -> dict[str, float]:
    found = re.findall(rf'^{metric}{{rule="([^"]+)"}} (\S+)$', harness.metrics_page(), re.M)
    return {rule: float(value) for rule, value in found}


def test_attempts_and_refusals_are_counted_and_stand_at_zero_before(harness: Harness) -> None:
    assert by_rule(harness, "vane_rule_attempts_total") == {"not-hot": 0, "idle": 0, "web": 0}
    assert by_rule(harness, "vane_rule_refusals_total") == {"not-hot": 0}

    harness.see(make_pod("plain"))
    harness.see(make_pod("labelled", labels={"tier": "web"}))
    harness.run()

    for _ in range(2):  # the page does not count them twice
        assert by_rule(harness, "vane_rule_attempts_total") == {"not-hot": 2, "idle": 2, "web": 1}
        assert by_rule(harness, "vane_rule_refusals_total") == {"not-hot": 4}


def test_a_share_is_the_weight_among_all_that_scored(harness: Harness) -> None:
    assert by_rule(harness, "vane_rule_weight_share_ratio") == {}
    harness.see(make_pod("labelled", labels={"tier": "web"}))
    harness.run()
    shares = by_rule(harness, "vane_rule_weight_share_ratio")
    (record,) = harness.world.records
    weights = {term.name: term.weight for term in record.terms}
    assert weights["idle"] == 3 * weights["web"] == 3.0
    assert len(weights) > 2
    assert shares == pytest.approx({name: weights[name] / sum(weights.values()) for name in ("idle", "web")})


def test_a_spread_says_how_far_a_rule_tells_nodes_apart(harness: Harness) -> None:
    assert by_rule(harness, "vane_rule_score_spread") == pytest.approx({"idle": 70, "web": 60})
    harness.now_s += 10
    harness.answer("use", dict.fromkeys("abcd", 0.3))
    assert by_rule(harness, "vane_rule_score_spread") == {"idle": 0, "web": 0}
    harness.now_s += 41
    assert by_rule(harness, "vane_rule_score_spread") == {"idle": 0, "web": 0}


def test_a_node_that_is_gone_spreads_nothing(harness: Harness) -> None:
    harness.loop.apply(Changed("Node", "DELETED", make_node("a")))
    assert by_rule(harness, "vane_rule_score_spread") == pytest.approx({"idle": 65, "web": 60})


def test_without_nodes_there_is_no_spread() -> None:
    harness = Harness()
    harness.list_nodes()
    harness.load_rules(RULES)
    assert by_rule(harness, "vane_rule_score_spread") == {"idle": 0, "web": 0}


def test_a_weight_that_a_signal_sets_is_shown_as_it_is_now(harness: Harness) -> None:
    rule = "{name: burning, signal: use, score: {best: 0, worst: 1}, weight: {signal: burn, points: [[0, 1], [2, 9]]}}"
    harness.load_rules(f"{SIGNALS}rules:\n  - {rule}\n", generation=2)
    assert by_rule(harness, "vane_rule_weight") == {"burning": 1}


def test_a_rule_that_is_gone_leaves_nothing(harness: Harness) -> None:
    harness.see(make_pod("plain"))
    harness.run()
    harness.load_rules(SIGNALS, generation=2)
    page = harness.metrics_page()
    assert not re.findall(r"^vane_rule_\w+\{.*", page, re.M)


def test_the_page_says_how_old_a_sample_may_get(harness: Harness) -> None:
    assert 'vane_signal_max_age_seconds{signal="use"} 40.0' in harness.metrics_page()


def test_conflicts_stand_at_zero_before_the_first(harness: Harness) -> None:
    kinds = re.findall(r'vane_bind_conflicts_total\{kind="(\w+)"\} 0.0', harness.metrics_page())
    assert sorted(kinds) == ["deleted", "gated", "other_node", "same_node"]
