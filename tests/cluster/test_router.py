from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

from scheduler.cluster.cache import Cache
from scheduler.cluster.changes import is_respecified, node_changes, pod_changes
from scheduler.cluster.router import Router
from scheduler.framework.events import Resource
from scheduler.framework.queued import QueuedEntity
from scheduler.model.objects import Node, UnreadableNode, UnreadablePod, decode_node
from scheduler.model.pods import PodInfo
from scheduler.model.structs import ObjectMeta
from tests.builders import make_node, make_pod, node_of
from tests.cluster.worlds import (
    CountingIndex,
    ListeningQueue,
    assert_recount_agrees,
    assert_shows,
    is_assumed,
    node_version,
    pending_uids,
    versioned,
)


@dataclass
class World:
    cache: Cache = field(default_factory=lambda: Cache([CountingIndex()]))
    gone: list[str] = field(default_factory=list)
    version: int = 0

    def __post_init__(self) -> None:
        self.queue = ListeningQueue(self.cache)
        self.router = Router(self.cache, self.queue, {"vane"}, self.gone.append)

    def pod(self, pod: PodInfo, type_: str = "MODIFIED") -> list[str]:
        """Send a new version of a Pod; return the labels of the events that follow."""
        self.version += 1
        return self.send(type_, versioned(pod, self.version).pod)

    def node(self, node: Node, type_: str = "MODIFIED") -> list[str]:
        self.version += 1
        return self.send(type_, node_version(node, self.version, uid=node.metadata.uid))

    def send(self, type_: str, item: Any) -> list[str]:
        self.queue.told.clear()
        self.router.changed(type_, item, float(self.version))
        return self.labels()

    def replaced(self, kind: str, items: Iterable[Any]) -> list[str]:
        self.queue.told.clear()
        self.router.replaced(kind, items, float(self.version))
        return sorted(self.labels())

    def labels(self) -> list[str]:
        return [event.label for event, _ in self.queue.told]

    def assumed(self, pod: PodInfo, node: str) -> QueuedEntity:
        self.pod(pod)
        entity = self.queue.pop(0.0)
        assert entity is not None
        self.cache.assume(entity.pod, node)
        return entity


@pytest.fixture
def world() -> World:
    world = World()
    world.node(make_node("n1"))
    world.node(make_node("n2"))
    return world


# -- nodes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "labels"),
    [
        pytest.param({}, [], id="nothing"),
        pytest.param({"cpu": "8"}, ["NodeUpdateNodeAllocatable"], id="allocatable"),
        pytest.param({"labels": {"zone": "b"}}, ["NodeUpdateNodeLabel"], id="labels"),
        pytest.param({"taints": [{"key": "k", "effect": "NoSchedule"}]}, ["NodeUpdateNodeTaint"], id="taints"),
        pytest.param({"unschedulable": True}, [], id="cordoned: that helps nobody"),
        pytest.param({"images": {"app": 5}}, [], id="images"),
        pytest.param(
            {"cpu": "8", "labels": {"zone": "b"}},
            ["NodeUpdateNodeAllocatable", "NodeUpdateNodeLabel"],
            id="two aspects",
        ),
    ],
)
def test_a_node_update_is_announced_once_per_changed_aspect(world: World, change: Any, labels: list[str]) -> None:
    assert world.node(make_node("n1", **change)) == labels


def test_uncordoning_counts_as_a_change_of_taints(world: World) -> None:
    world.node(make_node("n1", unschedulable=True))
    assert world.node(make_node("n1")) == ["NodeUpdateNodeTaint"]


@pytest.mark.parametrize(
    ("path", "value", "labels"),
    [
        ("annotations", {"a": "b"}, ["NodeUpdateNodeAnnotation"]),
        ("conditions", [{"type": "Ready", "status": "True"}], ["NodeUpdateNodeCondition"]),
        ("declaredFeatures", ["F"], ["NodeUpdateNodeDeclaredFeature"]),
    ],
)
def test_other_aspects_of_a_node(path: str, value: Any, labels: list[str]) -> None:
    bare = node_of({"metadata": {"name": "n"}})
    part = "metadata" if path == "annotations" else "status"
    changed = node_of({"metadata": {"name": "n"}} | {part: {"name": "n", path: value}})
    assert [event.label for event in node_changes(bare, changed)] == labels


def test_nodes_come_and_go(world: World) -> None:
    assert world.node(make_node("n3")) == ["NodeAdd"]
    assert world.node(make_node("n3"), "DELETED") == ["NodeDelete"]
    assert world.node(make_node("n3"), "DELETED") == []


