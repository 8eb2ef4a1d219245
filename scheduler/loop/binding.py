"""The binding cycle: assume, hand the bind to the binder process, settle what comes back. One undo."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass

from scheduler.cluster.cache import Cache
from scheduler.cluster.changes import pod_deleted
from scheduler.cluster.queue import SchedulingQueue
from scheduler.errors import InvalidObjectError, PluginError
from scheduler.framework.instructions import Bind
from scheduler.framework.profile import Profile
from scheduler.kube.binder.messages import BindRequest, BindResult
from scheduler.loop.attempt import Attempt
from scheduler.loop.failure import FailureHandler, pod_ref
from scheduler.loop.ports import Binder
from scheduler.metrics import Metrics
from scheduler.model.pods import PodInfo

log = logging.getLogger(__name__)

_BOUND = ("bound", "conflict_same_node")
_NOT_OURS_ANY_MORE = ("conflict_other_node", "deleted")
_CONFLICTS = ("conflict_same_node", "conflict_other_node", "deleted", "gated")
_MANY_ATTEMPTS = 15


@dataclass(frozen=True, slots=True)
class _InFlight:
    attempt: Attempt
    node_name: str


class BindingCycle:
    """Binds that are under way, by Pod UID. The watch event of the bound Pod confirms the assumption."""

    def __init__(
        self, cache: Cache, queue: SchedulingQueue, binder: Binder, failure: FailureHandler, metrics: Metrics
    ) -> None:
        self._cache = cache
        self._queue = queue
        self._binder = binder
        self._failure = failure
        self._metrics = metrics
        self._in_flight: dict[str, _InFlight] = {}

    def __len__(self) -> int:
        return len(self._in_flight)

    def begin(self, attempt: Attempt, node_name: str, now_s: float) -> None:
        """Assume the Pod on its node and ask for the bind; its entity stays in flight until `finish`."""
        pod = attempt.pod
        try:
            bind = _instruction(attempt.profile, pod, node_name)
            self._cache.assume(pod, node_name)
        except (InvalidObjectError, PluginError) as error:
            self._failure.failed(attempt, str(error), now_s)
            return
        self._in_flight[pod.uid] = _InFlight(attempt, node_name)
        self._binder.bind(
            BindRequest(
                pod=pod_ref(pod),
                node_name=bind.node_name,
                scheduler_name=attempt.scheduler_name,
                not_after=math.inf,
            )
        )

    def finish(self, result: BindResult, now_s: float) -> None:
        """Settle one bind; an outcome that nobody waits for is ignored."""
        bind = self._in_flight.pop(result.uid, None)
        if bind is None:
            return
        if result.outcome in _CONFLICTS:
            self._metrics.bind_conflicts(result.outcome.removeprefix("conflict_")).inc()
        if result.outcome in _BOUND:
            self._queue.done(result.uid)
            self._scheduled(bind.attempt, now_s)
            return
        self._undo(bind.attempt, now_s)
        if result.outcome in _NOT_OURS_ANY_MORE:
            self._queue.done(result.uid)
            log.info("bind lost", extra={"pod": bind.attempt.pod.key, "outcome": result.outcome})
            return
        name = bind.attempt.profile.bind[0].name
        self._failure.failed(bind.attempt, f'running Bind plugin "{name}": {result.message}', now_s)

    def _undo(self, attempt: Attempt, now_s: float) -> None:
        """Take back everything that `begin` did, and let others use the room."""
        forgotten = self._cache.forget(attempt.pod.uid)
        if forgotten is not None:
            self._queue.on_event(pod_deleted(forgotten), now_s)

    def _scheduled(self, attempt: Attempt, now_s: float) -> None:
        entity, metrics = attempt.entity, self._metrics
        metrics.schedule_attempts(attempt.scheduler_name, "scheduled").inc()
        metrics.scheduling_attempt_duration(attempt.scheduler_name, "scheduled").observe(now_s - attempt.began_s)
        metrics.pod_scheduling_attempts().observe(entity.attempts)
        attempts = str(entity.attempts) if entity.attempts < _MANY_ATTEMPTS else f"{_MANY_ATTEMPTS}+"
        waiting_since_s = entity.first_seen_s if entity.first_active_s is None else entity.first_active_s
        metrics.pod_scheduling_sli_duration(attempts).observe(now_s - waiting_since_s)
        if entity.was_flushed:
            metrics.pod_scheduled_after_flush().inc()


def _instruction(profile: Profile, pod: PodInfo, node_name: str) -> Bind:
    for plugin in profile.bind:
        try:
            bind = plugin.bind(None, pod, node_name)
        except Exception as error:  # a plugin's fault fails this attempt only
            message = f'running Bind plugin "{plugin.name}": {error}'
            raise PluginError(plugin.name, "Bind", message) from error
        if bind is not None:
            return bind
    raise PluginError(profile.bind[-1].name, "Bind", f"no Bind plugin took Pod {pod.key}")
