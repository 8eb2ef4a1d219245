"""The binding cycle: from a chosen node to a bound Pod, and the one undo.

One generator per Pod tells the walk from Permit to Bind in order; where it has to wait for an answer it yields, and is
sent on when the answer comes. So nothing blocks, and Pods wait independently of each other.
"""

from __future__ import annotations

import logging
from functools import partial

from scheduler.cluster.cache import Cache
from scheduler.cluster.changes import pod_deleted
from scheduler.cluster.queue import SchedulingQueue
from scheduler.decision.decision import Decision
from scheduler.errors import InvalidObjectError, PluginError
from scheduler.framework.instructions import Bind, PatchPod
from scheduler.framework.status import Code, Status
from scheduler.kube.binder.messages import BindRequest, BindResult
from scheduler.loop.attempt import Attempt, Flight, LostError, Placement, Walk
from scheduler.loop.binding.plugin_runner import PluginRunner, RefusedError
from scheduler.loop.binding.preparations import Preparations
from scheduler.loop.binding.waiting_pods import WaitingPods
from scheduler.loop.failure import FailureHandler, pod_ref
from scheduler.loop.instructions import Instructions
from scheduler.loop.ports import Binder, Clock
from scheduler.metrics import Metrics
from scheduler.model.catalog import ObjectKey
from scheduler.model.pods import PodInfo

log = logging.getLogger(__name__)

_BOUND = ("bound", "conflict_same_node")
_VOLUME_STAGES = {("VolumeBinding", "Reserve"): "assume", ("VolumeBinding", "PreBind"): "bind"}
"""What kube-scheduler's `scheduler_volume_scheduling_stage_error_total` calls them."""
_NOT_OURS_ANY_MORE = ("conflict_other_node", "deleted")
_MANY_ATTEMPTS = 15
_CONFLICTS = {
    "conflict_same_node": "same_node",
    "conflict_other_node": "other_node",
    "deleted": "deleted",
    "gated": "gated",
}