def test_a_node_made_anew_under_its_old_name_is_a_new_node(world: World) -> None:
    anew = node_version(make_node("n1", cpu="2"), 0, uid="second")
    assert world.node(anew) == ["NodeDelete", "NodeAdd"]


def test_an_unreadable_node_leaves_and_comes_back(world: World) -> None:
    assert world.node(make_node("n1", cpu="a lot")) == ["NodeDelete"]
    assert world.node(make_node("n1", cpu="much")) == []
    assert world.node(make_node("n1")) == ["NodeAdd"]
    odd = decode_node(b'{"metadata":{"name":"n1","uid":"n1"},"spec":3}')
    assert isinstance(odd, UnreadableNode)
    assert world.send("MODIFIED", odd) == ["NodeDelete"]
    assert list(world.cache.unreadable_nodes) == ["n1"]
    assert world.send("MODIFIED", odd) == []
    assert world.send("DELETED", odd) == []
    assert world.cache.unreadable_nodes == {}
    assert world.replaced("Node", [odd, make_node("n2")]) == []
    assert list(world.cache.unreadable_nodes) == ["n1"]
    assert world.replaced("Node", [make_node("n2")]) == []
    assert world.cache.unreadable_nodes == {}


def test_a_list_of_nodes_replaces_all(world: World) -> None:
    listed = [make_node("n2", cpu="9"), make_node("n3")]
    assert world.replaced("Node", listed) == ["NodeAdd", "NodeDelete", "NodeUpdateNodeAllocatable"]
    assert sorted(node.metadata.name for node in world.cache.nodes()) == ["n2", "n3"]


# -- pending Pods ---------------------------------------------------------------------------------------------


def test_pending_pods_of_ours_are_queued_and_others_ignored(world: World) -> None:
    world.pod(make_pod("ours"))
    world.pod(make_pod("theirs", spec={"schedulerName": "default-scheduler"}))
    assert pending_uids(world.queue) == ["default/ours"]


def test_the_same_version_of_a_pending_pod_is_ignored(world: World) -> None:
    pod = versioned(make_pod("a"), 5).pod
    world.send("ADDED", pod)
    first = world.queue.get("default/a")
    world.send("MODIFIED", versioned(make_pod("a"), 5).pod)
    assert world.queue.get("default/a") is first


def test_a_pod_bound_by_another_leaves_the_queue(world: World) -> None:
    world.pod(make_pod("a"))
    assert world.pod(make_pod("a", node="n1")) == ["AssignedPodAdd"]
    assert pending_uids(world.queue) == []
    assert world.cache.is_placed("default/a")


def test_a_pod_bound_by_another_during_its_attempt_does_not_come_back(world: World) -> None:
    world.pod(make_pod("a"))
    entity = world.queue.pop(0.0)
    assert entity is not None
    world.pod(make_pod("a", node="n1"))
    assert not world.queue.requeue_error(entity, 0.0)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_terminal_pod_counts_as_deleted(world: World, phase: str) -> None:
    world.pod(make_pod("a", node="n1", cpu="1"))
    world.pod(make_pod("b"))
    assert world.pod(make_pod("a", node="n1", status={"phase": phase})) == ["AssignedPodDelete"]
    assert world.pod(make_pod("b", status={"phase": phase})) == []
    assert (world.cache.pods(), pending_uids(world.queue)) == ([], [])


def test_a_pod_that_loses_its_nomination_frees_room_for_lower_priorities(world: World) -> None:
    world.pod(make_pod("a", nominated="n1", priority=7))
    world.pod(make_pod("a", priority=7))
    assert [(event.label, limit) for event, limit in world.queue.told] == [("AssignedPodDelete", 7)]
    world.pod(make_pod("b", nominated="n1", priority=3))
    world.pod(make_pod("b", nominated="n1", priority=3), "DELETED")
    assert [(event.label, limit) for event, limit in world.queue.told] == [("AssignedPodDelete", 3)]
    assert world.cache.state.nominated == {}


def test_gaining_a_nomination_frees_nothing_and_losing_it_before_deletion_is_told_once(world: World) -> None:
    world.pod(make_pod("a"))
    assert world.pod(make_pod("a", nominated="n1")) == []
    world.queue.nominate("default/a", "")
    assert world.pod(make_pod("a", nominated="n1"), "DELETED") == ["AssignedPodDelete"]


