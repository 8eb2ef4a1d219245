from __future__ import annotations

import itertools

import pytest

from scheduler.cluster.backoff import DEFAULT_TIMINGS, BackoffQueue, Timings
from scheduler.cluster.cache import Cache
from scheduler.cluster.queue import SchedulingQueue
from scheduler.framework.events import (
    Action,
    EventInterest,
    Resource,
    rules_reloaded,
)
from scheduler.framework.queued import QueuedEntity
from scheduler.plugins.queue_order import PrioritySort
from tests.builders import make_pod
from tests.cluster.worlds import (
    FIT,
    FIT_REFUSED,
    HOT,
    NO_RULES,
    NODE_ADD,
    FakeProfile,
    make_queue,
    pending_uids,
    popped,
    refused,
    versioned,
)

# -- order and backoff ----------------------------------------------------------------------------------------


def test_greater_priority_first_then_who_came_first() -> None:
    queue = make_queue()
    for at, (name, priority) in enumerate([("a", 0), ("b", 5), ("c", 5), ("d", -1)]):
        queue.add(make_pod(name, priority=priority), float(at))
    assert popped(queue, 9.0) == ["b", "c", "a", "d"]


@pytest.mark.parametrize(
    ("unschedulable", "errors", "expected_s"),
    [
        *[(0, 0, 0), (1, 0, 1), (2, 0, 2), (3, 0, 4), (4, 0, 8), (5, 0, 10), (6, 0, 10), (5000, 0, 10)],
        *[(5, 1, 1), (5, 2, 2), (1, 4, 8), (0, 5, 10)],
    ],
)
def test_backoff_doubles_to_its_maximum_by_errors_in_a_row_or_refusals(
    unschedulable: int, errors: int, expected_s: float
) -> None:
    backoff = BackoffQueue(DEFAULT_TIMINGS, PrioritySort().sort_key)
    entity = QueuedEntity((make_pod(),), 0.0, 0.0, unschedulable_count=unschedulable, consecutive_errors=errors)
    assert backoff.duration_s(entity) == expected_s


def test_the_maximum_grows_with_the_root_of_the_members() -> None:
    backoff = BackoffQueue(DEFAULT_TIMINGS, PrioritySort().sort_key)
    members = tuple(make_pod(f"m{i}") for i in range(4))
    assert backoff.duration_s(QueuedEntity(members, 0.0, 0.0, unschedulable_count=9)) == 20.0


def test_a_maximum_of_zero_switches_backoff_off() -> None:
    queue = make_queue(timings=Timings(max_backoff_s=0.0))
    refused(queue, make_pod("a"), 0.5)
    queue.on_event(NODE_ADD, 0.5)
    assert queue.place_of("default/a") == "active"


def test_backoff_ends_when_its_whole_second_is_over() -> None:
    queue = make_queue()
    queue.add(make_pod("a"), 10.7)
    entity = queue.pop(10.7)
    assert entity is not None
    queue.requeue_error(entity, 10.7)
    # 10.7 s + 1 s, truncated: the second 11 has to pass.
    assert queue.next_deadline(10.7) == 12.0
    queue.tick(11.99)
    assert queue.place_of("default/a") == "error-backoff"
    queue.tick(12.0)
    assert queue.place_of("default/a") == "active"


def test_an_empty_active_queue_takes_from_backoff_but_not_from_error_backoff() -> None:
    queue = make_queue()
    queue.add(make_pod("failed"), 0.0)
    failed = queue.pop(0.0)
    assert failed is not None
    queue.requeue_error(failed, 0.0)
    refused(queue, make_pod("low", priority=1), 0.1)
    refused(queue, make_pod("high", priority=2), 0.2)
    queue.on_event(NODE_ADD, 0.3)
    assert queue.counts() == {"active": 0, "backoff": 3, "unschedulable": 0, "gated": 0}
    assert queue.next_deadline(0.3) == 0.3
    assert popped(queue, 0.3) == ["high", "low"]
    assert queue.place_of("default/failed") == "error-backoff"


def test_errors_in_a_row_are_counted_apart_and_end_with_a_refusal() -> None:
    queue = make_queue()
    entity = refused(queue, make_pod("a"))
    queue.on_event(NODE_ADD, 20.0)
    for expected, now_s in ((1, 20.0), (2, 40.0)):
        assert queue.pop(now_s) is entity
        queue.requeue_error(entity, now_s)
        assert (entity.unschedulable_count, entity.consecutive_errors) == (1, expected)
        assert entity.rejected_by == frozenset()
    assert queue.pop(60.0) is entity
    queue.requeue_failed(entity, FIT_REFUSED, NO_RULES, 60.0)
    assert (entity.unschedulable_count, entity.consecutive_errors, entity.attempts) == (2, 0, 4)


# -- updates, deletions ---------------------------------------------------------------------------------------


def test_a_pod_updated_during_its_attempt_comes_back_as_it_is_now() -> None:
    queue = make_queue({"Fit": (EventInterest(Resource.TARGET_POD, Action.UPDATE_POD_SCALE_DOWN),)})
    old, new = make_pod("a", cpu="2"), make_pod("a", cpu="1")
    queue.add(old, 0.0)
    entity = queue.pop(0.0)
    assert entity is not None
    queue.update(old, new, 0.0)
    assert entity.pod is old
    queue.requeue_failed(entity, FIT_REFUSED, NO_RULES, 0.0)
    assert entity.pod is new
    assert queue.place_of("default/a") == "backoff"


