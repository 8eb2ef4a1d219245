"""SchedulingQueue: every pending Pod of ours, in exactly one place.

    add ──> active ──pop──> in flight ──done──> (bound)
              ^  ^              |
              |  └── backoff <──┤ requeue_failed
              |        ^        v
              └────────┴── unschedulable, gated

Source: kube-scheduler v1.37 backend/queue (behaviour). Ours are: the events about signals and rules, which
skip backoff, and Pods that wait for their own update only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from itertools import chain

from scheduler.cluster.backoff import DEFAULT_TIMINGS, BackoffQueue, Timings
from scheduler.cluster.changes import is_respecified, pod_changes
from scheduler.cluster.heap import KeyedHeap
from scheduler.cluster.inflight import InFlight, InFlightEntity
from scheduler.cluster.nominator import Nominator
from scheduler.cluster.queue_plugins import QueueingStrategy, QueuePlugins, QueueProfile, SortKey
from scheduler.cluster.spread import Spread
from scheduler.cluster.waiting_pool import WaitingPool
from scheduler.cluster.wake_times import WakeTimes
from scheduler.framework.events import (
    BACKOFF_COMPLETE,
    FORCE_ACTIVATE,
    POP_FROM_BACKOFF,
    RULE_SOFTENED,
    SCHEDULE_ATTEMPT_FAILURE,
    SIGNALS_REFRESHED,
    UNSCHEDULABLE_TIMEOUT,
    UNSCHEDULED_POD_ADD,
    ClusterEvent,
    Resource,
)
from scheduler.framework.queued import QueuedEntity
from scheduler.model.pods import PodInfo
from scheduler.rules.compiled import CompiledRules, no_rules

_log = logging.getLogger(__name__)

IncomingObserver = Callable[[str, str], None]
"""Called with event and queue for every Pod that enters a queue: `scheduler_queue_incoming_pods_total`."""


class SchedulingQueue:
    """All times are monotonic seconds; `now_s` must never go back."""

    def __init__(
        self,
        profiles: Mapping[str, QueueProfile],
        nominator: Nominator,
        timings: Timings = DEFAULT_TIMINGS,
        on_incoming: IncomingObserver = lambda _event, _queue: None,
        rules: Callable[[], CompiledRules] = no_rules,
    ) -> None:
        # One QueueSort for all profiles: the settings refuse any other configuration.
        sort_key = SortKey(next(iter(profiles.values())).queue_sort)
        self._nominator = nominator
        self._timings = timings
        self._on_incoming = on_incoming
        self._plugins = QueuePlugins(profiles, rules)
        self._active = KeyedHeap(sort_key)
        self._backoff = BackoffQueue(timings, sort_key)
        self._waiting = WaitingPool()
        self._spread = Spread(timings.signal_spread_s, timings.max_activations_per_s, sort_key)
        self._wake_times = WakeTimes()
        self._in_flight = InFlight()
        self._next_flush_s: float | None = None
        self._others: dict[str, PodInfo] = {}

    # -- what the router tells ------------------------------------------------------------------------------

    def add(self, pod: PodInfo, now_s: float, problem: str = "") -> None:
        """Take in a pending Pod; `problem` says why it cannot be read, its attempt has to fail with that."""
        attempt = self._in_flight.get(pod.uid)
        if attempt is not None:
            attempt.saw(pod, problem)
            return
        known = self.get(pod.uid)
        if known is not None:
            self.update(known, pod, now_s, problem)
            return
        self._nominator.add(pod, pod.pod.status.nominated_node_name)
        self._to_active(QueuedEntity((pod,), now_s, now_s, problem=problem), UNSCHEDULED_POD_ADD, now_s)

    def update(self, old: PodInfo, new: PodInfo, now_s: float, problem: str = "") -> None:
        """Replace a pending Pod and bring it back if the change may help it; an unknown one is added."""
        attempt = self._in_flight.get(new.uid)
        if attempt is not None:
            attempt.saw(new, problem)
            attempt.record(pod_changes(old, new, Resource.TARGET_POD))
            return
        entity = self._find(new.uid)
        if entity is None:
            self.add(new, now_s, problem)
            return
        self._nominator.update(old, new)
        entity.members, entity.problem = (new,), problem
        if entity.uid in self._active:
            self._active.add(entity)
        elif entity.uid in self._waiting:
            self._update_waiting(entity, old, new, now_s)
        else:
            self._backoff.add(entity)

    def set_other(self, pod: PodInfo) -> None:
        """Note a Pod that waits for another scheduler: it is only to be shown."""
        self._others[pod.uid] = pod

    def delete(self, uid: str) -> PodInfo | None:
        """Remove a Pod that was deleted or bound; return it if it was known."""
        self._others.pop(uid, None)
        self._nominator.remove(uid)
        attempt = self._in_flight.finish(uid)
        if attempt is not None:
            return attempt.latest
        self._spread.discard(uid)
        self._wake_times.discard(uid)
        entity = self._active.remove(uid) or self._backoff.remove(uid) or self._waiting.remove(uid)
        return None if entity is None else entity.pod

    def on_event(self, event: ClusterEvent, now_s: float, max_priority: int | None = None) -> None:
        """Bring back the waiting Pods that an event may help, as far as their priority is not above the limit."""
        if not self._plugins.is_of_interest(event):
            return
        for group in self._waiting.groups():
            if max_priority is not None and group[0].priority > max_priority:
                continue
            strategy = self._plugins.strategy(group[0], event)
            if strategy is not QueueingStrategy.SKIP:
                for entity in group:
                    self._place(entity, strategy, event.label, now_s)
        if event.rules:
            self._end_backoff(event, now_s)
        self._in_flight.record(event)

    # -- what the loop does ---------------------------------------------------------------------------------

    def pop(self, now_s: float, n_binds: int = 0) -> QueuedEntity | None:
        """Take the next entity, which is in flight until `done` or one of the `requeue` calls.

        With nothing in the active queue one that is still backing off comes early, unless it had failed. What new
        samples have freed comes slowly while many binds are under way, `n_binds`.
        """
        self.tick(now_s, n_binds)
        entity = self._active.pop()
        if entity is None:
            entity = self._backoff.pop_early()
            if entity is None:
                return None
            self._on_incoming(POP_FROM_BACKOFF, "active")
        entity.attempts += 1
        if entity.first_active_s is None:
            entity.first_active_s = now_s
        self._in_flight.start(entity)
        return entity

    def done(self, uid: str) -> None:
        """End the recording of events for an attempt: nothing but an error can bring its Pod back now.

        As upstream this is before PreBind, which may wait for minutes. The Pod stays known until `delete`.
        """
        self._in_flight.settle(uid)

    def requeue_failed(
        self, entity: QueuedEntity, rejected_by: frozenset[str], rejected_rules: frozenset[str], now_s: float
    ) -> bool:
        """Take back an entity after its attempt; False if it was deleted or bound meanwhile.

        Events that came during the attempt count as if they came now; where not all were kept, it is tried again after
        backoff. If no plugin refused it, it failed by an error.
        """
        attempt = self._take_back(entity, now_s)
        if attempt is None:
            return False
        entity.rejected_by, entity.rejected_rules = rejected_by, rejected_rules
        strategy = QueueingStrategy.AFTER_BACKOFF
        if rejected_by:
            entity.consecutive_errors = 0
            entity.unschedulable_count += 1
            events = self._in_flight.events_since(attempt)
            if events is not None:
                moves = (self._plugins.strategy(entity, event) for event in events)
                strategy = max(moves, default=QueueingStrategy.SKIP)
        else:
            entity.consecutive_errors += 1
        self._in_flight.finish(entity.uid)
        self._place(entity, strategy, SCHEDULE_ATTEMPT_FAILURE, now_s)
        self._wake_times.set(entity.uid, self._plugins.softens_at_s(entity, now_s))
        return True

    def requeue_error(self, entity: QueuedEntity, now_s: float) -> bool:
        """Take back an entity whose attempt failed by an error, as `requeue_failed`."""
        return self.requeue_failed(entity, frozenset(), frozenset(), now_s)

    def requeue_until_update(self, entity: QueuedEntity, now_s: float) -> bool:
        """Take back a Pod refused for what it is; nothing but an update of it, not of its status, helps."""
        attempted = entity.pod
        if self._take_back(entity, now_s) is None:
            return False
        self._in_flight.finish(entity.uid)
        entity.consecutive_errors += 1
        entity.rejected_by = entity.rejected_rules = frozenset()
        entity.waits_for_update = not is_respecified(attempted, entity.pod)
        strategy = QueueingStrategy.SKIP if entity.waits_for_update else QueueingStrategy.AFTER_BACKOFF
        self._place(entity, strategy, SCHEDULE_ATTEMPT_FAILURE, now_s)
        return True

    def activate(self, uid: str, now_s: float, *, after_backoff: bool = False) -> None:
        """Try a waiting Pod again although no event asks for it."""
        entity = self._waiting.get(uid) or (None if after_backoff else self._backoff.remove(uid))
        if entity is not None:
            strategy = QueueingStrategy.AFTER_BACKOFF if after_backoff else QueueingStrategy.IMMEDIATELY
            self._place(entity, strategy, FORCE_ACTIVATE, now_s)

    def nominate(self, uid: str, node_name: str) -> None:
        """Promise a pending Pod a node, or take the promise back with ""; unknown Pods are ignored."""
        pod = self.get(uid)
        if pod is not None:
            self._nominator.add(pod, node_name)

    def tick(self, now_s: float, n_binds: int = 0) -> None:
        """Do what time alone brings: ends of backoff, spread activations, the flush. Cheap if nothing is due."""
        for entity in self._backoff.pop_completed(now_s):
            self._to_active(entity, BACKOFF_COMPLETE, now_s, is_checked=True)
        while (uid := self._spread.release(now_s, n_binds + len(self._active))) is not None:
            freed = self._waiting.get(uid)
            if freed is not None:
                self._to_active(freed, SIGNALS_REFRESHED, now_s)
        for entity in filter(None, map(self._waiting.get, self._wake_times.pop_due(now_s))):
            self._place(entity, QueueingStrategy.SPREAD, RULE_SOFTENED, now_s)
        if self._next_flush_s is None:
            self._next_flush_s = now_s + self._timings.flush_interval_s
        elif now_s >= self._next_flush_s:
            self._next_flush_s = now_s + self._timings.flush_interval_s
            self._flush(now_s)

    def next_deadline(self, now_s: float) -> float | None:
        """Return when `pop` or `tick` next has something to do, `now_s` if at once, None for never."""
        if len(self._active) or self._backoff.has_early:
            return now_s
        deadlines = [part.next_deadline() for part in (self._backoff, self._spread, self._wake_times)]
        if len(self._waiting):
            deadlines.append(now_s if self._next_flush_s is None else self._next_flush_s)
        known = [deadline for deadline in deadlines if deadline is not None]
        return max(now_s, min(known)) if known else None

    def get(self, uid: str) -> PodInfo | None:
        """Return a pending Pod as last seen, in whichever place it is."""
        attempt = self._in_flight.get(uid)
        if attempt is not None:
            return attempt.latest
        entity = self._find(uid)
        return None if entity is None else entity.pod

    def place_of(self, uid: str) -> str:
        """Return active, backoff, error-backoff, unschedulable, gated or in-flight, "" if it is unknown."""
        if self._in_flight.get(uid) is not None:
            return "in-flight"
        if uid in self._active:
            return "active"
        if self._backoff.get(uid) is not None:
            return "error-backoff" if self._backoff.is_error(uid) else "backoff"
        waiting = self._waiting.get(uid)
        if waiting is None:
            return ""
        return "gated" if waiting.gated_by else "unschedulable"

    def entities(self) -> list[QueuedEntity]:
        """Return what is pending and not in flight."""
        return list(self._entities())

    def in_flight(self) -> list[PodInfo]:
        """Return the Pods in flight as last seen, those included whose bind has not shown yet."""
        return [attempt.latest for attempt in self._in_flight]

    def others(self) -> list[PodInfo]:
        """Return the Pods that wait for other schedulers."""
        return list(self._others.values())

    def counts(self) -> dict[str, int]:
        """Return the number of entities by the value of `queue` in `scheduler_pending_pods`."""
        n_gated = self._waiting.n_gated
        return {
            "active": len(self._active),
            "backoff": len(self._backoff),
            "unschedulable": len(self._waiting) - n_gated,
            "gated": n_gated,
        }

    def refused(self) -> Iterator[QueuedEntity]:
        """Yield what some plugin refused in the last attempt."""
        return (entity for entity in self._entities() if entity.rejected_by)

    # -- how entities move ----------------------------------------------------------------------------------

    def _entities(self) -> Iterator[QueuedEntity]:
        return chain(self._active, self._backoff, self._waiting)

    def _find(self, uid: str) -> QueuedEntity | None:
        return self._active.get(uid) or self._backoff.get(uid) or self._waiting.get(uid)

    def _place(self, entity: QueuedEntity, strategy: QueueingStrategy, label: str, now_s: float) -> None:
        """Put an entity, taken back or waiting, where its strategy sends it."""
        if strategy is QueueingStrategy.SKIP:
            self._wait(entity, label)
        elif strategy is QueueingStrategy.SPREAD:
            self._spread.add(entity, now_s)
            self._wait(entity, label)
        elif strategy is QueueingStrategy.AFTER_BACKOFF and self._backoff.is_waiting(entity, now_s):
            # One with a time in the spread would come back later by way of its backoff.
            if entity.uid not in self._spread:
                self._to_backoff(entity, label)
        else:
            self._to_active(entity, label, now_s)

    def _to_active(self, entity: QueuedEntity, label: str, now_s: float, is_checked: bool = False) -> None:
        if not is_checked:
            self._plugins.run_pre_enqueue(entity)
        if entity.gated_by:
            self._wait(entity, label)
            return
        self._leave_waiting(entity)
        if entity.first_active_s is None:
            entity.first_active_s = now_s
        self._active.add(entity)
        self._on_incoming(label, "active")

    def _to_backoff(self, entity: QueuedEntity, label: str) -> None:
        self._plugins.run_pre_enqueue(entity)
        if entity.gated_by:
            self._wait(entity, label)
            return
        self._leave_waiting(entity)
        self._backoff.add(entity)
        self._on_incoming(label, "backoff")

    def _wait(self, entity: QueuedEntity, label: str) -> None:
        if entity.gated_by:
            # The flush brought it here, not to an attempt.
            entity.was_flushed = False
        if self._waiting.add(entity):
            self._on_incoming(label, "unschedulable")

    def _leave_waiting(self, entity: QueuedEntity) -> None:
        self._waiting.remove(entity.uid)
        self._spread.discard(entity.uid)
        self._wake_times.discard(entity.uid)

    def _update_waiting(self, entity: QueuedEntity, old: PodInfo, new: PodInfo, now_s: float) -> None:
        if entity.waits_for_update and is_respecified(old, new):
            entity.waits_for_update = False
            self._place(entity, QueueingStrategy.AFTER_BACKOFF, "TargetPodUpdate", now_s)
            return
        for event in pod_changes(old, new, Resource.TARGET_POD):
            strategy = self._plugins.strategy(entity, event)
            if strategy is not QueueingStrategy.SKIP:
                self._place(entity, strategy, event.label, now_s)
                break
        if entity.uid in self._waiting:
            self._waiting.add(entity)

    def _take_back(self, entity: QueuedEntity, now_s: float) -> InFlightEntity | None:
        """Bring an entity up to date after its attempt; None where the Pod must not come back."""
        attempt = self._in_flight.get(entity.uid)
        if attempt is None:
            _log.debug("Pod %s went away during its attempt", entity.pod)
            return None
        entity.members, entity.problem = (attempt.latest,), attempt.problem
        entity.timestamp_s = now_s
        entity.was_flushed = entity.waits_for_update = False
        entity.flushed_s = None
        self._nominator.add(attempt.latest, attempt.latest.pod.status.nominated_node_name)
        return attempt

    def _end_backoff(self, event: ClusterEvent, now_s: float) -> None:
        """Pods that a rule may have freed do not wait for their backoff, wherever they are."""
        for entity in self._backoff.refused():
            if not entity.rejected_rules & event.rules:
                continue
            strategy = self._plugins.strategy(entity, event)
            if strategy is not QueueingStrategy.SKIP:
                self._backoff.remove(entity.uid)
                self._place(entity, strategy, event.label, now_s)

    def _flush(self, now_s: float) -> None:
        for entity in self._waiting:
            since_s = max(entity.timestamp_s, entity.flushed_s or entity.timestamp_s)
            if now_s - since_s > self._timings.max_unschedulable_s and not entity.waits_for_update:
                entity.was_flushed = True
                entity.flushed_s = now_s
                self._place(entity, QueueingStrategy.AFTER_BACKOFF, UNSCHEDULABLE_TIMEOUT.label, now_s)
