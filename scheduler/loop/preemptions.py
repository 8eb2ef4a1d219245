"""Preemptions: has the victims of a decision evicted, and keeps the Pod that needs their room waiting.

Source: kube-scheduler v1.37 framework/preemption/executor.go (behaviour).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from scheduler.cluster.cache import Cache
from scheduler.cluster.queue import SchedulingQueue
from scheduler.decision.decision import Decision
from scheduler.framework.instructions import PatchPod
from scheduler.kube.binder import events
from scheduler.kube.binder.messages import EvictRequest, EvictResult
from scheduler.loop.attempt import Attempt
from scheduler.loop.binding.cycle import BindingCycle
from scheduler.loop.failure import pod_ref
from scheduler.loop.instructions import Instructions
from scheduler.loop.ports import Binder, Clock
from scheduler.metrics import Metrics
from scheduler.model.pods import PodInfo

log = logging.getLogger(__name__)

_IN_MEMORY = " (in kube-scheduler memory)."


@dataclass(slots=True)
class _Preemption:
    """One under way: `last` is evicted when the others have been; `is_over` once that was asked for."""

    attempt: Attempt
    last: EvictRequest
    n_awaited: int
    is_over: bool = False
    has_failed: bool = False


class Preemptions:
    """Carries out what a PostFilter plugin has decided; the victims' deletion brings the Pod back by its own events."""

    def __init__(
        self,
        cache: Cache,
        queue: SchedulingQueue,
        binding: BindingCycle,
        instructions: Instructions,
        binder: Binder,
        metrics: Metrics,
        clock: Clock,
    ) -> None:
        self._cache = cache
        self._queue = queue
        self._binding = binding
        self._instructions = instructions
        self._binder = binder
        self._metrics = metrics
        self._clock = clock

    def follow(self, attempt: Attempt, decision: Decision) -> None:
        """Do what PostFilter decided for a Pod that has just been refused."""
        if attempt.profile.postfilter and decision.diagnosis.n_nodes:
            self._metrics.preemption_attempts().inc()
        if decision.victims:
            self._begin(attempt, decision)

    def _begin(self, attempt: Attempt, decision: Decision) -> None:
        """Evict the victims, the last one after the others; take back nominations of less important Pods there.

        Victims that are being deleted already are left alone. One that is not being bound yet goes back to the queue;
        it is not deleted.
        """
        self._metrics.preemption_victims().observe(len(decision.victims))
        node_name = decision.nomination or ""
        for pod in list(self._cache.state.nominated.get(node_name, {}).values()):
            if pod.priority < attempt.pod.priority:
                self._instructions.carry_out(PatchPod.of(pod, {}, nominated_node_name=""))
        requests = []
        is_rejected = False
        for victim in decision.victims:
            if victim.pod.metadata.deletion_timestamp is not None:
                continue
            request = _request(victim, attempt, node_name)
            is_rejected = self._binding.preempted(victim.uid, decision.preempted_by)
            if is_rejected:
                self._binder.event(events.preempted_event(request, _IN_MEMORY))
            else:
                requests.append(request)
        if requests:
            self._evict(attempt, requests)
        elif is_rejected:
            self._queue.activate(attempt.pod.uid, self._clock())

    def _evict(self, attempt: Attempt, requests: Sequence[EvictRequest]) -> None:
        preemption = _Preemption(attempt, requests[-1], len(requests) - 1)
        self._tell_plugins(attempt, True)
        for request in requests[:-1]:
            self._send(preemption, request)
        if not preemption.n_awaited:
            self._evict_last(preemption)

    def _evict_last(self, preemption: _Preemption) -> None:
        """Let the Pod into the queue again: the event of this last deletion brings it back."""
        preemption.is_over = True
        self._tell_plugins(preemption.attempt, False)
        self._send(preemption, preemption.last)

    def _send(self, preemption: _Preemption, request: EvictRequest) -> None:
        def settle(answer: object, _error: Exception | None) -> None:
            if isinstance(answer, EvictResult):
                self._settled(preemption, request, answer)

        self._instructions.evict(request, settle)

    def _settled(self, preemption: _Preemption, request: EvictRequest, result: EvictResult) -> None:
        if result.outcome not in ("evicted", "gone"):
            victim = f"{request.pod.namespace}/{request.pod.name}"
            log.warning("a victim was not evicted", extra={"pod": victim, "error": result.message})
            preemption.has_failed = True
        if not preemption.is_over:
            preemption.n_awaited -= 1
            if not preemption.n_awaited:
                self._evict_last(preemption)
        elif preemption.has_failed or result.outcome == "gone":
            # No deletion may follow that would bring the Pod back. kube-scheduler lets it come back at once.
            self._queue.activate(preemption.attempt.pod.uid, self._clock(), after_backoff=True)

    def _tell_plugins(self, attempt: Attempt, is_under_way: bool) -> None:
        for plugin in attempt.profile.postfilter:
            plugin.preempting(attempt.pod, is_under_way)


def _request(victim: PodInfo, attempt: Attempt, node_name: str) -> EvictRequest:
    conditions = victim.pod.status.conditions or ()
    return EvictRequest(
        number=0,
        pod=pod_ref(victim),
        preemptor=pod_ref(attempt.pod),
        node_name=node_name,
        scheduler_name=attempt.scheduler_name,
        generation=victim.pod.metadata.generation,
        is_marked=any(one.type == "DisruptionTarget" and one.status == "True" for one in conditions),
    )
