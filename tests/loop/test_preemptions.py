"""What follows a decision that names victims: who is asked to go, in which order, and who waits meanwhile."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import pytest

from scheduler.framework.plugin import PermitPlugin
from scheduler.framework.status import Wait
from scheduler.kube.binder.messages import EvictResult
from scheduler.loop.messages import BinderSaid
from scheduler.model.pods import PodInfo
from tests.builders import make_node, make_pod
from tests.loop.harness import Harness


class Gate(PermitPlugin):
    """Has Pods labelled so wait."""

    def permit(self, state: Any, pod: PodInfo, node_name: str) -> Wait | None:
        return Wait(600.0) if "wait" in pod.labels else None


@pytest.fixture
def harness() -> Harness:
    harness = Harness(extra_plugins=[Gate()])
    harness.list_nodes(make_node("n", cpu="4"))
    return harness


def placed(name: str, cpu: str = "2", **more: Any) -> PodInfo:
    return make_pod(name, uid=f"uid-{name}", node="n", cpu=cpu, priority=1, version="1", **more)


def big(**more: Any) -> PodInfo:
    return make_pod("big", uid="uid-big", cpu="4", priority=10, **more)


def say(harness: Harness, outcome: Literal["evicted", "gone", "failed"], index: int = 0) -> None:
    """Have the binder answer one of the evictions asked for."""
    request = harness.binder.evictions.pop(index)
    harness.loop.apply(BinderSaid([EvictResult(number=request.number, outcome=outcome, message="why")]))


def evicted(harness: Harness) -> list[str]:
    return [request.pod.name for request in harness.binder.evictions]


def place_of_big(harness: Harness) -> str:
    return harness.world.queue.place_of("uid-big")


def test_the_last_victim_is_asked_to_go_after_the_others_and_the_pod_waits_for_it(harness: Harness) -> None:
    harness.list_pods(*(placed(name, cpu="1") for name in "abcd"))
    harness.see(big())
    assert harness.run() == 1

    report = harness.binder.reports[-1]
    assert report.nominated_node_name == "n"
    assert report.message.endswith("preemption: found a potential placement for pod on node n, preempting 4 victims")
    assert evicted(harness) == ["a", "b", "c"]
    first = harness.binder.evictions[0]
    assert (first.pod.uid, first.preemptor.uid, first.node_name) == ("uid-a", "uid-big", "n")

    for name in "ab":
        say(harness, "evicted")
        harness.see(placed(name, cpu="1"), "DELETED")
    assert evicted(harness) == ["c"]
    assert place_of_big(harness) == "gated"

    say(harness, "evicted")
    assert evicted(harness) == ["d"]
    harness.see(placed("c", cpu="1"), "DELETED")
    say(harness, "evicted")
    harness.see(placed("d", cpu="1"), "DELETED")
    harness.now_s += 60
    assert harness.run() == 1
    assert [bind.node_name for bind in harness.binder.binds] == ["n"]


def test_a_victim_on_its_way_out_is_not_told_again(harness: Harness) -> None:
    pod = placed("leaving").pod
    metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    harness.list_pods(PodInfo(msgspec.structs.replace(pod, metadata=metadata)), placed("other"))
    harness.see(big())
    harness.run()

    assert evicted(harness) == ["other"]


@pytest.mark.parametrize("outcome", ["failed", "gone"])
def test_where_no_deletion_may_follow_the_pod_comes_back_after_backoff(
    harness: Harness, outcome: Literal["failed", "gone"]
) -> None:
    harness.list_pods(placed("a"))
    harness.see(big())
    harness.run()
    assert place_of_big(harness) == "unschedulable"

    say(harness, outcome)
    assert place_of_big(harness) == "backoff"
    harness.now_s += 60
    assert harness.run() == 1


def test_one_failure_among_the_first_does_not_keep_the_last_from_going(harness: Harness) -> None:
    harness.list_pods(placed("a"), placed("b"))
    harness.see(big())
    harness.run()

    say(harness, "failed")
    assert evicted(harness) == ["b"]
    say(harness, "evicted")
    assert place_of_big(harness) == "backoff"


def test_a_victim_that_waits_at_permit_goes_back_to_the_queue_and_nothing_is_deleted(harness: Harness) -> None:
    harness.list_pods()
    harness.see(make_pod("patient", uid="uid-patient", cpu="4", priority=1, labels={"wait": ""}))
    harness.run()
    harness.see(big())
    assert harness.run() >= 2

    assert harness.binder.evictions == []
    event = next(one for one in harness.binder.events if one.reason == "Preempted")
    assert event.note == "Preempted by pod uid-big on node n (in kube-scheduler memory)."
    assert (event.pod.uid, event.action, event.type) == ("uid-patient", "Preempting", "Normal")
    assert event.related is not None
    assert event.related.uid == "uid-big"
    assert [bind.pod.name for bind in harness.binder.binds] == ["big"]
    refused = next(one for one in harness.binder.reports if one.pod.uid == "uid-patient")
    assert refused.message == "0/1 nodes are available: 1 preempted."


def test_a_victim_that_is_being_bound_is_deleted(harness: Harness) -> None:
    harness.list_pods()
    harness.see(make_pod("early", uid="uid-early", cpu="4", priority=1))
    harness.run()
    harness.see(big())
    harness.run()

    assert evicted(harness) == ["early"]


def test_lower_nominations_to_the_node_are_taken_back(harness: Harness) -> None:
    harness.list_pods(placed("a"), placed("b"))
    for name, priority in (("lower", 5), ("equal", 10)):
        spec = {"schedulingGates": [{"name": "g"}]}
        harness.see(make_pod(name, uid=f"uid-{name}", cpu="10m", priority=priority, nominated="n", spec=spec))
    harness.see(make_pod("big", uid="uid-big", cpu="3", priority=10))
    harness.run()

    assert [(patch.pod.name, patch.nominated_node_name) for patch in harness.binder.patches] == [("lower", "")]


def test_a_nomination_that_the_status_shows_is_not_written_again(harness: Harness) -> None:
    harness.list_pods(placed("a", cpu="4"))
    harness.see(big(nominated="n"))
    harness.run()

    assert harness.binder.reports[-1].nominated_node_name is None


def test_preempting_is_counted(harness: Harness) -> None:
    harness.list_pods(placed("a"), placed("b"))
    harness.see(big())
    harness.run()

    page = harness.metrics_page()
    assert "scheduler_preemption_attempts_total 1.0" in page
    assert "scheduler_preemption_victims_sum 2.0" in page
