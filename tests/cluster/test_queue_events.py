from __future__ import annotations

import pytest

from scheduler.cluster.cache import Cache
from scheduler.cluster.heap import KeyedHeap
from scheduler.errors import StaleSnapshotError
from scheduler.framework.events import (
    Action,
    ClusterEvent,
    EventInterest,
    QueueingHint,
    Resource,
    rules_reloaded,
    signals_refreshed,
)
from scheduler.framework.queued import QueuedEntity
from scheduler.model.pods import PodInfo
from scheduler.plugins.queue_order import PrioritySort
from tests.builders import NO_SIGNALS, make_pod
from tests.cluster.worlds import (
    BY_SIGNALS,
    COLD,
    FIT,
    FIT_REFUSED,
    HOT,
    NO_RULES,
    NODE_ADD,
    Barrier,
    gated_pod,
    make_queue,
    refused,
)

# -- events ---------------------------------------------------------------------------------------------------


def test_only_an_event_that_a_refusing_plugin_asked_for_helps() -> None:
    queue = make_queue({**FIT, "Other": (EventInterest(Resource.NODE, Action.UPDATE_NODE_LABEL),)})
    refused(queue, make_pod("a"))
    queue.on_event(ClusterEvent.of(Resource.NODE, Action.UPDATE_NODE_LABEL), 5.0)
    assert queue.place_of("default/a") == "unschedulable"
    queue.on_event(NODE_ADD, 5.0)
    assert queue.place_of("default/a") == "active"


def test_an_event_during_backoff_leads_to_the_backoff_queue() -> None:
    queue = make_queue()
    refused(queue, make_pod("a"), 0.5)
    queue.on_event(NODE_ADD, 0.6)
    assert queue.place_of("default/a") == "backoff"


def test_a_hint_is_asked_once_for_pods_of_one_class_and_may_refuse() -> None:
    asked: list[str] = []

    def hint(pod: PodInfo, _event: ClusterEvent) -> QueueingHint:
        asked.append(pod.uid)
        return QueueingHint.QUEUE if pod.labels else QueueingHint.SKIP

    queue = make_queue({"Fit": (EventInterest(Resource.NODE, Action.ADD, hint),)})
    for i in range(50):
        refused(queue, make_pod(f"plain{i}"))
        refused(queue, make_pod(f"labelled{i}", labels={"app": "x"}))
    queue.on_event(NODE_ADD, 60.0)
    assert len(asked) == 2
    assert queue.counts() == {"active": 50, "backoff": 0, "unschedulable": 50, "gated": 0}


def test_a_hint_that_raises_brings_the_pod_back() -> None:
    def broken(_pod: PodInfo, _event: ClusterEvent) -> QueueingHint:
        raise RuntimeError("no idea")

    queue = make_queue({"Fit": (EventInterest(Resource.NODE, Action.ADD, broken),)})
    refused(queue, make_pod("a"))
    queue.on_event(NODE_ADD, 5.0)
    assert queue.place_of("default/a") == "active"


def test_an_event_may_be_limited_to_pods_up_to_a_priority() -> None:
    queue = make_queue()
    for name, priority in (("low", 1), ("same", 5), ("high", 9)):
        refused(queue, make_pod(name, priority=priority))
    queue.on_event(ClusterEvent.of(Resource.ASSIGNED_POD, Action.DELETE), 5.0, max_priority=5)
    assert [queue.place_of(f"default/{n}") for n in ("low", "same", "high")] == ["active", "active", "unschedulable"]


@pytest.mark.parametrize("when", ["before", "during", "after"])
def test_an_event_between_pop_and_failure_is_not_lost(when: str) -> None:
    queue = make_queue()
    queue.add(make_pod("a"), 0.0)
    if when == "before":
        queue.on_event(NODE_ADD, 0.0)
    entity = queue.pop(0.0)
    assert entity is not None
    if when == "during":
        queue.on_event(NODE_ADD, 0.0)
    queue.requeue_failed(entity, FIT_REFUSED, NO_RULES, 0.0)
    if when == "after":
        queue.on_event(NODE_ADD, 0.0)
    assert queue.place_of("default/a") == ("unschedulable" if when == "before" else "backoff")