def test_an_update_of_one_pod_is_no_event_for_another() -> None:
    queue = make_queue({"Fit": (EventInterest(Resource.TARGET_POD, Action.UPDATE),)})
    refused(queue, make_pod("a"))
    refused(queue, make_pod("b"))
    queue.update(make_pod("a"), make_pod("a", labels={"app": "x"}), 60.0)
    assert [queue.place_of(f"default/{name}") for name in "ab"] == ["active", "unschedulable"]


@pytest.mark.parametrize("place", ["active", "backoff", "error-backoff", "unschedulable"])
def test_an_update_replaces_the_pod_where_it_stands(place: str) -> None:
    queue = make_queue()
    pod, new = make_pod("a"), versioned(make_pod("a"), 2)
    if place == "active":
        queue.add(pod, 0.0)
    elif place == "error-backoff":
        queue.add(pod, 0.0)
        entity = queue.pop(0.0)
        assert entity is not None
        queue.requeue_error(entity, 0.0)
    else:
        refused(queue, pod)
        if place == "backoff":
            queue.on_event(NODE_ADD, 0.0)
    queue.update(pod, new, 0.0)
    assert queue.place_of("default/a") == place
    assert queue.get("default/a") is new


@pytest.mark.parametrize("is_settled", [False, True])
def test_a_pod_deleted_during_its_attempt_does_not_come_back(is_settled: bool) -> None:
    queue = make_queue()
    queue.add(make_pod("a"), 0.0)
    entity = queue.pop(0.0)
    assert entity is not None
    if is_settled:
        queue.done(entity.uid)
    assert queue.delete("default/a") is entity.pod
    assert not queue.requeue_error(entity, 0.0)
    assert pending_uids(queue) == []


def test_a_failed_bind_brings_the_pod_back_after_done() -> None:
    queue = make_queue()
    pod, new = make_pod("a"), versioned(make_pod("a"), 2)
    queue.add(pod, 0.0)
    entity = queue.pop(0.0)
    assert entity is not None
    queue.done(entity.uid)
    assert pending_uids(queue) == ["default/a"]
    queue.update(pod, new, 0.0)
    assert queue.requeue_error(entity, 0.0)
    assert queue.place_of("default/a") == "error-backoff"
    assert queue.get("default/a") is new


def test_a_pod_refused_for_what_it_is_waits_for_its_own_update_only() -> None:
    queue = make_queue()
    pod = make_pod("a")
    queue.add(pod, 0.0)
    entity = queue.pop(0.0)
    assert entity is not None
    queue.requeue_until_update(entity, 0.0)
    queue.on_event(NODE_ADD, 20.0)
    queue.on_event(rules_reloaded(HOT), 20.0)
    queue.tick(0.0)
    queue.tick(1000.0)
    status_only = make_pod("a", status={"phase": "Pending"})
    queue.update(pod, status_only, 1000.0)
    assert queue.place_of("default/a") == "unschedulable"
    queue.update(status_only, make_pod("a", cpu="1"), 1001.0)
    assert queue.place_of("default/a") == "active"
    assert queue.pop(1001.0) is entity
    queue.requeue_failed(entity, FIT_REFUSED, NO_RULES, 1001.0)
    queue.on_event(NODE_ADD, 1020.0)
    assert queue.place_of("default/a") == "active"


def test_an_update_that_came_during_the_attempt_counts_for_a_pod_refused_for_what_it_is() -> None:
    queue = make_queue()
    queue.add(make_pod("a"), 0.0)
    entity = queue.pop(0.0)
    assert entity is not None
    queue.update(make_pod("a"), make_pod("a", cpu="1"), 0.0)
    queue.requeue_until_update(entity, 0.0)
    assert queue.place_of("default/a") == "error-backoff"


def test_what_was_refused_follows_the_pods() -> None:
    queue = make_queue()
    refused(queue, make_pod("a"))
    refused(queue, make_pod("b"), by=frozenset({"Fit", "Ports"}))
    assert {one.pod.name: one.rejected_by for one in queue.refused()} == {"a": {"Fit"}, "b": {"Fit", "Ports"}}
    queue.delete("default/a")
    queue.on_event(NODE_ADD, 20.0)
    queue.pop(20.0)
    assert list(queue.refused()) == []


def test_an_idle_queue_has_no_deadline() -> None:
    queue = make_queue()
    assert queue.pop(3.0) is None
    assert queue.next_deadline(3.0) is None
    queue.add(make_pod("a"), 3.0)
    assert queue.next_deadline(3.0) == 3.0


def test_many_removals_do_not_swell_the_heap() -> None:
    queue = make_queue()
    for i in itertools.chain(range(3000), range(3000)):
        queue.add(make_pod(f"p{i % 10}"), 0.0)
        queue.delete(f"default/p{i % 10}")
    assert queue.counts()["active"] == 0
    assert popped(queue, 1.0) == []


# -- nominations ----------------------------------------------------------------------------------------------


def test_nominations_follow_the_status_and_the_loop() -> None:
    cache = Cache()
    queue = SchedulingQueue({"vane": FakeProfile(FIT)}, cache.nominator)
    nominated = cache.state.nominated
    queue.add(make_pod("a", nominated="n1"), 0.0)
    queue.add(make_pod("b"), 0.0)
    assert {node: list(pods) for node, pods in nominated.items()} == {"n1": ["default/a"]}
    queue.nominate("default/b", "n2")
    queue.update(make_pod("b"), make_pod("b", labels={"app": "x"}), 0.0)
    assert cache.nominator.node_of("default/b") == "n2"
    assert nominated["n2"]["default/b"].labels == {"app": "x"}
    queue.update(make_pod("a", nominated="n1"), make_pod("a", nominated="n3"), 0.0)
    assert sorted(nominated) == ["n2", "n3"]
    queue.nominate("default/b", "")
    queue.nominate("default/unknown", "n9")
    queue.delete("default/a")
    assert nominated == {}
