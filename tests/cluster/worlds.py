"""What the tests of `scheduler.cluster` share: objects with versions, plugins that refuse, a recount from scratch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from scheduler.cluster.backoff import DEFAULT_TIMINGS, Timings
from scheduler.cluster.cache import Cache
from scheduler.cluster.nominator import Nominator
from scheduler.cluster.queue import IncomingObserver, SchedulingQueue
from scheduler.framework.events import Action, ClusterEvent, EventInterest, Resource
from scheduler.framework.index import Index
from scheduler.framework.plugin import PreEnqueuePlugin
from scheduler.framework.queued import QueuedEntity
from scheduler.framework.status import Code, Status
from scheduler.model.objects import Node
from scheduler.model.pods import PodInfo
from scheduler.model.state import ClusterState
from scheduler.plugins.queue_order import PrioritySort, SchedulingGates
from tests.builders import make_node, make_pod


def versioned(pod: PodInfo, version: object, **metadata: Any) -> PodInfo:
    changed = msgspec.structs.replace(pod.pod.metadata, resource_version=str(version), **metadata)
    return PodInfo(msgspec.structs.replace(pod.pod, metadata=changed))


def node_version(node: Node, version: object, **metadata: Any) -> Node:
    changed = msgspec.structs.replace(node.metadata, resource_version=str(version), **metadata)
    return msgspec.structs.replace(node, metadata=changed)


def gated_pod(name: str, **fields: Any) -> PodInfo:
    return make_pod(name, spec={"schedulingGates": [{"name": "example.com/gate"}]}, **fields)


@dataclass
class FakeProfile:
    """A profile with the real queue plugins and any interests: plugin name -> what it asks for."""

    events: Mapping[str, tuple[EventInterest, ...]] = field(default_factory=dict)
    pre_enqueue: tuple[PreEnqueuePlugin, ...] = (SchedulingGates(),)
    queue_sort: PrioritySort = field(default_factory=PrioritySort)

    def __post_init__(self) -> None:
        self.events = {"SchedulingGates": tuple(SchedulingGates().events()), **self.events}


FIT = {"Fit": (EventInterest(Resource.NODE, Action.ADD), EventInterest(Resource.ASSIGNED_POD, Action.DELETE))}


class Barrier(PreEnqueuePlugin):
    """Keeps everything out while it is closed; raises when it is broken."""

    def __init__(self, name: str = "Barrier") -> None:
        self.name = name
        self.is_closed = True
        self.is_broken = False
        self.n_asked = 0

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        self.n_asked += 1
        if self.is_broken:
            raise RuntimeError("broken barrier")
        return Status(Code.UNSCHEDULABLE, ("closed",)) if self.is_closed else None

    def events(self) -> Sequence[EventInterest]:
        return (EventInterest(Resource.NODE, Action.ADD),)


def make_queue(
    events: Mapping[str, tuple[EventInterest, ...]] = FIT,
    pre_enqueue: tuple[PreEnqueuePlugin, ...] = (SchedulingGates(),),
    timings: Timings = DEFAULT_TIMINGS,
    on_incoming: IncomingObserver = lambda _event, _queue: None,
) -> SchedulingQueue:
    profile = FakeProfile(events, pre_enqueue)
    return SchedulingQueue({"vane": profile}, Nominator(ClusterState()), timings, on_incoming)


class CountingIndex(Index):
    """An index that counts Pods per label value and row, and refuses to be told nonsense."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str, int], int] = {}

    def add_pod(self, pod: PodInfo, row: int) -> None:
        key = (pod.labels.get("app", ""), row)
        self.counts[key] = self.counts.get(key, 0) + 1

    def remove_pod(self, pod: PodInfo, row: int) -> None:
        key = (pod.labels.get("app", ""), row)
        self.counts[key] -= 1
        if not self.counts[key]:
            del self.counts[key]


