"""What follows when a Pod gets no node: its place in the queue, its condition, its Event. And faults of our own."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np

from scheduler.cluster.cache import Cache
from scheduler.cluster.queue import SchedulingQueue
from scheduler.errors import CacheCorruptedError, UnsupportedPodError, VaneError
from scheduler.framework.diagnosis import Diagnosis, Refusal
from scheduler.framework.status import Status
from scheduler.kube.binder.messages import EventRequest, FailureReport, PodRef
from scheduler.loop.attempt import Attempt
from scheduler.loop.ports import Binder, Clock
from scheduler.metrics import Metrics
from scheduler.model.objects import PodCondition
from scheduler.model.pods import PodInfo

log = logging.getLogger(__name__)

UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"

_TOLD_AGAIN_S = 60.0
_LOST_IN_VAIN = 3
"""After so many errors in a row the Pod is told: it is not the watch that is late."""


def pod_ref(pod: PodInfo) -> PodRef:
    metadata = pod.pod.metadata
    return PodRef(
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        resource_version=metadata.resource_version,
    )


class Guard:
    """Has a fault of ours end what it happened in and no more: it is logged and counted.

    Only a contradiction in the cache ends the process. Of faults of one kind in one place the log shows one a minute.
    """

    PLACES: Final = ("cycle", "record", "binding", "follow", "look-after", "signals", "page")

    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._metrics = metrics
        self._clock = clock
        self._told_s: dict[tuple[str, str], float] = {}
        for where in self.PLACES:
            metrics.faults(where)  # on the page from the start: what appears at 1 is no increase to Prometheus

    def caught(self, where: str, error: Exception, **about: str) -> str:
        """Log and count a fault; return its text. A contradiction in the cache is raised again."""
        if isinstance(error, CacheCorruptedError):
            raise error
        self._metrics.faults(where).inc()
        key, now_s = (where, type(error).__name__), self._clock()
        if now_s - self._told_s.get(key, -_TOLD_AGAIN_S) >= _TOLD_AGAIN_S:
            self._told_s[key] = now_s
            log.error("a fault of Vane itself was caught", exc_info=error, extra={"where": where, **about})
        return str(error) if isinstance(error, VaneError) else f"{type(error).__name__}: {error}"

    @contextmanager
    def around(self, where: str) -> Iterator[None]:
        """Survive a fault of what is done inside, of which then the rest is left out."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - which fault, nobody can know
            self.caught(where, error)