def test_every_pending_pod_is_tried_again_after_five_minutes() -> None:
    queue = make_queue()
    refused(queue, make_pod("a"), 100.0)
    at = 100.0
    while queue.place_of("default/a") == "unschedulable":
        deadline = queue.next_deadline(at)
        assert deadline is not None
        at = max(deadline, at + 0.001)
        queue.tick(at)
    assert 400.0 < at <= 431.0
    entity = queue.pop(at)
    assert entity is not None
    assert entity.was_flushed
    queue.requeue_failed(entity, FIT_REFUSED, NO_RULES, at)
    assert not entity.was_flushed


# -- PreEnqueue -----------------------------------------------------------------------------------------------


def test_a_gated_pod_waits_until_its_gates_are_gone() -> None:
    seen: list[tuple[str, str]] = []
    queue = make_queue(on_incoming=lambda event, name: seen.append((event, name)))
    queue.add(gated_pod("a", nominated="n1"), 0.0)
    assert queue.counts() == {"active": 0, "backoff": 0, "unschedulable": 0, "gated": 1}
    queue.on_event(NODE_ADD, 1.0)
    queue.update(gated_pod("a"), gated_pod("a", labels={"app": "x"}), 2.0)
    assert queue.place_of("default/a") == "gated"
    queue.update(gated_pod("a", labels={"app": "x"}), make_pod("a"), 3.0)
    assert queue.place_of("default/a") == "active"
    assert seen == [
        ("UnscheduledPodAdd", "unschedulable"),
        ("TargetPodUpdatePodSchedulingGatesEliminated", "active"),
    ]
    entity = queue.pop(4.0)
    assert entity is not None
    assert (entity.first_seen_s, entity.first_active_s) == (0.0, 3.0)


def test_gates_see_their_own_events_and_the_flush() -> None:
    barrier, other = Barrier(), Barrier("Other")
    other.is_closed = False
    events = {**FIT, "Barrier": tuple(barrier.events())}
    queue = make_queue(events, (other, barrier))
    queue.add(make_pod("a"), 0.0)
    asked = barrier.n_asked
    queue.on_event(ClusterEvent.of(Resource.ASSIGNED_POD, Action.DELETE), 1.0)
    assert barrier.n_asked == asked
    queue.on_event(NODE_ADD, 1.0)
    assert (barrier.n_asked, other.n_asked) == (asked + 1, 1)
    barrier.is_closed = False
    queue.tick(1.0)
    queue.tick(302.0)
    assert queue.place_of("default/a") == "active"


def test_a_gate_that_raises_is_a_fault_of_the_next_attempt() -> None:
    barrier = Barrier()
    barrier.is_broken = True
    queue = make_queue({**FIT, "Barrier": tuple(barrier.events())}, (barrier,))
    queue.add(make_pod("a"), 0.0)
    entity = queue.pop(0.0)
    assert entity is not None
    assert str(entity.fault) == 'running PreEnqueue plugin "Barrier": broken barrier'
    barrier.is_broken = barrier.is_closed = False
    queue.requeue_error(entity, 0.0)
    queue.tick(60.0)
    entity = queue.pop(60.0)
    assert entity is not None
    assert entity.fault is None


def test_a_gate_that_raises_does_not_open_the_others() -> None:
    broken, closed = Barrier("Broken"), Barrier("Closed")
    broken.is_broken = True
    queue = make_queue(FIT, (broken, closed))
    queue.add(make_pod("a"), 0.0)
    assert queue.place_of("default/a") == "gated"


# -- signals and rules ----------------------------------------------------------------------------------------


def test_a_rules_event_concerns_those_whom_the_rule_refused_and_skips_backoff() -> None:
    queue = make_queue()
    refused(queue, make_pod("a"), by=BY_SIGNALS, rules=HOT)
    refused(queue, make_pod("b"), by=BY_SIGNALS, rules=COLD)
    queue.on_event(rules_reloaded(HOT), 0.0)
    assert [queue.place_of(f"default/{name}") for name in "ab"] == ["active", "unschedulable"]


