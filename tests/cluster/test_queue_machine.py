"""No entity is ever lost, and no event that comes during an attempt is."""

from __future__ import annotations

import weakref
from collections import Counter
from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from scheduler.framework.events import Action, ClusterEvent, EventInterest, Resource, rules_reloaded, signals_refreshed
from scheduler.framework.queued import QueuedEntity
from scheduler.model.pods import PodInfo
from tests.builders import make_pod
from tests.cluster.worlds import gated_pod, make_queue, pending_uids

NAMES = [f"p{i}" for i in range(5)]
PLUGINS = {
    "Fit": (EventInterest(Resource.NODE, Action.ADD), EventInterest(Resource.ASSIGNED_POD, Action.DELETE)),
    "Spread": (EventInterest(Resource.ASSIGNED_POD, Action.ADD | Action.DELETE),),
    "SignalFilter": (),
}
EVENTS = [
    ClusterEvent.of(Resource.NODE, Action.ADD),
    ClusterEvent.of(Resource.ASSIGNED_POD, Action.ADD),
    ClusterEvent.of(Resource.ASSIGNED_POD, Action.DELETE),
    signals_refreshed(frozenset({"r1"})),
    rules_reloaded(frozenset({"r2"})),
]
WAITS = ("unschedulable", "gated")


def helps(event: ClusterEvent, by: frozenset[str], rules: frozenset[str]) -> bool:
    if event.rules:
        return bool(event.rules & rules)
    return any(interest.covers(event) for plugin in by for interest in PLUGINS[plugin])


class QueueMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.queue = make_queue(PLUGINS)
        self.now_s = 0.0
        self.pods: dict[str, PodInfo] = {}
        self.flying: dict[str, QueuedEntity] = {}
        self.missed: dict[str, list[ClusterEvent]] = {}
        self.held_by_events: list[weakref.ref[PodInfo]] = []

    @rule(name=st.sampled_from(NAMES), is_gated=st.booleans(), priority=st.integers(0, 2))
    def add(self, name: str, is_gated: bool, priority: int) -> None:
        uid = f"default/{name}"
        if uid not in self.pods and uid not in self.flying:
            self.pods[uid] = (gated_pod if is_gated else make_pod)(name, priority=priority)
            self.queue.add(self.pods[uid], self.now_s)

    @rule(name=st.sampled_from(NAMES), label=st.sampled_from("xy"))
    def update(self, name: str, label: str) -> None:
        old = self.pods.get(f"default/{name}")
        if old is not None:
            new = make_pod(name, labels={"app": label}, priority=old.priority)
            self.pods[new.uid] = new
            self.queue.update(old, new, self.now_s)

    @rule(name=st.sampled_from(NAMES))
    def delete(self, name: str) -> None:
        known = self.pods.pop(f"default/{name}", None)
        assert self.queue.delete(f"default/{name}") is known

    @rule()
    def pop(self) -> None:
        entity = self.queue.pop(self.now_s)
        if entity is not None:
            assert entity.uid not in self.flying
            assert entity.pod is self.pods[entity.uid]
            self.flying[entity.uid] = entity
            self.missed[entity.uid] = []
        else:
            assert self.queue.counts()["active"] == 0

    @precondition(lambda self: self.flying)
    @rule(
        data=st.data(),
        by=st.frozensets(st.sampled_from(sorted(PLUGINS)), max_size=2),
        rules=st.frozensets(st.sampled_from(["r1", "r2", "r3"]), max_size=2),
    )
    def fail(self, data: st.DataObject, by: frozenset[str], rules: frozenset[str]) -> None:
        uid = data.draw(st.sampled_from(sorted(self.flying)))
        entity, missed = self.flying.pop(uid), self.missed.pop(uid)
        rules = rules if "SignalFilter" in by else frozenset()
        came_back = self.queue.requeue_failed(entity, by, rules, self.now_s)
        assert came_back == (uid in self.pods)
        place = self.queue.place_of(uid)
        if came_back and not by:
            assert place == ("gated" if entity.pod.pod.spec.scheduling_gates else "error-backoff")
        elif came_back and any(helps(event, by, rules) and not event.rules for event in missed):
            assert place != "unschedulable" or any(event.resource is Resource.SIGNALS for event in missed)
        elif came_back and not any(helps(event, by, rules) for event in missed):
            assert place == "unschedulable"

    @precondition(lambda self: self.flying)
    @rule(data=st.data())
    def refuse_for_what_it_is(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.flying)))
        self.missed.pop(uid)
        assert self.queue.requeue_until_update(self.flying.pop(uid), self.now_s) == (uid in self.pods)

    @precondition(lambda self: self.flying)
    @rule(data=st.data())
    def bind(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.flying)))
        del self.flying[uid], self.missed[uid]
        self.queue.done(uid)
        self.queue.delete(uid)
        self.pods.pop(uid, None)

    @rule(event=st.sampled_from(EVENTS))
    def happen(self, event: ClusterEvent) -> None:
        pod = make_pod("gone")
        self.held_by_events.append(weakref.ref(pod))
        event = replace(event, old=pod)
        self.queue.on_event(event, self.now_s)
        for events in self.missed.values():
            events.append(event)

    @rule(seconds=st.sampled_from([0.1, 0.7, 1.0, 5.0, 40.0, 400.0]))
    def wait(self, seconds: float) -> None:
        self.now_s += seconds
        self.queue.tick(self.now_s)

    @invariant()
    def every_pending_pod_is_in_exactly_one_place(self) -> None:
        assert Counter(pending_uids(self.queue)) == Counter(list(self.pods))
        counts = self.queue.counts()
        places = Counter(self.queue.place_of(uid) for uid in self.pods)
        assert counts == {
            "active": places["active"],
            "backoff": places["backoff"] + places["error-backoff"],
            "unschedulable": places["unschedulable"],
            "gated": places["gated"],
        }
        assert all(self.queue.get(uid) is pod for uid, pod in self.pods.items())

    @invariant()
    def something_will_bring_back_whoever_waits(self) -> None:
        deadline = self.queue.next_deadline(self.now_s)
        if any(self.queue.place_of(uid) != "in-flight" for uid in self.pods):
            assert deadline is not None
            assert self.now_s <= deadline <= self.now_s + 30.0

    @invariant()
    def no_event_is_kept_without_an_attempt(self) -> None:
        if not self.flying:
            assert [held() for held in self.held_by_events if held() is not None] == []
            self.held_by_events.clear()


QueueMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestQueueMachine = QueueMachine.TestCase
