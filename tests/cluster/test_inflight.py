"""What is kept for Pods between pop and the end of their attempt: as much as they need, and no more than fits."""

from __future__ import annotations

import weakref
from itertools import pairwise

import pytest

from scheduler.cluster.inflight import MAX_EVENTS, MAX_OWN_EVENTS
from scheduler.framework.events import Action, ClusterEvent, Resource
from scheduler.model.pods import PodInfo
from tests.builders import make_pod
from tests.cluster.worlds import FIT_REFUSED, NO_RULES, make_queue


def test_events_are_kept_as_long_as_an_attempt_needs_them_and_no_longer() -> None:
    queue = make_queue()

    def tell(action: Action) -> weakref.ref[PodInfo]:
        pod = make_pod("other")
        queue.on_event(ClusterEvent.of(Resource.NODE, action, pod), 0.0)
        return weakref.ref(pod)

    before = tell(Action.ADD)
    assert before() is None
    for name in ("a", "b"):
        queue.add(make_pod(name), 0.0)
    first = queue.pop(0.0)
    for_first = tell(Action.ADD)
    second = queue.pop(0.0)
    nobody_asked = tell(Action.UPDATE_NODE_CONDITION)
    for_both = tell(Action.ADD)
    assert first is not None
    assert second is not None
    assert [kept() is not None for kept in (for_first, nobody_asked, for_both)] == [True, False, True]
    queue.done(first.uid)
    assert [kept() is not None for kept in (for_first, for_both)] == [False, True]
    queue.done(second.uid)
    assert for_both() is None


@pytest.mark.parametrize("more", [0, 1])
def test_a_pod_that_may_have_missed_an_event_is_tried_again(more: int) -> None:
    """A Pod may wait at Permit for 15 minutes; what comes meanwhile has a bound."""
    queue = make_queue()
    for name in ("a", "b"):
        queue.add(make_pod(name), 0.0)
    old = queue.pop(0.0)
    unhelpful = [ClusterEvent.of(Resource.NODE, Action.ADD, make_pod(str(i))) for i in range(MAX_EVENTS + more)]
    kept = [weakref.ref(event.old) for event in unhelpful if event.old is not None]
    for event in unhelpful[:-1]:
        queue.on_event(event, 0.0)
    new = queue.pop(0.0)
    queue.on_event(unhelpful[-1], 0.0)
    assert old is not None
    assert new is not None
    del unhelpful, event
    assert sum(one() is not None for one in kept) == MAX_EVENTS
    refused_by = frozenset({"Nobody"})
    queue.requeue_failed(old, refused_by, NO_RULES, 0.0)
    queue.requeue_failed(new, refused_by, NO_RULES, 0.0)

    assert queue.place_of(old.uid) == ("backoff" if more else "unschedulable")
    assert queue.place_of(new.uid) == "unschedulable"
    assert [one() for one in kept if one() is not None] == []


@pytest.mark.parametrize("is_settled", [False, True])
def test_updates_of_a_pod_in_flight_are_not_kept_for_ever(is_settled: bool) -> None:
    queue = make_queue()
    queue.add(make_pod("a"), 0.0)
    entity = queue.pop(0.0)
    assert entity is not None
    if is_settled:
        queue.done(entity.uid)
    versions = [make_pod("a", labels={"n": str(number)}) for number in range(2 * MAX_OWN_EVENTS)]
    for old, new in pairwise(versions):
        queue.update(old, new, 0.0)
    kept = [weakref.ref(one) for one in versions]
    latest = versions[-1]
    del versions, old, new
    assert [one() for one in kept if one() is not None] == [latest]

    queue.requeue_failed(entity, FIT_REFUSED, NO_RULES, 0.0)
    assert queue.place_of(entity.uid) == "backoff"
