"""The scheduling cycle: one Pod from the active queue to a decision. The page to read first."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass

from scheduler.cluster.cache import Cache
from scheduler.cluster.queue import SchedulingQueue
from scheduler.decision.decide import decide
from scheduler.decision.decision import Decision
from scheduler.decision.record import record_of
from scheduler.errors import InvalidObjectError, PluginError, UnsupportedPodError
from scheduler.framework.profile import Profile
from scheduler.kube.election.roll_call import EVERYONE, ROLL_CALL_LIFE_S, RollCall
from scheduler.loop.attempt import Attempt
from scheduler.loop.binding.cycle import BindingCycle
from scheduler.loop.cycle_observer import CycleObserver
from scheduler.loop.failure import FailureHandler
from scheduler.loop.ports import Clock
from scheduler.loop.preemptions import Preemptions
from scheduler.loop.record_ring import RecordRing
from scheduler.model.snapshot import Snapshot
from scheduler.model.views import NodeView
from scheduler.signals.columns.store import SignalStore

log = logging.getLogger(__name__)

_FOLLOW_EVERY_S = 0.02


@dataclass(frozen=True, slots=True)
class World:
    """What the deciding thread alone owns and changes."""

    cache: Cache
    queue: SchedulingQueue
    signals: SignalStore
    records: RecordRing


class SchedulingCycle:
    """Decides one entity at a time; see `run_once`."""

    def __init__(
        self,
        world: World,
        profiles: Mapping[str, Profile],
        binding: BindingCycle,
        failure: FailureHandler,
        preemptions: Preemptions,
        observer: CycleObserver,
        clock: Clock,
    ) -> None:
        self._world = world
        self._profiles = profiles
        self._binding = binding
        self._failure = failure
        self._preemptions = preemptions
        self._observer = observer
        self._clock = clock
        self._roll_call = EVERYONE
        self._roll_call_ends_s = math.inf
        self._followers = [plugin for profile in profiles.values() for plugin in profile.followers]
        self._followed = (-1, -1)
        self._follow_again_s = -math.inf

    def run_once(self) -> bool:
        """Try the next Pod; return False if none was waiting."""
        now_s = self._clock()
        # 1. Pop the Pod.
        entity = self._world.queue.pop(now_s, self._binding.n_under_way)
        if entity is None:
            return False
        attempt = Attempt(entity, self._profiles[entity.pod.pod.spec.scheduler_name], now_s)
        try:
            if not (self._failure.skip(attempt) or self._is_overtaken(attempt)):
                self._try(attempt)
        except Exception as error:  # noqa: BLE001 - a fault of ours in one Pod's cycle must not end the process
            self._failure.faulted(attempt, "cycle", error, self._clock())
        return True

    def _try(self, attempt: Attempt) -> None:
        world, now_s = self._world, attempt.began_s
        self._observer.begin(attempt.scheduler_name, now_s)
        # 2. Freeze the signals.
        signals = world.signals.freeze(NodeView(world.cache.state.nodes), now_s)
        # 3. Take the snapshot.
        snapshot = world.cache.snapshot(signals, now_s, attempt.entity.waited_s(now_s))
        # 4. Decide: `plugins/` refuse and score; what a rule says of its kind of signal is in `rules/`.
        decision = self._decide(attempt, snapshot)
        if decision is None:
            return
        # 5. Record. A record only explains; if it fails the decision stands.
        with self._failure.guard.around("record"):
            self._record(attempt, snapshot, decision)
        # 6. Refused?
        if not decision.is_scheduled:
            self._failure.refused(attempt, decision.diagnosis, self._clock(), decision.nomination)
            self._preemptions.follow(attempt, decision)
            return
        # 7. Assume and Reserve. 8. Permit. 9. Hand to binding.
        self._binding.begin(attempt, decision)

    def follow(self) -> None:
        """Have the plugins' tables follow what has changed, now and then, so that no cycle has much to take in."""
        cache, signals = self._world.cache, self._world.signals
        generations = cache.state.epoch, signals.generation
        if generations == self._followed or (now_s := self._clock()) < self._follow_again_s:
            return
        self._followed, self._follow_again_s = generations, now_s + _FOLLOW_EVERY_S
        with self._failure.guard.around("follow"):
            self._follow(cache.snapshot(signals.freeze(NodeView(cache.state.nodes), now_s), now_s))

    def _follow(self, snapshot: Snapshot) -> None:
        for plugin in list(self._followers):
            try:
                plugin.follow(snapshot)
            except Exception:  # its tables follow in the cycles of Pods too, where an error fails that Pod
                log.exception("follow of a plugin raised; it is not called again", extra={"plugin": plugin.name})
                self._followers.remove(plugin)

    def lead(self, roll_call: RollCall) -> None:
        """Use this list of the Pods that the leader before us has left pending, for a while."""
        self._roll_call, self._roll_call_ends_s = roll_call, self._clock() + ROLL_CALL_LIFE_S

    def _is_overtaken(self, attempt: Attempt) -> bool:
        """Put off a Pod that the leader before us has bound or that is gone: the watch is about to show it."""
        if attempt.began_s >= self._roll_call_ends_s:
            self._roll_call = EVERYONE
        if not self._roll_call.is_overtaken(attempt.pod.pod):
            return False
        self._world.queue.requeue_error(attempt.entity, attempt.began_s)
        return True

    def _record(self, attempt: Attempt, snapshot: Snapshot, decision: Decision) -> None:
        decided_in_s = self._observer.decided()
        record = record_of(attempt.pod, snapshot, decision, attempt.scheduler_name, decided_in_s)
        self._world.records.add(record)
        self._observer.recorded(record)
        if record.shadow_fault:
            log.warning("shadow rules could not be evaluated: %s", record.shadow_fault, extra={"pod": attempt.pod.key})
        if log.isEnabledFor(logging.DEBUG):
            details = {"pod": attempt.pod.key, "node": decision.node_name, "decided_in_s": round(decided_in_s, 6)}
            log.debug("decided", extra=details)

    def _decide(self, attempt: Attempt, snapshot: Snapshot) -> Decision | None:
        """Return the decision, or None if the attempt failed for a reason that is reported on the Pod."""
        try:
            if attempt.entity.problem:
                raise InvalidObjectError(attempt.entity.problem)
            if attempt.entity.fault is not None:
                raise attempt.entity.fault
            return decide(attempt.pod, snapshot, attempt.profile, observer=self._observer)
        except UnsupportedPodError as error:
            self._failure.unsupported(attempt, error, self._clock())
        except (InvalidObjectError, PluginError) as error:
            self._failure.failed(attempt, str(error), self._clock())
        return None