class BindingCycle:
    """Pods between their decision and their bind, by UID. The watch event of the bound Pod confirms the assumption."""

    def __init__(
        self,
        cache: Cache,
        queue: SchedulingQueue,
        failure: FailureHandler,
        instructions: Instructions,
        binder: Binder,
        metrics: Metrics,
        clock: Clock,
    ) -> None:
        self._cache = cache
        self._queue = queue
        self._failure = failure
        self._instructions = instructions
        self._binder = binder
        self._metrics = metrics
        self._clock = clock
        self._runner = PluginRunner(metrics, clock)
        self._preparations = Preparations(cache, queue, instructions, self._runner, clock)
        self._waiting = WaitingPods()
        self._flights: dict[str, Flight] = {}
        for kind in _CONFLICTS.values():
            metrics.bind_conflicts(kind)  # on the page from the start: what appears at 1 is no increase to Prometheus

    def __len__(self) -> int:
        return len(self._flights)

    @property
    def n_under_way(self) -> int:
        """Pods that wait neither at Permit nor in PreBind: their binds may have been sent."""
        return len(self._flights) - len(self._waiting) - len(self._preparations.awaited)

    # -- the cycle ------------------------------------------------------------------------------------------

    def begin(self, attempt: Attempt, decision: Decision) -> None:
        """Assume the Pod on its node and start its walk; its entity stays in flight until that ends."""
        try:
            self._cache.assume(attempt.pod, decision.node_name)
        except InvalidObjectError as error:
            self._failure.failed(attempt, str(error), self._clock())
            return
        flight = Flight(Placement(attempt, decision.node_name, decision.states))
        flight.steps = self._walk(flight)
        flight.settle = partial(self._settled, attempt)
        self._flights[attempt.pod.uid] = flight
        self._go_on(flight)

    def _walk(self, flight: Flight) -> Walk:
        profile = flight.placement.profile
        if profile.reserve:
            self._preparations.reserve(flight)
        if profile.permit:
            yield from self._permit(flight)
        # As upstream: from here on only an error sends the Pod back. That waits for no event, so none are kept for it,
        # however long PreBind takes.
        self._queue.done(flight.placement.pod.uid)
        flight.is_past_permit = True
        if profile.prebind:
            yield from self._preparations.prebind(flight)
        yield from self._bind(flight)

    def _permit(self, flight: Flight) -> Walk:
        placement, uid = flight.placement, flight.placement.pod.uid
        waits = self._runner.permit(placement)
        if not waits:
            return
        now_s = flight.waiting_since_s = self._clock()
        self._waiting.add(uid, {plugin: wait.timeout_s for plugin, wait in waits.items()}, now_s)
        for wait in waits.values():
            for patch in wait.patches:
                self._instructions.carry_out(patch)
        refusal = yield
        waited_s = self._clock() - now_s
        if isinstance(refusal, RefusedError):
            self._metrics.permit_wait_duration(refusal.status.code.label).observe(waited_s)
            raise refusal
        self._metrics.permit_wait_duration("Success").observe(waited_s)
        flight.waiting_since_s = None

    def _bind(self, flight: Flight) -> Walk:
        placement, began_s = flight.placement, self._clock()
        plugin, instruction = self._runner.bind(placement)
        flight.awaits_bind = True
        if isinstance(instruction, PatchPod):
            yield from self._preparations.patch_pod(flight, instruction, plugin.name, "Bind")
        else:
            self._binder.bind(_request(placement, instruction))
            result: BindResult = yield
            self._judge(result, plugin.name)
        self._runner.lap("Bind", "Success", placement, began_s)

    def _judge(self, result: BindResult, plugin: str) -> None:
        if result.outcome in _CONFLICTS:
            self._metrics.bind_conflicts(_CONFLICTS[result.outcome]).inc()
        if result.outcome in _NOT_OURS_ANY_MORE:
            raise LostError(result.outcome)
        if result.outcome not in _BOUND:
            raise PluginError(plugin, "Bind", f'running Bind plugin "{plugin}": {result.message}')

    # -- answers --------------------------------------------------------------------------------------------

    def finish(self, result: BindResult) -> None:
        """Settle one bind; an outcome that no Pod waits for is ignored."""
        flight = self._flights.get(result.uid)
        if flight is not None and flight.awaits_bind:
            self._go_on(flight, result)

    def tick(self) -> None:
        """Send back the Pods that have waited at Permit for too long; look at those that wait in PreBind."""
        now_s = self._clock()
        while (expired := self._waiting.expired(now_s)) is not None:
            uid, plugin, timeout_s = expired
            reason = f"rejected due to timeout after waiting {timeout_s:g}s at plugin {plugin}"
            self._let_go(uid, RefusedError(plugin, Status(Code.UNSCHEDULABLE, (reason,))))
        while (due := self._preparations.awaited.due(now_s)) is not None:
            self._go_on(self._flights[due])

    def flush(self) -> None:
        """Have sent what was asked for so far: no Pod is waiting to be decided."""
        self._binder.flush()

    def next_deadline(self) -> float | None:
        """Return when `tick` next has something to do, in monotonic seconds."""
        moments = (self._waiting.next_deadline(), self._preparations.awaited.next_moment())
        return min((moment for moment in moments if moment is not None), default=None)

    def called(self, uid: str, allow: bool, message: str) -> bool:
        """Allow or reject a Pod that waits at Permit; return whether it was waiting."""
        plugins = self._waiting.plugins(uid)
        if not plugins:
            return False
        status = Status(Code.UNSCHEDULABLE, (message or "rejected by a call",))
        self._let_go(uid, None if allow else RefusedError(min(plugins), status))
        return True

    def changed(self, pod: PodInfo) -> None:
        """Ask the plugins that keep a Pod waiting once more: the Pod was updated."""
        flight = self._flights.get(pod.uid)
        if flight is None:
            return
        for plugin in flight.placement.profile.permit:
            if plugin.name not in self._waiting.plugins(pod.uid):
                continue
            try:
                if self._runner.reconsider(plugin, flight.placement, pod) and self._waiting.allow(pod.uid, plugin.name):
                    self._let_go(pod.uid, None)
            except (RefusedError, PluginError) as error:
                self._let_go(pod.uid, error)

    def object_changed(self, key: ObjectKey) -> None:
        """Have `tick` look at the Pods that wait in PreBind for a node or an object of the catalog."""
        if self._preparations.awaited:
            self._preparations.awaited.changed(key, self._clock())

    def preempted(self, uid: str, by: str) -> bool:
        """Send back a Pod that is not yet being bound, because plugin `by` gives its place away; return whether it did.

        From PreBind on this counts as an error, not as a refusal, and the Pod is tried again.
        """
        flight = self._flights.get(uid)
        if flight is None or flight.awaits_bind:
            return False
        if plugin := flight.preparing:
            message = f'running PreBind plugin "{plugin}": preempted by {by}'
            self._end(flight, PluginError(plugin, "PreBind", message))
        else:
            self._end(flight, RefusedError(by, Status(Code.UNSCHEDULABLE, ("preempted",))))
        return True

    def gone(self, uid: str) -> None:
        """Give up a Pod that was deleted meanwhile; if its bind is under way, it ends with the bind."""
        flight = self._flights.get(uid)
        if flight is not None and not flight.awaits_bind:
            self._end(flight, LostError("deleted"))

    def _let_go(self, uid: str, refusal: RefusedError | PluginError | None) -> None:
        self._waiting.remove(uid)
        flight = self._flights[uid]
        if isinstance(refusal, PluginError):
            self._end(flight, refusal)
        else:
            self._go_on(flight, refusal)

    def _settled(self, attempt: Attempt, answer: object, error: Exception | None) -> None:
        """Send a walk on with its answer, unless it has been given up meanwhile.

        By its attempt, not by its flight: that would hold itself, and is never freed where `gc.freeze` finds it alive.
        """
        flight = self._flights.get(attempt.pod.uid)
        if flight is None or flight.placement.attempt is not attempt:
            return
        if error is None:
            self._go_on(flight, answer)
        else:
            self._end(flight, error)

    # -- moving on and ending -------------------------------------------------------------------------------

    def _go_on(self, flight: Flight, answer: object = None) -> None:
        try:
            flight.steps.send(answer)
        except StopIteration:
            self._bound(flight)
        except Exception as error:  # noqa: BLE001 - and a fault of ours ends this Pod's attempt only
            self._end(flight, error)

    def _bound(self, flight: Flight) -> None:
        placement = flight.placement
        del self._flights[placement.pod.uid]
        _count_scheduled(self._metrics, placement.attempt, self._clock())
        with self._failure.guard.around("binding"):
            for plugin in placement.profile.postbind:
                self._instructions.after_bind(self._runner, plugin, placement)

    def _end(self, flight: Flight, error: Exception) -> None:
        """Undo everything that `begin` and the walk did, give the room back, and report why."""
        placement, attempt, now_s = flight.placement, flight.placement.attempt, self._clock()
        uid = attempt.pod.uid
        del self._flights[uid]
        self._waiting.remove(uid)
        flight.steps.close()
        self._runner.unreserve(placement)
        self._preparations.give_back(flight)
        forgotten = self._cache.forget(uid)
        if forgotten is not None:
            self._queue.on_event(pod_deleted(forgotten), now_s)
        if isinstance(error, RefusedError) and flight.is_past_permit:
            self._failure.refused_late(attempt, error.status, now_s, flight.is_nominated)
        elif isinstance(error, RefusedError):
            self._failure.refused_there(attempt, error.plugin, error.status, now_s, flight.is_nominated)
        elif isinstance(error, LostError):
            self._failure.lost(attempt, str(error), now_s, flight.is_nominated)
        elif isinstance(error, PluginError):
            stage = _VOLUME_STAGES.get((error.plugin, error.point))
            if stage is not None:
                self._metrics.volume_stage_errors(stage).inc()
            self._failure.failed(attempt, str(error), now_s, flight.is_nominated)
        else:
            self._failure.faulted(attempt, "binding", error, now_s, flight.is_nominated)


def _request(placement: Placement, bind: Bind) -> BindRequest:
    return BindRequest(
        pod=pod_ref(placement.pod),
        node_name=bind.node_name,
        scheduler_name=placement.attempt.scheduler_name,
        cluster=bind.cluster,
        annotations=dict(bind.annotations),
    )


def _count_scheduled(metrics: Metrics, attempt: Attempt, now_s: float) -> None:
    """Count the attempt, its time, and the Pod's time and attempts since it came to the queue."""
    entity = attempt.entity
    metrics.schedule_attempts(attempt.scheduler_name, "scheduled").inc()
    metrics.scheduling_attempt_duration(attempt.scheduler_name, "scheduled").observe(now_s - attempt.began_s)
    metrics.pod_scheduling_attempts().observe(entity.attempts)
    attempts = str(entity.attempts) if entity.attempts < _MANY_ATTEMPTS else f"{_MANY_ATTEMPTS}+"
    waiting_since_s = entity.first_seen_s if entity.first_active_s is None else entity.first_active_s
    metrics.pod_scheduling_sli_duration(attempts).observe(now_s - waiting_since_s)
    if entity.was_flushed:
        metrics.pod_scheduled_after_flush().inc()
