"""Signals and rules as they arrive: whom they refuse, whom they bring back, what is said when it goes wrong."""

from __future__ import annotations

import pytest

from scheduler.loop.messages import RulesRefused, Stop
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


@pytest.fixture
def harness() -> Harness:
    harness = Harness()
    harness.list_nodes(*(make_node(name) for name in "abc"))
    harness.list_pods()
    harness.load_rules(RULES)
    return harness


def test_a_refused_pod_says_which_rule_and_comes_back_with_the_next_sample(harness: Harness) -> None:
    harness.answer("use", dict.fromkeys("abc", 0.9))
    harness.see(make_pod("web", uid="u"))
    harness.run()
    refused = '0/3 nodes are available: 3 node(s) rejected by rule "not-hot".'
    assert harness.binder.reports[0].message.startswith(refused)

    harness.now_s += 10
    harness.answer("use", {"a": 0.9, "b": 0.5, "c": 0.9})
    harness.now_s += 1.5
    harness.run()

    assert harness.placed() == {"web": "b"}


def test_a_sample_between_limit_and_clear_keeps_the_refusal(harness: Harness) -> None:
    harness.answer("use", {"a": 0.9, "b": 0.75, "c": 0.9})
    harness.now_s += 10
    harness.answer("use", {"a": 0.75, "b": 0.75, "c": 0.9})
    for i in range(5):
        harness.see(make_pod(f"web-{i}", uid=f"u-{i}"))

    harness.run()

    assert set(harness.placed().values()) == {"b"}


def test_an_edit_frees_refused_pods_at_once_without_their_backoff(harness: Harness) -> None:
    harness.answer("use", dict.fromkeys("abc", 0.9))
    harness.see(make_pod("web", uid="u"))
    harness.run()

    harness.load_rules(RULES.replace("max: 0.8, clear: 0.7", "max: 0.95"), generation=2)

    assert harness.run() == 1
    assert harness.placed().keys() == {"web"}


def test_a_rule_that_is_taken_away_frees_its_pods(harness: Harness) -> None:
    harness.answer("use", dict.fromkeys("abc", 0.9))
    harness.see(make_pod("web", uid="u"))
    harness.run()

    harness.load_rules(RULES.partition("rules:")[0], generation=2)

    assert harness.run() == 1


def test_a_signal_that_ages_away_refuses_nobody(harness: Harness) -> None:
    harness.answer("use", dict.fromkeys("abc", 0.9))
    harness.see(make_pod("web", uid="u"))
    harness.run()
    harness.now_s += 41

    harness.loop.look_after()
    harness.now_s += 1.5

    assert harness.run() == 1
    assert harness.placed().keys() == {"web"}


def test_a_reload_that_fails_is_told_in_an_event_and_changes_nothing(harness: Harness) -> None:
    harness.answer("use", {"a": 0.9, "b": 0.1, "c": 0.9})
    harness.loop.apply(RulesRefused("rules.yaml:3:1: no such field"))
    harness.see(make_pod("web", uid="u"))

    harness.run()

    (event,) = harness.binder.events
    assert (event.type, event.reason, event.pod.name) == ("Warning", "RulesReloadFailed", "vane-0")
    assert "rules.yaml:3:1: no such field" in event.note
    assert harness.placed() == {"web": "b"}


def test_the_page_shows_what_each_signal_and_rule_does(harness: Harness) -> None:
    harness.answer("use", {"a": 0.9, "b": 0.1})
    harness.now_s += 5

    page = harness.metrics_page()

    assert 'vane_signal_age_seconds{signal="use"} 5.0' in page
    assert 'vane_signal_state{signal="use",state="fresh"} 1.0' in page
    assert 'vane_signal_coverage_ratio{signal="use"} 0.6666666666666666' in page
    assert 'vane_rule_refused_nodes{rule="not-hot"} 1.0' in page


@pytest.mark.parametrize(("is_answered", "at_least_s", "at_most_s"), [(False, 5.0, 7.0), (True, 0.0, 2.0)])
def test_the_first_decision_waits_for_the_first_answers_but_five_seconds_at_most(
    is_answered: bool, at_least_s: float, at_most_s: float
) -> None:
    harness = Harness(first_answers_s=5.0)
    harness.list_nodes(make_node("a"))
    harness.list_pods()
    harness.load_rules(RULES)
    harness.see(make_pod("web", uid="u"))
    if is_answered:
        harness.answer("use", {"a": 0.5})
    began_s = harness.now_s
    harness.seconds_per_look = 0.05
    bound_at_s: list[float] = []

    def on_bind() -> None:
        bound_at_s.append(harness.now_s)
        harness.seconds_per_look = 20.0  # nobody answers the bind, and the end need not wait for that
        harness.inbox.put(Stop(0, "bound"))

    harness.binder.on_bind = on_bind

    stop = harness.loop.run()

    assert stop.reason == "bound"
    assert at_least_s <= bound_at_s[0] - began_s <= at_most_s