def test_an_unreadable_pod_of_ours_is_tried_so_that_it_fails_with_its_problem(world: World) -> None:
    metadata = ObjectMeta(name="a", namespace="default", uid="default/a", resource_version="9")
    spoilt = UnreadablePod(metadata=metadata, node_name="", scheduler_name="vane", problem="spec: expected an object")
    world.send("ADDED", spoilt)
    entity = world.queue.pop(0.0)
    assert entity is not None
    assert entity.problem == "spec: expected an object"
    world.queue.requeue_until_update(entity, 0.0)
    world.pod(make_pod("a"))
    entity = world.queue.pop(60.0)
    assert entity is not None
    assert entity.problem == ""


def test_an_older_version_of_a_bound_pod_is_ignored(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.pod(make_pod("a", node="n1"))
    assert world.pod(make_pod("a")) == []
    assert "an older version without a node is ignored" in caplog.text
    assert pending_uids(world.queue) == []


# -- assigned Pods --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "labels"),
    [
        pytest.param({"cpu": "1"}, ["AssignedPodUpdatePodScaleDown"], id="resized down"),
        pytest.param({"cpu": "3"}, ["AssignedPodUpdatePodScaleUp"], id="resized up"),
        pytest.param({"memory": "1Gi", "cpu": "2"}, ["AssignedPodUpdatePodScaleUp"], id="something more"),
        pytest.param({"cpu": "2", "labels": {"app": "x"}}, ["AssignedPodUpdatePodLabel"], id="labels"),
        pytest.param(
            {"cpu": "2", "spec": {"tolerations": [{"key": "k"}]}}, ["AssignedPodUpdatePodToleration"], id="tolerations"
        ),
        pytest.param({"cpu": "2", "status": {"phase": "Running"}}, ["AssignedPodUpdate"], id="status"),
        pytest.param({"cpu": "many"}, ["AssignedPodUpdatePodScaleDown"], id="became unreadable"),
    ],
)
def test_an_update_of_an_assigned_pod(world: World, change: Any, labels: list[str]) -> None:
    world.pod(make_pod("a", node="n1", cpu="2"))
    assert world.pod(make_pod("a", node="n1", **change)) == labels
    assert_recount_agrees(world.cache)


def test_our_own_bind_confirms(world: World) -> None:
    entity = world.assumed(make_pod("a", cpu="1"), "n1")
    world.queue.done(entity.uid)
    assert world.pod(make_pod("a", cpu="1", node="n1")) == ["AssignedPodAdd"]
    assert not is_assumed(world.cache, "default/a")
    assert (pending_uids(world.queue), world.gone) == ([], [])


def test_a_pod_assumed_here_and_bound_there_frees_its_place_here(world: World) -> None:
    world.assumed(make_pod("a", cpu="1"), "n1")
    assert world.pod(make_pod("a", cpu="1", node="n2")) == ["AssignedPodDelete", "AssignedPodAdd"]
    old = world.queue.told[0][0].old
    assert isinstance(old, PodInfo)
    assert old.pod.spec.node_name == "n1"
    assert_recount_agrees(world.cache)


def test_an_assumed_pod_that_is_deleted_frees_its_place_at_once(world: World) -> None:
    entity = world.assumed(make_pod("a", cpu="1"), "n1")
    assert world.pod(make_pod("a"), "DELETED") == ["AssignedPodDelete"]
    assert world.gone == ["default/a"]
    assert world.cache.forget("default/a") is None
    assert not world.queue.requeue_error(entity, 0.0)
    assert_recount_agrees(world.cache)


def test_an_assumed_pod_about_to_be_deleted_frees_its_place_at_once(world: World) -> None:
    entity = world.assumed(make_pod("a", cpu="1"), "n1")
    deleting = versioned(make_pod("a"), 90, deletion_timestamp="2026-01-01T00:00:00Z")
    assert world.send("MODIFIED", deleting.pod) == ["AssignedPodDelete"]
    assert world.gone == ["default/a"]
    assert world.queue.requeue_error(entity, 0.0)
    assert entity.pod.pod.metadata.deletion_timestamp is not None
    world.pod(make_pod("a"), "DELETED")
    assert pending_uids(world.queue) == []


def test_an_assumed_pod_keeps_its_place_through_other_updates(world: World) -> None:
    entity = world.assumed(make_pod("a", cpu="1"), "n1")
    world.queue.done(entity.uid)
    assert world.pod(make_pod("a", cpu="1", nominated="n1")) == []
    assert is_assumed(world.cache, "default/a")
    assert world.cache.state.nominated == {}