class FailureHandler:
    """Ends an attempt without a node.

    `Unschedulable` says that more or other nodes could help and makes autoscalers act; everything else,
    our own faults and what is not built, is `SchedulerError`.
    """

    def __init__(self, cache: Cache, queue: SchedulingQueue, binder: Binder, metrics: Metrics, guard: Guard) -> None:
        self.guard = guard
        self._cache = cache
        self._queue = queue
        self._binder = binder
        self._metrics = metrics

    def skip(self, attempt: Attempt) -> bool:
        """Drop a Pod that is being deleted or has a node already; return whether it was dropped."""
        pod = attempt.pod
        if pod.pod.metadata.deletion_timestamp is not None:
            self._binder.event(
                EventRequest(
                    pod=pod_ref(pod),
                    scheduler_name=attempt.scheduler_name,
                    type="Warning",
                    reason="FailedScheduling",
                    action="Scheduling",
                    note=f"skip schedule deleting pod: {pod.key}",
                )
            )
        elif not self._cache.is_placed(pod.uid):
            return False
        self._queue.done(pod.uid)
        return True

    def refused(self, attempt: Attempt, diagnosis: Diagnosis, now_s: float, nomination: str | None = None) -> None:
        """No node is feasible: wait for an event that one of the refusing plugins asked for.

        `nomination` is the node that the Pod is promised, "" takes the promise back, None changes nothing.
        """
        waits = self._queue.requeue_failed(attempt.entity, diagnosis.plugins, diagnosis.rules, now_s)
        self._count(attempt, "unschedulable", now_s)
        if waits:
            if nomination is not None:
                self._queue.nominate(attempt.pod.uid, nomination)
            self._report(attempt, UNSCHEDULABLE, diagnosis.message(), nomination)

    def refused_there(
        self, attempt: Attempt, plugin: str, status: Status, now_s: float, was_nominated: bool = False
    ) -> None:
        """A plugin refused the node that was chosen: wait for an event that this plugin asked for.

        `was_nominated`: that node was written to the Pod's status, which has to be taken back.
        """
        here = np.ones(1, dtype=np.bool_)
        refusals = tuple(Refusal(plugin, status.code, reason, here) for reason in status.reasons or ("",))
        diagnosis = Diagnosis(1, refusals)
        waits = self._queue.requeue_failed(attempt.entity, diagnosis.plugins, diagnosis.rules, now_s)
        self._count(attempt, "unschedulable", now_s)
        if waits:
            self._report_there(attempt, UNSCHEDULABLE, diagnosis.message(), was_nominated)

    def refused_late(self, attempt: Attempt, status: Status, now_s: float, was_nominated: bool = False) -> None:
        """PreBind refused the Pod: as upstream it is told so, and tried again after backoff as after an error."""
        waits = self._queue.requeue_error(attempt.entity, now_s)
        self._count(attempt, "unschedulable", now_s)
        if waits:
            self._report_there(attempt, UNSCHEDULABLE, ", ".join(status.reasons), was_nominated)

    def unsupported(self, attempt: Attempt, error: UnsupportedPodError, now_s: float) -> None:
        """The Pod needs what is not built: only an update of the Pod can help."""
        waits = self._queue.requeue_until_update(attempt.entity, now_s)
        self._count(attempt, "error", now_s)
        if waits:
            self._report(attempt, SCHEDULER_ERROR, f"the Pod needs what this scheduler does not implement: {error}")

    def failed(self, attempt: Attempt, message: str, now_s: float, was_nominated: bool = False) -> None:
        """A fault while the Pod was in flight, not a verdict: try again after backoff."""
        log.warning("scheduling attempt failed", extra={"pod": attempt.pod.key, "error": message})
        waits = self._queue.requeue_error(attempt.entity, now_s)
        self._count(attempt, "error", now_s)
        if waits:
            self._report_there(attempt, SCHEDULER_ERROR, message, was_nominated)

    def faulted(
        self, attempt: Attempt, where: str, error: Exception, now_s: float, was_nominated: bool = False
    ) -> None:
        """A fault of ours ended the attempt: only this Pod suffers, and is tried again."""
        message = self.guard.caught(where, error, pod=attempt.pod.key)
        self.failed(attempt, message, now_s, was_nominated)

    def lost(self, attempt: Attempt, outcome: str, now_s: float, was_nominated: bool = False) -> None:
        """An answer says that the Pod is bound elsewhere or gone. The watch is about to show that, and takes it away.

        If the watch goes on to show it pending, the answer was wrong (that of a proxy, say): it is tried again.
        """
        latest = self._queue.get(attempt.pod.uid)
        if latest is not None and latest.pod.metadata.deletion_timestamp is not None:
            self._queue.done(attempt.pod.uid)
            return
        if not self._queue.requeue_error(attempt.entity, now_s):
            return
        log.info("the Pod is bound elsewhere or gone", extra={"pod": attempt.pod.key, "outcome": outcome})
        if attempt.entity.consecutive_errors >= _LOST_IN_VAIN:
            self._count(attempt, "error", now_s)
            message = f"the watch shows the Pod pending, but a bind was answered with {outcome!r}"
            self._report_there(attempt, SCHEDULER_ERROR, message, was_nominated)

    def _count(self, attempt: Attempt, result: str, now_s: float) -> None:
        took_s = now_s - attempt.began_s
        self._metrics.schedule_attempts(attempt.scheduler_name, result).inc()
        self._metrics.scheduling_attempt_duration(attempt.scheduler_name, result).observe(took_s)

    def _report_there(self, attempt: Attempt, reason: str, message: str, was_nominated: bool) -> None:
        """Report, and take the nomination back even if the watch has not shown it yet."""
        if was_nominated:
            self._queue.nominate(attempt.pod.uid, "")
        self._report(attempt, reason, message, "" if was_nominated else None, is_shown=not was_nominated)

    def _report(
        self, attempt: Attempt, reason: str, message: str, nomination: str | None = None, is_shown: bool = True
    ) -> None:
        pod = attempt.pod
        if is_shown and nomination == pod.pod.status.nominated_node_name:
            nomination = None
        conditions = pod.pod.status.conditions or []
        current = next((c for c in conditions if c.type == "PodScheduled"), PodCondition())
        self._binder.report_failure(
            FailureReport(
                pod=pod_ref(pod),
                scheduler_name=attempt.scheduler_name,
                reason=reason,
                message=message,
                generation=pod.pod.metadata.generation,
                current_status=current.status,
                current_reason=current.reason,
                current_message=current.message,
                nominated_node_name=nomination,
            )
        )
