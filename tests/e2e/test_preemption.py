"""Preemption on the real API server: who has to go, how they are told, and who gets the room."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.conftest import StartVane
from tests.support.budgets import create_budget
from tests.support.kubeapi import Items, KubeApi
from tests.support.waiting import wait_until

PRIORITIES = {"low": 1, "middle": 100, "high": 1_000}


@pytest.fixture(autouse=True)
def priorities(api: KubeApi) -> None:
    for name, value in PRIORITIES.items():
        api.create_priority_class(name, value)


def create(api: KubeApi, name: str, priority: str, cpu: str = "4", grace: int = 0, **more: Any) -> None:
    """Create a Pod; without a kubelet one with a grace period stays, being deleted, until somebody forces it out."""
    api.create_pod(name, priority_class=priority, cpu=cpu, grace=grace, scheduler_name="vane", **more)


def is_being_deleted(api: KubeApi, name: str) -> bool:
    return "deletionTimestamp" in api.pod(name)["metadata"]


def nomination(api: KubeApi, name: str) -> str:
    return str(api.pod(name)["status"].get("nominatedNodeName") or "")


def events(api: KubeApi, name: str, reason: str) -> Items:
    """Wait for Events of that reason about a Pod, and return them."""
    return wait_until(lambda: api.events(name, reason=reason), 10.0, f"{reason} of {name}")


def pods(api: KubeApi) -> set[str]:
    return {pod["metadata"]["name"] for pod in api.pods("default")}


def test_victims_are_told_why_and_deleted_and_the_pod_gets_the_node_promised(
    api: KubeApi, start_vane: StartVane
) -> None:
    api.create_node("a", cpu="4")
    api.create_node("b", cpu="4", taints=[{"key": "k", "effect": "NoSchedule"}])
    start_vane()
    for name in ("one", "two"):
        create(api, name, "low", cpu="2", grace=30)
        api.wait_bound(name)
    create(api, "urgent", "high")

    wait_until(lambda: all(is_being_deleted(api, name) for name in ("one", "two")), 10.0, "both being deleted")
    for name in ("one", "two"):
        (condition,) = (c for c in api.pod(name)["status"]["conditions"] if c["type"] == "DisruptionTarget")
        assert (condition["status"], condition["reason"]) == ("True", "PreemptionByScheduler")
        assert condition["message"] == "vane: preempting to accommodate a higher priority pod"
        assert "lastTransitionTime" in condition
        assert api.pod(name)["metadata"]["deletionGracePeriodSeconds"] == 30
        (event,) = events(api, name, "Preempted")
        assert event["message"] == f"Preempted by pod {api.pod('urgent')['metadata']['uid']} on node a"
        assert event["related"]["name"] == "urgent"
    wait_until(lambda: nomination(api, "urgent") == "a", 10.0, "the nomination")
    create(api, "late", "middle", cpu="1")
    api.delete_pod("one", grace=0)
    wait_until(lambda: api.events("late", reason="FailedScheduling"), 10.0, "nobody else gets the room")
    assert "nodeName" not in api.pod("urgent")["spec"]

    api.delete_pod("two", grace=0)

    assert api.wait_bound("urgent") == "a"
    assert "nodeName" not in api.pod("late")["spec"]
    wait_until(lambda: nomination(api, "urgent") == "", 10.0, "the API server clears it with the bind")


def test_a_budget_protects_where_there_is_another_way(api: KubeApi, start_vane: StartVane) -> None:
    for node in ("a", "b"):
        api.create_node(node, cpu="4")
    create_budget(api, "guard", {"app": "guarded"}, allowed=0)
    start_vane()
    # Without the budget the guarded Pod would go: its priority is the lower one.
    create(api, "guarded", "low", labels={"app": "guarded"}, spec={"nodeSelector": {"kubernetes.io/hostname": "a"}})
    create(api, "other", "middle", spec={"nodeSelector": {"kubernetes.io/hostname": "b"}})
    for name in ("guarded", "other"):
        api.wait_bound(name)

    create(api, "urgent", "high")

    assert api.wait_bound("urgent") == "b"
    assert pods(api) == {"guarded", "urgent"}


def test_a_budget_is_broken_where_there_is_no_other_way(api: KubeApi, start_vane: StartVane) -> None:
    api.create_node("a", cpu="4")
    create_budget(api, "guard", {"app": "guarded"}, allowed=0)
    start_vane()
    create(api, "guarded", "low", labels={"app": "guarded"})
    api.wait_bound("guarded")

    create(api, "urgent", "high")

    assert api.wait_bound("urgent") == "a"
    assert pods(api) == {"urgent"}


def test_a_higher_pod_takes_the_nomination(api: KubeApi, start_vane: StartVane) -> None:
    api.create_node("a", cpu="4")
    start_vane()
    create(api, "victim", "low", grace=30)
    api.wait_bound("victim")
    create(api, "urgent", "middle")
    wait_until(lambda: nomination(api, "urgent") == "a", 10.0, "the first nomination")
    wait_until(lambda: is_being_deleted(api, "victim"), 10.0, "the victim being deleted")

    create(api, "more-urgent", "high")
    wait_until(lambda: nomination(api, "more-urgent") == "a", 10.0, "the second nomination")
    wait_until(lambda: nomination(api, "urgent") == "", 10.0, "the first one taken back")
    api.delete_pod("victim", grace=0)

    assert api.wait_bound("more-urgent") == "a"
    assert "nodeName" not in api.pod("urgent")["spec"]


def test_never_means_never(api: KubeApi, start_vane: StartVane) -> None:
    api.create_node("a", cpu="4")
    api.create_priority_class("polite", 1_000, preemptionPolicy="Never")
    start_vane()
    create(api, "small", "low")
    api.wait_bound("small")

    create(api, "patient", "polite")

    (event,) = events(api, "patient", "FailedScheduling")
    refused = "0/1 nodes are available: 1 Insufficient cpu. preemption: not eligible due to preemptionPolicy=Never."
    assert event["message"] == refused
    assert not is_being_deleted(api, "small")