def test_an_unreadable_bound_pod_comes_and_goes(world: World) -> None:
    metadata = ObjectMeta(name="a", namespace="default", uid="default/a", resource_version="9")
    spoilt = UnreadablePod(metadata=metadata, node_name="n1", scheduler_name="other", problem="spec: no")
    assert world.send("ADDED", spoilt) == ["AssignedPodAdd"]
    assert world.cache.unreadable_pods == {"default/a": "spec: no"}
    assert world.send("DELETED", spoilt) == ["AssignedPodDelete"]
    assert world.cache.unreadable_pods == {}
    assert_recount_agrees(world.cache)


# -- gaps in the watch ----------------------------------------------------------------------------------------


def test_a_pod_recreated_under_its_name_while_the_watch_was_cut(world: World) -> None:
    world.pod(make_pod("a", uid="first", node="n1", cpu="1"))
    assert world.pod(make_pod("a", uid="second")) == ["AssignedPodDelete"]
    assert (world.cache.pods(), pending_uids(world.queue)) == ([], ["second"])
    world.pod(make_pod("a", uid="first"), "DELETED")
    assert pending_uids(world.queue) == ["second"]


def test_a_list_of_pods_replaces_all_as_if_each_change_had_been_seen(world: World) -> None:
    world.pod(make_pod("stays", node="n1"))
    stays = world.cache.get("default/stays")
    assert stays is not None
    world.pod(make_pod("ends", node="n1", cpu="1"))
    world.pod(make_pod("grows", node="n2", cpu="1"))
    world.pod(make_pod("vanishes"))
    world.pod(make_pod("waits"))
    flying = world.assumed(make_pod("flies", priority=9), "n2")
    waiting = world.queue.get("default/waits")
    assert waiting is not None
    listed = [
        stays.pod.pod,
        versioned(make_pod("grows", node="n2", cpu="2"), 80).pod,
        waiting.pod,
        flying.pod.pod,
        versioned(make_pod("new"), 81).pod,
        versioned(make_pod("new-bound", node="n1"), 82).pod,
    ]
    labels = world.replaced("Pod", listed)
    assert labels == ["AssignedPodAdd", "AssignedPodDelete", "AssignedPodUpdatePodScaleUp"]
    assert sorted(pending_uids(world.queue)) == ["default/flies", "default/new", "default/waits"]
    assert is_assumed(world.cache, "default/flies")
    assert world.replaced("Pod", listed) == []
    bound = [PodInfo(pod) for pod in listed if pod.spec.node_name]
    assert_shows(world.cache, world.cache.nodes(), bound)
    assert_recount_agrees(world.cache)


def test_an_assumed_pod_that_a_list_lacks_is_gone_and_one_that_it_shows_bound_is_confirmed(world: World) -> None:
    for name in ("lost", "bound"):
        entity = world.assumed(make_pod(name, cpu="1"), "n1")
        world.queue.done(entity.uid)
    assert world.replaced("Pod", [versioned(make_pod("bound", node="n1", cpu="1"), 70).pod]) == [
        "AssignedPodAdd",
        "AssignedPodDelete",
    ]
    assert (world.gone, pending_uids(world.queue)) == (["default/lost"], [])
    assert world.cache.counts()["assumed_pods"] == 0


def test_nothing_is_remembered_of_pods_that_are_gone(world: World) -> None:
    for turn in range(100):
        world.pod(make_pod(f"p{turn}", node="n1"))
        world.assumed(make_pod(f"q{turn}"), "n2")
        deleting = versioned(make_pod(f"q{turn}"), turn, deletion_timestamp="2026-01-01T00:00:00Z")
        world.send("MODIFIED", deleting.pod)
    assert world.replaced("Pod", []) == ["AssignedPodDelete"] * 100
    assert (world.cache.pods(), pending_uids(world.queue)) == ([], [])
    assert vars(world.router)["_uid_of"] == {}


# -- differences ----------------------------------------------------------------------------------------------


def test_what_counts_as_another_specification() -> None:
    pod = make_pod("a")
    assert not is_respecified(pod, make_pod("a", status={"phase": "Pending"}, nominated="n1"))
    for other in (
        make_pod("a", cpu="1"),
        make_pod("a", labels={"app": "x"}),
        versioned(pod, 1, annotations={"a": "b"}),
    ):
        assert is_respecified(pod, other)


def test_the_events_of_the_pod_itself_name_it() -> None:
    events = pod_changes(make_pod("a"), make_pod("a", labels={"app": "x"}), Resource.TARGET_POD)
    assert [event.label for event in events] == ["TargetPodUpdatePodLabel"]
    assert pod_changes(make_pod("a"), make_pod("a"), Resource.TARGET_POD)[0].label == "TargetPodUpdate"