def assert_recount_agrees(cache: Cache) -> None:
    """Every column of the cache equals what one gets by placing its nodes and Pods into an empty state."""
    fresh = ClusterState(indexes=[CountingIndex()])
    for node in cache.nodes():
        fresh.set_node(node)
    for cached in cache.pods():
        row = fresh.nodes.ensure_row(cached.node_name)
        fresh.place(cached.pod, row)
    state = cache.state
    names = sorted(name for name in state.nodes.names if name)
    assert names == sorted(name for name in fresh.nodes.names if name)
    for name in names:
        ours, theirs = state.nodes.row_of(name), fresh.nodes.row_of(name)
        assert ours is not None
        assert theirs is not None
        for column in ("alive", "unschedulable", "n_pods", "name_hash"):
            assert getattr(state.nodes, column)[ours] == getattr(fresh.nodes, column)[theirs], (column, name)
        assert np.array_equal(state.nodes.nonzero_requested[:, ours], fresh.nodes.nonzero_requested[:, theirs])
        assert _amounts(state, ours) == _amounts(fresh, theirs)
        assert {pod.uid for pod in state.pods_on(ours)} == {pod.uid for pod in fresh.pods_on(theirs)}
        assert _indexed(state, ours) == _indexed(fresh, theirs)
    free = set(range(state.nodes.n_rows)) - {state.nodes.row_of(name) for name in names}
    assert all(state.nodes.n_pods[row] == 0 and not state.nodes.alive[row] for row in free)
    assert sum(len(pods) for pods in state.pods.values()) == len(cache.pods())


def _amounts(state: ClusterState, row: int) -> dict[str, tuple[int, int]]:
    found = {
        name: (int(state.nodes.allocatable[i, row]), int(state.nodes.requested[i, row]))
        for name, i in state.nodes.resources.items()
    }
    return {name: amounts for name, amounts in found.items() if amounts != (0, 0)}


def _indexed(state: ClusterState, row: int) -> dict[str, int]:
    index = next(one for one in state.indexes if isinstance(one, CountingIndex))
    assert isinstance(index, CountingIndex)
    return {app: count for (app, at), count in index.counts.items() if at == row}


NODE_ADD = ClusterEvent.of(Resource.NODE, Action.ADD, None, make_node("new"))
FIT_REFUSED = frozenset({"Fit"})
NO_RULES: frozenset[str] = frozenset()
HOT, COLD = frozenset({"hot"}), frozenset({"cold"})
BY_SIGNALS = frozenset({"SignalFilter"})


def refused(
    queue: SchedulingQueue,
    pod: PodInfo,
    now_s: float = 0.0,
    by: frozenset[str] = FIT_REFUSED,
    rules: frozenset[str] = NO_RULES,
) -> QueuedEntity:
    """Add a Pod, pop it and give it back as refused."""
    queue.add(pod, now_s)
    entity = queue.pop(now_s)
    assert entity is not None
    assert entity.pod is pod
    assert queue.requeue_failed(entity, by, rules, now_s)
    return entity


def popped(queue: SchedulingQueue, now_s: float) -> list[str]:
    found = []
    while (entity := queue.pop(now_s)) is not None:
        found.append(entity.pod.pod.metadata.name)
    return found


class ListeningQueue(SchedulingQueue):
    """The real queue, remembering the events it was told of."""

    def __init__(self, cache: Cache) -> None:
        super().__init__({"vane": FakeProfile()}, cache.nominator)
        self.told: list[tuple[ClusterEvent, int | None]] = []

    def on_event(self, event: ClusterEvent, now_s: float, max_priority: int | None = None) -> None:
        self.told.append((event, max_priority))
        super().on_event(event, now_s, max_priority)


def pending_uids(queue: SchedulingQueue) -> list[str]:
    """Return the UIDs of all pending Pods, those in flight included."""
    return [entity.uid for entity in queue.entities()] + [pod.uid for pod in queue.in_flight()]


def is_assumed(cache: Cache, uid: str) -> bool:
    known = cache.get(uid)
    return known is not None and known.is_assumed


def assert_shows(cache: Cache, nodes: Iterable[Node], pods: Iterable[PodInfo]) -> None:
    """The cache has these nodes, and these Pods on theirs, no others; assumed Pods may be listed or not."""
    assert {node.metadata.name for node in cache.nodes()} | cache.unreadable_nodes.keys() == {
        node.metadata.name for node in nodes
    }
    bound = {pod.uid: pod.pod.spec.node_name for pod in pods}
    cached = {one.pod.uid: one for one in cache.pods()}
    assert bound == {uid: one.node_name for uid, one in cached.items() if uid in bound or not one.is_assumed}
