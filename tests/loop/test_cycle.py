"""From a message to a bind, and what happens when there is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from scheduler.framework.plugin import FilterPlugin
from scheduler.framework.status import Rejection
from scheduler.kube.watch_stream import Changed
from scheduler.loop.messages import Stop
from scheduler.model.arrays import Rows
from scheduler.model.objects import UnreadablePod, decode_pod
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from tests.builders import make_node, make_pod
from tests.cluster.worlds import is_assumed, pending_uids
from tests.loop.harness import Harness


@pytest.fixture
def harness() -> Harness:
    harness = Harness()
    harness.list_nodes(make_node("a", cpu="4", memory="8Gi", pods=10), make_node("b", cpu="4", memory="8Gi", pods=10))
    harness.list_pods()
    return harness


def test_a_pod_is_bound_with_its_uid_and_confirmed_by_the_watch(harness: Harness) -> None:
    pod = make_pod("web", uid="uid-1", cpu="1")
    harness.see(pod)

    assert harness.run() == 1

    (bind,) = harness.binder.binds
    assert (bind.pod.name, bind.pod.uid) == ("web", "uid-1")
    assert is_assumed(harness.world.cache, "uid-1")
    harness.settle()
    harness.see(make_pod("web", uid="uid-1", cpu="1", node=bind.node_name), "MODIFIED")
    assert not is_assumed(harness.world.cache, "uid-1")
    assert harness.world.cache.counts() == {"nodes": 2, "pods": 1, "assumed_pods": 0}
    assert pending_uids(harness.world.queue) == []


def test_the_next_pod_sees_what_the_one_before_was_assumed_to_take(harness: Harness) -> None:
    for i in range(3):
        harness.see(make_pod(f"big-{i}", uid=f"uid-{i}", cpu="3"))

    harness.run()

    assert sorted(harness.placed().values()) == ["a", "b"]
    (report,) = harness.binder.reports
    assert report.reason == "Unschedulable"
    preemption = "preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod."
    assert report.message == f"0/2 nodes are available: 2 Insufficient cpu. {preemption}"
    assert harness.world.queue.counts()["unschedulable"] == 1


def test_binds_are_flushed_once_no_pod_is_waiting(harness: Harness) -> None:
    for number in range(3):
        harness.see(make_pod(f"web-{number}", cpu="10m"))
    n_binds: list[int] = []

    def on_flush() -> None:
        n_binds.append(len(harness.binder.binds))
        harness.inbox.put(Stop(1, "flushed"))

    harness.binder.on_flush = on_flush

    harness.loop.run()

    assert n_binds == [3]


def test_a_refused_pod_comes_back_when_a_node_arrives(harness: Harness) -> None:
    harness.see(make_pod("huge", uid="uid-1", cpu="6"))
    harness.run()
    harness.now_s += 20

    harness.loop.apply(Changed("Node", "ADDED", make_node("c", cpu="8", memory="8Gi", pods=10)))
    harness.run()

    assert harness.placed() == {"huge": "c"}


@pytest.mark.parametrize("outcome", ["failed", "expired", "gated"])
def test_a_bind_that_fails_is_undone_and_tried_again_after_backoff(harness: Harness, outcome: Any) -> None:
    harness.see(make_pod("web", uid="uid-1", cpu="1"))
    harness.run()

    harness.settle(outcome, "the API server said no")

    assert not harness.world.cache.is_placed("uid-1")
    assert not harness.world.cache.state.nodes.requested.any()
    (report,) = harness.binder.reports
    assert (report.reason, report.message) == (
        "SchedulerError",
        'running Bind plugin "DefaultBinder": the API server said no',
    )
    assert harness.run() == 0
    harness.now_s += 3
    assert harness.run() == 1
    assert harness.placed().keys() == {"web"}


@pytest.mark.parametrize("outcome", ["conflict_other_node", "deleted"])
def test_a_pod_that_is_not_ours_any_more_is_let_go(harness: Harness, outcome: Any) -> None:
    harness.see(make_pod("web", uid="uid-1", cpu="1"))
    harness.run()

    harness.settle(outcome)

    assert not harness.world.cache.is_placed("uid-1")
    assert harness.binder.reports == []
    harness.see(make_pod("web", uid="uid-1", cpu="1", node="b"), "DELETED" if outcome == "deleted" else "MODIFIED")
    harness.now_s += 60
    assert harness.run() == 0


@pytest.mark.parametrize("outcome", ["conflict_other_node", "deleted"])
def test_a_pod_that_the_watch_goes_on_to_show_as_pending_is_tried_again(harness: Harness, outcome: Any) -> None:
    """The answer may be that of a proxy, or of an API server on another store."""
    harness.see(make_pod("web", uid="uid-1", cpu="1"))
    for _ in range(2):
        assert harness.run() == 1
        harness.settle(outcome)
        assert harness.world.queue.place_of("uid-1") == "error-backoff"
        harness.now_s += 12
    assert harness.binder.reports == []
    assert harness.run() == 1
    harness.settle(outcome)
    (report,) = harness.binder.reports
    assert (report.reason, outcome in report.message) == ("SchedulerError", True)

    harness.now_s += 12
    assert harness.run() == 1
    assert harness.placed().keys() == {"web"}


def test_a_pod_already_on_the_node_asked_for_counts_as_bound(harness: Harness) -> None:
    harness.see(make_pod("web", uid="uid-1", cpu="1"))
    harness.run()

    harness.settle("conflict_same_node")

    assert is_assumed(harness.world.cache, "uid-1")
    assert 'scheduler_schedule_attempts_total{profile="vane",result="scheduled"} 1.0' in _page(harness)


def test_a_pod_that_is_being_deleted_is_skipped_with_an_event(harness: Harness) -> None:
    pod = decode_pod(
        b'{"metadata": {"name": "web", "namespace": "default", "uid": "u", "deletionTimestamp": "2026-01-01T00:00:00Z"'
        b"},"
        b' "spec": {"schedulerName": "vane", "containers": [{"name": "c"}]}}'
    )
    harness.loop.apply(Changed("Pod", "ADDED", pod))

    harness.run()

    assert harness.binder.binds == []
    assert [event.note for event in harness.binder.events] == ["skip schedule deleting pod: default/web"]


def test_what_is_not_built_is_refused_by_name_until_the_pod_changes(harness: Harness) -> None:
    harness.see(make_pod("claiming", uid="uid-1", spec={"resourceClaims": [{"name": "gpu"}]}))
    harness.see(make_pod("plain", uid="uid-2"))

    harness.run()

    assert harness.placed().keys() == {"plain"}
    (report,) = harness.binder.reports
    assert report.reason == "SchedulerError"
    assert "spec.resourceClaims" in report.message
    harness.now_s += 1_000
    assert harness.run() == 0


def test_an_unreadable_pod_fails_alone(harness: Harness) -> None:
    broken = decode_pod(
        b'{"metadata": {"name": "broken", "namespace": "default", "uid": "u"},'
        b' "spec": {"schedulerName": "vane", "containers": "none"}}'
    )
    assert isinstance(broken, UnreadablePod)
    harness.loop.apply(Changed("Pod", "ADDED", broken))
    harness.see(make_pod("fine", uid="uid-2"))

    harness.run()

    assert harness.placed().keys() == {"fine"}
    (report,) = harness.binder.reports
    assert (report.pod.name, report.reason) == ("broken", "SchedulerError")


def test_a_pod_with_an_impossible_quantity_fails_alone(harness: Harness) -> None:
    harness.see(make_pod("broken", uid="uid-1", cpu="a lot"))
    harness.see(make_pod("fine", uid="uid-2"))

    harness.run()

    assert harness.placed().keys() == {"fine"}
    assert [(r.pod.name, r.reason) for r in harness.binder.reports] == [("broken", "SchedulerError")]
    assert "'a lot'" in harness.binder.reports[0].message


class Raising(FilterPlugin):
    """Raises for one Pod only."""

    def filter(self, state: Any, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[Rejection]:
        if pod.pod.metadata.name == "poison":
            raise ZeroDivisionError("division by zero")
        return ()


def test_a_plugin_that_raises_fails_that_pods_cycle_only() -> None:
    harness = Harness(extra_plugins=[Raising()])
    harness.list_nodes(make_node("a", cpu="4", memory="8Gi", pods=10))
    harness.list_pods()
    harness.see(make_pod("poison", uid="uid-1"))
    harness.see(make_pod("fine", uid="uid-2"))

    harness.run()

    assert harness.placed().keys() == {"fine"}
    (report,) = harness.binder.reports
    assert report.message == 'running "Raising" filter plugin: division by zero'
    assert harness.world.queue.counts()["backoff"] == 1


def test_a_bound_pod_that_cannot_be_read_counts_with_what_can(harness: Harness) -> None:
    broken = decode_pod(
        b'{"metadata": {"name": "broken", "namespace": "default", "uid": "u"},'
        b' "spec": {"nodeName": "a", "affinity": "none", "containers": [{"resources": {"requests": {"cpu": "3"}}}]}}'
    )
    harness.loop.apply(Changed("Pod", "ADDED", broken))
    for i in range(6):
        harness.see(make_pod(f"p-{i}", uid=f"uid-{i}", cpu="1"))

    harness.run()

    # Each node has four cpus: on a there is room for one Pod still.
    assert sorted(harness.placed().values()) == ["a", "b", "b", "b", "b"]
    assert 'vane_unreadable_objects{kind="Pod"} 1.0' in _page(harness)


def test_every_decision_leaves_a_record_whose_parts_add_up(harness: Harness) -> None:
    harness.see(make_pod("web", uid="uid-1", cpu="1"))
    harness.run()

    record = harness.world.records.latest("uid-1")

    assert record is not None
    assert record.node == harness.placed()["web"] == record.best_nodes[0]
    assert np.array_equal(sum(term.contribution for term in record.terms), record.total)
    assert {term.plugin for term in record.terms} >= {"NodeResourcesFit", "TaintToleration", "ImageLocality"}


def _page(harness: Harness) -> str:
    harness.now_s += 2
    return harness.metrics_page()


def test_the_room_of_a_bind_that_fails_brings_back_who_was_refused_for_it(harness: Harness) -> None:
    for i in range(3):
        harness.see(make_pod(f"big-{i}", uid=f"uid-{i}", cpu="3"))
    harness.run()
    (refused,) = {"uid-0", "uid-1", "uid-2"} - {bind.pod.uid for bind in harness.binder.binds}
    assert harness.world.queue.place_of(refused) == "unschedulable"

    harness.settle("failed")

    assert harness.world.queue.place_of(refused) == "backoff"


def test_a_pod_that_has_a_node_already_is_not_tried(harness: Harness) -> None:
    harness.see(make_pod("web", uid="uid-1", cpu="1", node="a"))
    harness.world.queue.add(make_pod("web", uid="uid-1", cpu="1"), harness.now_s)

    assert harness.run() == 1

    assert (harness.binder.binds, harness.binder.reports) == ([], [])
    assert not is_assumed(harness.world.cache, "uid-1")
