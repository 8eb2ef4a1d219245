"""Rules in shadow and canaries in the loop: whom they bring back, what the metrics page and the records say of them."""

from __future__ import annotations

import json
import re

import pytest

from scheduler.loop.pages.decisions import DecisionsQuery
from tests.builders import make_node, make_pod
from tests.loop.harness import Harness

RULES = """\
apiVersion: vane.dev/v1
kind: Rules
signals:
  use: {expr: max by (node) (use), by: node, unit: ratio, interval: 10s, max_age: 40s}
rules:
  - name: not-hot
    signal: use
    filter: {max: 0.8, clear: 0.7}
"""
IN_SHADOW = RULES + "    mode: shadow\n"
FOR_TEST = RULES + '    canary: {namespaces: ["test-*"]}\n'
SCORING = IN_SHADOW.replace("mode: shadow", "score: {best: 1, worst: 0}\n    weight: 5\n    mode: shadow")


@pytest.fixture
def harness() -> Harness:
    harness = Harness()
    harness.list_nodes(*(make_node(name) for name in "abc"))
    harness.list_pods()
    return harness


def shadows(harness: Harness) -> dict[str, float]:
    found = re.findall(r'^vane_rule_shadow_(\w+)_total{rule="not-hot"} (\S+)$', harness.metrics_page(), re.M)
    return {name: float(value) for name, value in found}


def refused(harness: Harness) -> float:
    (found,) = re.findall(r'^vane_rule_refused_nodes{rule="not-hot"} (\S+)$', harness.metrics_page(), re.M)
    return float(found)


def test_a_rule_in_shadow_refuses_nobody_and_is_counted(harness: Harness) -> None:
    harness.load_rules(IN_SHADOW)
    assert shadows(harness) == {"attempts": 0, "refusals": 0, "changes": 0}
    harness.answer("use", {"a": 0.9, "b": 0.9, "c": 0.9})
    harness.see(make_pod("web", uid="u"))
    harness.run()

    assert harness.placed().keys() == {"web"}
    (record,) = harness.world.records
    (shadow,) = record.shadows
    assert (shadow.rule, shadow.n_refused, shadow.refuses_chosen, shadow.node) == ("not-hot", 3, True, "")
    for _ in range(2):  # the page does not count them twice
        assert shadows(harness) == {"attempts": 1, "refusals": 3, "changes": 1}
    assert refused(harness) == 0


def test_a_rule_that_would_have_chosen_another_node_names_it(harness: Harness) -> None:
    harness.load_rules(SCORING)
    harness.answer("use", {"a": 0.1, "b": 0.2, "c": 0.6})
    for i in range(10):
        harness.see(make_pod(f"web-{i}", uid=f"u-{i}"))
    harness.run()

    assert {record.shadows[0].node for record in harness.world.records} == {"c"}
    n_changed = sum(record.node != "c" for record in harness.world.records)
    assert n_changed > 0
    assert shadows(harness) == {"attempts": 10, "refusals": 0, "changes": n_changed}


def test_the_page_of_decisions_shows_what_a_shadow_would_have_done(harness: Harness) -> None:
    harness.load_rules(SCORING)
    harness.answer("use", {"a": 0.9, "b": 0.2, "c": 0.6})
    harness.see(make_pod("web", uid="u"))
    harness.run()

    (decision,) = json.loads(harness.page(DecisionsQuery(None, 1)))["decisions"]
    refuses_chosen = decision["node"] == "a"
    assert decision["shadows"] == [
        {"rule": "not-hot", "n_refused": 1, "refuses_chosen": refuses_chosen, "node": "c", "weight": 5.0}
    ]
    assert [(use["rule"], use["acts"]) for use in decision["rules"]] == [("not-hot", False)]
    assert decision["shadow_fault"] == ""


def test_a_canary_refuses_its_pods_only(harness: Harness) -> None:
    harness.load_rules(FOR_TEST)
    harness.answer("use", dict.fromkeys("abc", 0.9))
    harness.see(make_pod("web", uid="u1", namespace="test-eu"))
    harness.see(make_pod("web", uid="u2", namespace="shop"))
    harness.run()

    assert [bind.pod.namespace for bind in harness.binder.binds] == ["shop"]
    assert [report.pod.namespace for report in harness.binder.reports] == ["test-eu"]
    assert shadows(harness) == {"attempts": 1, "refusals": 3, "changes": 1}
    assert refused(harness) == 3

    harness.now_s += 10
    harness.answer("use", dict.fromkeys("abc", 0.5))
    harness.now_s += 1.5
    assert harness.run() == 1, "its refused Pod comes back as that of any rule"


@pytest.mark.parametrize("edited", [IN_SHADOW, FOR_TEST], ids=["to shadow", "to a canary of others"])
def test_pods_that_a_rule_had_refused_come_back_when_it_only_watches_them(harness: Harness, edited: str) -> None:
    harness.load_rules(RULES)
    harness.answer("use", dict.fromkeys("abc", 0.9))
    harness.see(make_pod("web", uid="u", namespace="shop"))
    harness.run()
    assert not harness.placed()

    harness.load_rules(edited, generation=2)

    assert harness.run() == 1
    assert harness.placed().keys() == {"web"}


def test_a_rule_that_leaves_the_shadow_acts_with_the_trips_it_has(harness: Harness) -> None:
    harness.load_rules(IN_SHADOW)
    harness.answer("use", {"a": 0.9, "b": 0.9, "c": 0.1})
    harness.now_s += 10
    harness.answer("use", {"a": 0.75, "b": 0.75, "c": 0.1})
    harness.load_rules(RULES, generation=2)
    for i in range(5):
        harness.see(make_pod(f"web-{i}", uid=f"u-{i}"))
    harness.run()

    assert set(harness.placed().values()) == {"c"}


def test_the_valve_of_a_rule_in_shadow_is_not_reported(harness: Harness, caplog: pytest.LogCaptureFixture) -> None:
    harness.load_rules(IN_SHADOW.replace("clear: 0.7", "valve: 0.5"))
    harness.answer("use", dict.fromkeys("abc", 0.9))
    harness.see(make_pod("web", uid="u"))
    harness.run()
    harness.loop.look_after()

    assert "valve" not in caplog.text
    (record,) = harness.world.records
    assert record.shadows[0].n_refused == 0, "with its valve open it would refuse nobody"