def test_a_rules_event_ends_a_backoff_too() -> None:
    queue = make_queue()
    refused(queue, make_pod("a"), by=BY_SIGNALS | FIT_REFUSED, rules=HOT)
    queue.on_event(NODE_ADD, 0.1)
    assert queue.place_of("default/a") == "backoff"
    queue.on_event(rules_reloaded(HOT), 0.2)
    assert queue.place_of("default/a") == "active"


@pytest.mark.parametrize(
    ("event", "place"), [(rules_reloaded(HOT), "active"), (signals_refreshed(HOT), "unschedulable")]
)
def test_a_rules_event_during_the_attempt_counts(event: ClusterEvent, place: str) -> None:
    queue = make_queue()
    queue.add(make_pod("a"), 0.0)
    entity = queue.pop(0.0)
    assert entity is not None
    queue.on_event(event, 0.0)
    queue.requeue_failed(entity, BY_SIGNALS, HOT, 0.0)
    assert queue.place_of("default/a") == place
    queue.tick(1.0)
    assert queue.place_of("default/a") == "active"


def test_a_plugin_without_rules_may_ask_for_signals() -> None:
    queue = make_queue({**FIT, "Mine": (EventInterest(Resource.SIGNALS, Action.REFRESHED),)})
    refused(queue, make_pod("a"), by=frozenset({"Mine"}))
    refused(queue, make_pod("b"))
    queue.on_event(signals_refreshed(HOT), 0.0)
    queue.tick(1.0)
    assert [queue.place_of(f"default/{name}") for name in "ab"] == ["active", "unschedulable"]


def test_pods_freed_by_signals_come_back_spread_and_at_most_so_many_a_second() -> None:
    queue = make_queue()
    for i in range(1000):
        refused(queue, make_pod(f"p{i}", priority=i % 2), by=BY_SIGNALS, rules=HOT)
    queue.on_event(signals_refreshed(HOT), 100.0)
    queue.tick(100.0)
    assert queue.counts()["active"] == 0
    times: list[float] = []
    priorities: list[int] = []
    at = 100.0
    while queue.counts()["unschedulable"]:
        deadline = queue.next_deadline(at)
        assert deadline is not None
        assert deadline > at or not times
        at = deadline
        while (entity := queue.pop(at)) is not None:
            times.append(at)
            priorities.append(entity.priority)
    assert len(times) == 1000
    assert max(sum(start <= at < start + 1 for at in times) for start in times) <= 180
    assert 105.0 <= times[-1] < 107.0
    assert sum(priorities[200:500]) == 300


def test_a_refresh_frees_within_two_seconds() -> None:
    queue = make_queue()
    for i in range(100):
        refused(queue, make_pod(f"p{i}"), by=BY_SIGNALS, rules=HOT)
    queue.on_event(signals_refreshed(HOT), 50.0)
    queue.on_event(signals_refreshed(HOT), 50.5)
    freed = [queue.pop(51.0) for _ in range(101)]
    assert freed.count(None) == 1


def test_freed_pods_come_slowly_while_many_binds_are_under_way_and_fast_again_after() -> None:
    queue = make_queue()
    for i in range(100):
        refused(queue, make_pod(f"p{i}", priority=i), by=BY_SIGNALS, rules=HOT)
    queue.on_event(signals_refreshed(HOT), 50.0)
    at = 51.0
    freed: list[int] = []
    while at < 51.99:
        if (entity := queue.pop(at, n_binds=10)) is not None:
            freed.append(entity.priority)
        deadline = queue.next_deadline(at)
        assert deadline is not None
        assert deadline > at, "nothing is to be done at once"
        at = deadline
    assert freed == list(range(99, 79, -1)), "one in 50 ms, the most urgent first"
    assert [queue.pop(at, n_binds=9) for _ in range(81)].count(None) == 1


def test_freed_pods_wait_while_others_are_to_be_tried() -> None:
    queue = make_queue()
    for i in range(30):
        refused(queue, make_pod(f"p{i}"), by=BY_SIGNALS, rules=HOT)
    queue.on_event(signals_refreshed(HOT), 50.0)
    for i in range(25):
        queue.add(make_pod(f"new-{i}"), 51.0)
    queue.tick(51.0)
    assert queue.counts()["active"] == 26


