"""The points after `decide`: their order and arguments, waits, refusals, and the one undo."""

from __future__ import annotations

import gc
import json
from collections.abc import Sequence
from typing import Any

import pytest

from scheduler.framework.instructions import Instruction, Notify, PatchPod, Receiver
from scheduler.framework.plugin import PostBindPlugin, PreBindPlugin
from scheduler.framework.status import Status
from scheduler.kube.binder.messages import Outcome
from scheduler.kube.election.roll_call import ROLL_CALL_LIFE_S, RollCall
from scheduler.loop.attempt import Flight
from scheduler.loop.messages import Led, PermitCall, PermitCalled
from scheduler.model.pods import PodInfo
from tests.builders import make_node, make_pod
from tests.cluster.worlds import is_assumed, pending_uids
from tests.loop.harness import Harness
from tests.support.every_point import EveryPoint

WALK = ["Reserve", "Permit", "PreBind", "Bind", "PostBind"]


class World:
    """A harness whose profile has EveryPoint at all points, and what it was called with."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        plugin = EveryPoint(EveryPoint.Args(wait_s=10.0), lambda line: self.calls.append(json.loads(line)))
        self.harness = Harness([plugin], without=("PrioritySort", "DefaultBinder"))
        self.harness.list_nodes(*(make_node(name, cpu="4", memory="8Gi", pods=10) for name in ("a", "best", "refused")))
        self.harness.list_pods()

    def points(self, *wanted: str) -> list[str]:
        """Return the points called so far, in order; only those wanted if any are named."""
        return [call["point"] for call in self.calls if not wanted or call["point"] in wanted]

    def pod(self, at: str = "", **labels: str) -> PodInfo:
        return make_pod("web", uid="uid-1", cpu="1", labels={"at": at, **labels})

    def start(self, at: str = "") -> None:
        self.harness.see(self.pod(at))
        self.harness.run(1)

    def message(self) -> str:
        (report,) = self.harness.binder.reports
        return report.message

    def is_undone(self) -> bool:
        cache = self.harness.world.cache
        return not cache.is_placed("uid-1") and self.points("Reserve", "Unreserve") == ["Reserve", "Unreserve"]


@pytest.fixture
def world() -> World:
    return World()


def test_each_point_is_called_in_order_with_its_state_and_node(world: World) -> None:
    world.start()
    world.harness.settle_patches()
    world.harness.settle()

    order = list(dict.fromkeys(world.points()))
    assert order == [
        "PreEnqueue", "QueueSort", "PreFilter", "Filter", "PreScore", "Score", "NormalizeScore", *WALK
    ]  # fmt: skip
    assert all(call["node"] == "best" for call in world.calls if call["point"] in WALK)
    assert all(call["state"] == "state of web" for call in world.calls if call["point"] in ["Filter", *WALK])
    (score,) = [call for call in world.calls if call["point"] == "Score"]
    assert (score["state"], score["n_rows"]) == ("score state of web", 2)
    assert [patch.annotations for patch in world.harness.binder.patches] == [{"every-point-postbind": "best"}]
    assert world.harness.world.queue.counts() == {"active": 0, "backoff": 0, "unschedulable": 0, "gated": 0}


@pytest.mark.parametrize("outcome", ["bound", "failed", "deleted"])
def test_what_was_known_of_the_way_is_freed_at_its_end_without_a_collection(outcome: Outcome) -> None:
    """A collection never looks at what was alive when its neighbours were frozen."""
    gc.collect()
    gc.disable()
    try:
        harness = Harness()
        harness.list_nodes(make_node("a", cpu="4", memory="8Gi", pods=10))
        harness.list_pods()
        harness.see(make_pod("web", uid="uid-1", cpu="1"))
        harness.run(1)
        assert n_flights() == 1
        harness.settle(outcome)
        assert n_flights() == 0
    finally:
        gc.enable()


def n_flights() -> int:
    return sum(isinstance(one, Flight) for one in gc.get_objects())


def test_postfilter_is_called_where_no_node_is_feasible_and_ends_the_message(world: World) -> None:
    world.harness.see(make_pod("web", uid="uid-1", cpu="6"))
    world.harness.run(1)

    assert world.points("Filter", "PostFilter", "Score") == ["Filter", "PostFilter"]
    preemption = "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
    assert world.message() == f"0/3 nodes are available: 3 Insufficient cpu. {preemption}, no way out."


@pytest.mark.parametrize(("at", "last"), [("reserve", "Reserve"), ("permit", "Permit")])
def test_a_refusal_undoes_all_and_says_so_of_one_node(world: World, at: str, last: str) -> None:
    world.start(f"{at}-refuses")

    assert world.points(*WALK)[-1] == last
    assert world.is_undone()
    assert world.message() == f"0/1 nodes are available: 1 {at} refuses."
    assert world.harness.binder.reports[0].reason == "Unschedulable"
    assert world.harness.world.queue.place_of("uid-1") == "unschedulable"


def test_a_refusal_at_prebind_waits_for_no_event(world: World) -> None:
    """As upstream: no events were kept for the Pod since Permit, so it comes back by itself, as after an error."""
    world.start("prebind-refuses")

    assert world.is_undone()
    (report,) = world.harness.binder.reports
    assert (report.reason, report.message) == ("Unschedulable", "prebind refuses")
    assert world.harness.world.queue.place_of("uid-1") == "error-backoff"


@pytest.mark.parametrize(
    ("at", "point"), [("reserve", "Reserve"), ("permit", "Permit"), ("prebind", "PreBind"), ("bind", "Bind")]
)
def test_a_plugin_that_raises_undoes_all_and_is_an_error(world: World, at: str, point: str) -> None:
    world.start(f"{at}-raises")
    world.harness.settle_patches()

    assert world.is_undone()
    assert world.message() == f'running {point} plugin "EveryPoint": {at} raises'
    assert world.harness.binder.reports[0].reason == "SchedulerError"


def test_postbind_that_raises_changes_nothing(world: World) -> None:
    world.start("postbind-raises")
    world.harness.settle_patches()
    world.harness.settle()

    assert world.harness.binder.reports == []
    assert is_assumed(world.harness.world.cache, "uid-1")


@pytest.mark.parametrize("outcome", ["failed", "expired"])
def test_a_prebind_whose_patch_fails_is_an_error(world: World, outcome: Any) -> None:
    world.start()
    world.harness.settle_patches(outcome)

    assert world.is_undone()
    assert world.harness.binder.reports[0].reason == "SchedulerError"


def test_a_pod_gone_before_its_patch_is_forgotten(world: World) -> None:
    world.start()
    world.harness.settle_patches("deleted")

    assert world.is_undone()
    assert world.harness.binder.reports == []


def test_a_waiting_pod_blocks_nothing_and_goes_on_when_it_is_granted(world: World) -> None:
    world.start("permit-waits")

    assert [patch.annotations for patch in world.harness.binder.patches] == [{"every-point": "best"}]
    world.harness.see(make_pod("other", uid="uid-2", cpu="1"))
    assert world.harness.run(1) == 1
    assert len(world.harness.binding) == 2
    assert world.harness.binding.n_under_way == 1
    world.harness.see(world.pod("permit-waits", permit="not yet"), "MODIFIED")
    world.harness.see(world.pod("permit-waits", permit="granted"), "MODIFIED")
    world.harness.settle_patches()
    assert sorted(bind.pod.name for bind in world.harness.binder.binds) == ["other", "web"]


def test_a_waiting_pod_is_sent_back_when_it_is_refused(world: World) -> None:
    world.start("permit-waits")
    world.harness.see(world.pod("permit-waits", permit="refused"), "MODIFIED")

    assert world.is_undone()
    assert world.message() == "0/1 nodes are available: 1 permit was refused."


def test_a_waiting_pod_is_sent_back_at_its_deadline(world: World) -> None:
    world.start("permit-waits")
    assert world.harness.binding.next_deadline() == world.harness.now_s + 10.0
    world.harness.now_s += 9.9
    world.harness.binding.tick()
    assert len(world.harness.binding) == 1
    world.harness.now_s += 0.2
    world.harness.binding.tick()

    assert world.is_undone()
    assert world.message() == (
        "0/1 nodes are available: 1 rejected due to timeout after waiting 10s at plugin EveryPoint."
    )


@pytest.mark.parametrize("allow", [True, False])
def test_a_call_decides_over_a_waiting_pod(world: World, allow: bool) -> None:
    world.start("permit-waits")
    replies: list[bool] = []
    world.harness.loop.apply(PermitCalled(PermitCall("default", "other", allow, "no"), replies.append))
    world.harness.loop.apply(PermitCalled(PermitCall("default", "web", allow, "not today"), replies.append))

    assert replies == [False, True]
    if allow:
        assert world.points("PreBind") == ["PreBind"]
    else:
        assert world.message() == "0/1 nodes are available: 1 not today."


def test_a_waiting_pod_that_is_deleted_gives_its_room_back(world: World) -> None:
    world.start("permit-waits")
    world.harness.see(world.pod("permit-waits"), "DELETED")

    assert world.is_undone()
    assert len(world.harness.binding) == 0
    assert pending_uids(world.harness.world.queue) == []


class Slow(PreBindPlugin, PostBindPlugin):
    """Does its I/O in the pool."""

    blocking = True

    def prebind(self, state: Any, pod: PodInfo, node_name: str) -> Status | Sequence[PatchPod] | None:
        if pod.name == "bad":
            raise OSError("no answer")
        return [PatchPod.of(pod, {"slow": node_name})]

    def postbind(self, state: Any, pod: PodInfo, node_name: str) -> Sequence[Instruction]:
        return [Notify(Receiver("http://receiver"), pod.uid, "bound", pod.key, {"node": node_name})]


def test_a_blocking_plugin_runs_in_the_pool_and_its_answer_comes_as_a_message() -> None:
    harness = Harness([Slow()])
    harness.list_nodes(make_node("a", cpu="4", memory="8Gi", pods=10))
    harness.list_pods()
    harness.see(make_pod("good", uid="uid-1"))
    harness.see(make_pod("bad", uid="uid-2"))
    harness.run()
    assert harness.binder.patches == []

    harness.take(2)
    harness.settle_patches()
    assert list(harness.placed()) == ["good"]
    assert [report.message for report in harness.binder.reports] == ['running PreBind plugin "Slow": no answer']
    harness.settle()
    harness.take(1)
    assert [notify.data for notify in harness.sent] == [{"node": "a"}]


def test_a_new_leader_leaves_the_pods_that_are_not_on_its_roll_call() -> None:
    harness = Harness()
    harness.list_nodes(make_node("a", cpu="4", memory="8Gi", pods=10))
    harness.list_pods()
    for name, version in (("old", "7"), ("listed", "7"), ("new", "12")):
        harness.see(make_pod(name, uid=name, version=version))
    harness.loop.apply(Led(RollCall(10, frozenset({"listed"}))))
    harness.run()

    assert sorted(harness.placed()) == ["listed", "new"]
    harness.see(make_pod("old", uid="old", version="8", node="a"), "MODIFIED")
    assert harness.world.cache.is_placed("old")
    assert harness.world.queue.place_of("old") == ""


def test_a_roll_call_loses_no_pod_when_versions_begin_again() -> None:
    """After a restore of etcd from a backup new Pods have versions that the list had passed."""
    harness = Harness()
    harness.list_nodes(make_node("a", cpu="4", memory="8Gi", pods=10))
    harness.list_pods()
    harness.loop.apply(Led(RollCall(1_000, frozenset())))
    harness.see(make_pod("web", uid="uid-1", version="600"))
    harness.run()
    assert harness.placed() == {}
    harness.now_s += ROLL_CALL_LIFE_S
    harness.see(make_pod("late", uid="uid-2", version="700"))
    harness.run()

    assert harness.placed().keys() == {"web", "late"}
    assert harness.binder.reports == []
