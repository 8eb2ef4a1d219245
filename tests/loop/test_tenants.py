"""Tenants in the loop: who is refused for their sake, what brings those Pods back, what is said of bad figures."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from scheduler.kube.watch_stream import Changed, Replaced
from scheduler.model.catalog import CatalogObject
from scheduler.model.objects import Node
from scheduler.model.real_allocatable import ANNOTATION
from tests.builders import make_node, make_pod, object_of
from tests.loop.harness import Harness

RULES = """\
apiVersion: vane.dev/v1
kind: Rules
signals:
  use: {expr: max by (node) (use), by: node, unit: ratio, interval: 10s, max_age: 40s}
tenants:
  - name: shop
    match: {namespace_labels: {team: shop}}
    overcommit: 150%
    while: [{signal: use, max: 80%, clear: 70%}]
"""


def node(name: str, real: str = '{"cpu": "2"}') -> Node:
    return make_node(name, cpu="4", annotations={ANNOTATION: real})


def namespace(team: str) -> CatalogObject:
    return object_of("Namespace", {"metadata": {"name": "shop-eu", "labels": {"team": team}}})


@pytest.fixture
def harness() -> Harness:
    """Return one node of which 2 of 4 cores are real, and a Pod that asks for 3: 150 percent of them."""
    harness = Harness()
    harness.list_nodes(node("a"))
    harness.list_pods()
    harness.loop.apply(Replaced("Namespace", [namespace("shop")]))
    harness.load_rules(RULES)
    return harness


def ask(harness: Harness, cpu: str = "3") -> None:
    harness.see(make_pod("web", uid="u", namespace="shop-eu", cpu=cpu))
    harness.run()


def after_a_while(harness: Harness) -> dict[str, str]:
    harness.now_s += 1.5
    harness.run()
    return harness.placed()


def test_what_is_measured_lets_a_tenant_use_more(harness: Harness) -> None:
    harness.answer("use", {"a": 0.5})

    ask(harness)

    assert harness.placed() == {"web": "a"}


def test_without_a_sample_it_is_what_is_real(harness: Harness) -> None:
    ask(harness)
    reason = 'node(s) had too little real cpu for tenant "shop" without overcommit, whose bounds did not hold'
    assert harness.binder.reports[0].message.startswith(f"0/1 nodes are available: 1 {reason}.")

    harness.answer("use", {"a": 0.5})

    assert after_a_while(harness) == {"web": "a"}


def cooled(harness: Harness) -> None:
    harness.now_s += 10
    harness.answer("use", {"a": 0.6})


def allowed_more(harness: Harness) -> None:
    harness.load_rules(RULES.replace("max: 80%", "max: 95%"), generation=2)


def let_go(harness: Harness) -> None:
    harness.load_rules(RULES.partition("tenants:")[0] + "tenants: [{name: rest, overcommit: 200%}]\n", generation=2)


def forgotten(harness: Harness) -> None:
    harness.load_rules(RULES.partition("tenants:")[0], generation=2)


def grown(harness: Harness) -> None:
    harness.loop.apply(Changed("Node", "MODIFIED", node("a", '{"cpu": "3"}')))


@pytest.mark.parametrize("change", [cooled, allowed_more, let_go, forgotten, grown], ids=lambda one: one.__name__)
def test_a_refused_pod_comes_back_when_it_may_fit(harness: Harness, change: Callable[[Harness], None]) -> None:
    harness.answer("use", {"a": 0.9})
    ask(harness)
    assert harness.placed() == {}

    change(harness)

    assert after_a_while(harness) == {"web": "a"}


def test_another_limit_on_the_same_tenant_keeps_what_does_not_fit(harness: Harness) -> None:
    harness.answer("use", {"a": 0.9})
    ask(harness)

    harness.answer("use", {"a": 0.75})  # between the limit and clear

    assert after_a_while(harness) == {}


def test_a_namespace_that_changes_hands_brings_its_pods_back(harness: Harness) -> None:
    harness.answer("use", {"a": 0.5})
    harness.loop.apply(Changed("Namespace", "MODIFIED", namespace("other")))
    ask(harness)
    assert "pods without a tenant" in harness.binder.reports[0].message

    harness.loop.apply(Changed("Namespace", "MODIFIED", namespace("shop")))

    assert after_a_while(harness) == {"web": "a"}


def test_a_pod_that_leaves_makes_room(harness: Harness) -> None:
    there = make_pod("there", uid="t", node="a", cpu="1")
    harness.see(there)
    harness.answer("use", {"a": 0.5})
    ask(harness)
    assert harness.placed() == {}

    harness.see(there, "DELETED")

    assert after_a_while(harness) == {"web": "a"}


def test_a_signal_that_ages_away_takes_the_rest_back(harness: Harness) -> None:
    harness.answer("use", {"a": 0.5})
    harness.now_s += 41
    harness.loop.look_after()

    ask(harness)

    assert harness.placed() == {}


def test_figures_that_cannot_be_read_are_counted_and_logged_once(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        harness.loop.apply(Changed("Node", "MODIFIED", node("a", "two")))
    (told,) = [record.message for record in caplog.records if "counts with what it advertises" in record.message]
    assert told.startswith(f"Node a: counts with what it advertises: annotation {ANNOTATION}: ")
    assert 'vane_unreadable_objects{kind="RealAllocatable"} 1.0' in harness.metrics_page()

    ask(harness, "4")
    assert harness.placed() == {"web": "a"}

    harness.loop.apply(Changed("Node", "MODIFIED", node("a")))
    assert 'vane_unreadable_objects{kind="RealAllocatable"} 0.0' in harness.metrics_page()


def test_refusals_are_counted_by_tenant_as_by_rule(harness: Harness) -> None:
    ask(harness)

    page = harness.metrics_page()

    assert 'vane_rule_refusals_total{rule="tenant shop"} 1.0' in page
    assert harness.metrics_page() == page