def test_an_activation_on_its_way_is_not_put_off_by_another_event() -> None:
    queue = make_queue()
    for _ in range(5):
        entity = refused(queue, make_pod("a"), by=BY_SIGNALS | FIT_REFUSED, rules=HOT)
        queue.delete(entity.uid)
    entity = refused(queue, make_pod("a"), by=BY_SIGNALS | FIT_REFUSED, rules=HOT)
    queue.on_event(signals_refreshed(HOT), 0.0)
    queue.on_event(NODE_ADD, 0.0)
    queue.tick(1.0)
    assert queue.place_of(entity.uid) == "active"


# -- what only shows in combination ---------------------------------------------------------------------------


def test_an_entity_that_comes_back_to_a_heap_stands_where_it_belongs_now() -> None:
    heap = KeyedHeap(PrioritySort().sort_key)
    first = QueuedEntity((make_pod("a"),), 1.0, 0.0)
    heap.add(first)
    heap.add(QueuedEntity((make_pod("b"),), 2.0, 0.0))
    heap.remove(first.uid)
    first.timestamp_s = 3.0
    heap.add(first)
    order = [heap.pop(), heap.pop(), heap.pop()]
    assert [entity and entity.pod.pod.metadata.name for entity in order] == ["b", "a", None]


def test_an_event_before_pop_is_not_replayed_though_another_attempt_recorded_it() -> None:
    queue = make_queue()
    queue.add(make_pod("other", priority=1), 0.0)
    assert queue.pop(0.0) is not None
    queue.on_event(NODE_ADD, 0.0)
    refused(queue, make_pod("a"))
    assert queue.place_of("default/a") == "unschedulable"


def test_a_waiting_pod_that_changed_is_judged_by_what_it_is_now() -> None:
    def hint(pod: PodInfo, _event: ClusterEvent) -> QueueingHint:
        return QueueingHint.QUEUE if pod.labels else QueueingHint.SKIP

    queue = make_queue({"Fit": (EventInterest(Resource.NODE, Action.ADD, hint),)})
    for name in "ab":
        refused(queue, make_pod(name))
    queue.update(make_pod("b"), make_pod("b", labels={"app": "x"}), 60.0)
    queue.on_event(NODE_ADD, 60.0)
    assert [queue.place_of(f"default/{name}") for name in "ab"] == ["unschedulable", "active"]


def test_a_pod_refused_and_then_gated_waits_for_its_gate_alone() -> None:
    barrier = Barrier()
    barrier.is_closed = False
    queue = make_queue({**FIT, "Barrier": tuple(barrier.events())}, (barrier,))
    refused(queue, make_pod("a"))
    barrier.is_closed = True
    queue.on_event(NODE_ADD, 20.0)
    assert queue.place_of("default/a") == "gated"
    asked = barrier.n_asked
    queue.on_event(ClusterEvent.of(Resource.ASSIGNED_POD, Action.DELETE), 20.0)
    assert barrier.n_asked == asked


def test_a_rules_verdict_counts_even_if_its_plugin_asked_for_every_signal() -> None:
    queue = make_queue({"SignalFilter": (EventInterest(Resource.SIGNALS, Action.REFRESHED),)})
    refused(queue, make_pod("a"), by=BY_SIGNALS, rules=COLD)
    queue.on_event(signals_refreshed(HOT), 20.0)
    queue.tick(22.0)
    assert queue.place_of("default/a") == "unschedulable"


def test_a_pod_deleted_before_its_spread_activation_leaves_no_deadline() -> None:
    queue = make_queue()
    refused(queue, make_pod("a"), by=BY_SIGNALS, rules=HOT)
    queue.on_event(signals_refreshed(HOT), 0.0)
    assert queue.next_deadline(0.0) is not None
    queue.delete("default/a")
    assert queue.next_deadline(0.0) is None


def test_a_nomination_ends_the_snapshot() -> None:
    cache = Cache()
    snapshot = cache.snapshot(NO_SIGNALS, 0.0)
    cache.nominator.add(make_pod("a"), "n1")
    with pytest.raises(StaleSnapshotError):
        _ = snapshot.nodes
