"""SchedulingLoop: the deciding thread's life. Messages in, one cycle after the other, messages out."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from scheduler.cluster.router import Router
from scheduler.kube.binder.messages import BindResult, EventsDropped, EvictResult, PatchResult, RequestsDone
from scheduler.kube.election.roll_call import RollCall
from scheduler.kube.watch_stream import Changed, Replaced
from scheduler.loop.binding.cycle import BindingCycle
from scheduler.loop.cycle import SchedulingCycle, World
from scheduler.loop.failure import Guard
from scheduler.loop.garbage import GarbageCollection
from scheduler.loop.instructions import Instructions
from scheduler.loop.lists import Lists
from scheduler.loop.messages import (
    BinderSaid,
    Inbox,
    Led,
    Message,
    PageAsked,
    PermitCalled,
    PoolDone,
    RulesLoaded,
    RulesRefused,
    SignalAnswered,
    Stop,
)
from scheduler.loop.pages.pages import Pages
from scheduler.loop.pages.query import LoopStage
from scheduler.loop.ports import Clock
from scheduler.loop.rule_updates.verdicts import Verdicts
from scheduler.metrics import Metrics
from scheduler.model.identity import NodeChanges

log = logging.getLogger(__name__)

_MESSAGES_AT_ONCE = 1_000
_IDLE_S = 0.5
_DRAIN_S = 10.0
_LOOK_AFTER_S = 1.0
_CLOCK_STEP_S = 0.5
# Of many nodes that come one after the other the refresher makes its table of names anew for each time it is told.
_ANNOUNCE_EVERY_S = 0.5
# Slow decisions in between must not draw out a list until its pages have expired, after some five minutes.
_LISTS_AT_ONCE_S = 0.02


@dataclass(frozen=True, slots=True)
class Parts:
    """What the loop drives; see `app` for how they are put together.

    `kinds` are the kinds of objects whose first lists are waited for; `first_answers_s` is how long the first
    decision waits at most for the signals' first answers. `lease` is the Lease's name, "" without leader election; with
    one nothing is decided before a Led arrives. `hosts` are the API servers by cluster, "" for our own, as host:port.
    """

    world: World
    router: Router
    cycle: SchedulingCycle
    binding: BindingCycle
    instructions: Instructions
    verdicts: Verdicts
    pages: Pages
    guard: Guard
    metrics: Metrics
    kinds: frozenset[str]
    hosts: Mapping[str, str]
    first_answers_s: float
    lease: str = ""


class SchedulingLoop:
    """Applies messages one at a time, and decides between them. Runs on one thread until told to stop.

    `ready` is called once, when all that is missing is the lease: a replica that took it earlier could not schedule
    yet. `unix_clock` is the clock of the times in Pods; without one it is `clock`.
    """

    def __init__(
        self,
        inbox: Inbox,
        parts: Parts,
        publish_nodes: Callable[[NodeChanges], None],
        clock: Clock,
        ready: Callable[[], None] = lambda: None,
        unix_clock: Callable[[], float] | None = None,
    ) -> None:
        self._inbox = inbox
        self._parts = parts
        self._publish_nodes = publish_nodes
        self._announced_s = -math.inf
        self._clock = clock
        self._ready = ready
        self._lists = Lists(parts.router, clock)
        self._stop: Stop | None = None
        self._deciding = False
        self._leading = not parts.lease
        self._looked_after_s = clock() - _LOOK_AFTER_S
        self._unix_clock = unix_clock or clock
        self._garbage = GarbageCollection()
        self._compare_clocks()

    @property
    def has_synced(self) -> bool:
        """Whether a complete list of every kind that is watched has arrived."""
        return self._lists.synced >= self._parts.kinds

    @property
    def has_drained(self) -> bool:
        """Whether no bind is under way."""
        return self._parts.binding.n_under_way == 0

    def run(self) -> Stop:
        """Decide from when we lead until a Stop arrives; return the Stop once the binds under way have ended.

        A bind that takes longer than 10 s to end is left to the next leader; so are all where we cannot go on.
        """
        self._garbage.start()
        self._wait_until(lambda: self.has_synced)
        if self._stop is None:
            self._parts.cycle.follow()
            self._garbage.begin(self._clock())
            self._wait_for_first_answers()
        self._deciding = True
        if self._stop is None:
            self._ready()
        while self._stop is None:
            self._apply_waiting(self._patience_s())
            self._look_after_now_and_then()
            self._parts.binding.tick()
            self._parts.cycle.follow()
            if self._stop is not None or not self._leading:
                continue
            if self._parts.cycle.run_once():
                self._garbage.busy(self._clock())
            else:
                self._parts.binding.flush()
                self._garbage.idle(self._clock())
        if self._stop.exit_code == 0:
            self._drain()
        return self._stop

    def apply(self, message: Message) -> None:
        """Change the world by one message: the only way in."""
        match message:
            case Changed() | Replaced():
                if isinstance(message, Changed):
                    self._parts.metrics.watch_events(message.kind, message.type).inc()
                else:
                    self._garbage.listed(len(message.objects))
                self._lists.take(message)
            case BinderSaid():
                self._binder_said(message)
            case SignalAnswered() | RulesLoaded() | RulesRefused():
                self._refresher_said(message)
            case PageAsked():
                self._page_asked(message)
            case Led():
                self._lead(message.roll_call)
            case PermitCalled():
                self._permit_called(message)
            case PoolDone():
                message.settle(message.answer, message.error)
            case Stop():
                self._stop = message

    def _refresher_said(self, message: SignalAnswered | RulesLoaded | RulesRefused) -> None:
        verdicts, now_s = self._parts.verdicts, self._clock()
        with self._parts.guard.around("signals"):
            match message:
                case SignalAnswered():
                    verdicts.answered(message.answer, now_s)
                case RulesLoaded():
                    verdicts.loaded(message.rules, now_s)
                case RulesRefused():
                    verdicts.reload_refused(message.message)

    def _page_asked(self, asked: PageAsked) -> None:
        try:
            answer = self._parts.pages.answer(asked.query, self._stage, goes_on=asked.goes_on)
        except Exception as error:  # noqa: BLE001 - whatever it is, this page fails and no other
            asked.failed(self._parts.guard.caught("page", error, query=type(asked.query).__name__))
        else:
            asked.reply(answer)

    def announce_nodes(self) -> None:
        """Tell by which names nodes are known, as far as that has changed."""
        cache = self._parts.world.cache
        changes = cache.name_changes() if self.has_synced else None
        if changes is not None:
            self._announced_s = self._clock()
            self._parts.world.signals.add_identity(cache.identity())
            self._publish_nodes(changes)

    def _apply_waiting(self, patience_s: float) -> None:
        """Wait for one message as long as nothing else is due, then apply all that are there, of lists a few slices."""
        self._lists.go_on()
        if self._clock() - self._announced_s >= _ANNOUNCE_EVERY_S:
            self.announce_nodes()
        message = self._inbox.take(0.0 if self._lists.is_ending else patience_s)
        ends_s = self._clock() + _LISTS_AT_ONCE_S
        for _ in range(_MESSAGES_AT_ONCE):
            if message is None:
                return
            self.apply(message)
            if self._stop is not None or (isinstance(message, Replaced) and self._clock() >= ends_s):
                return
            message = self._inbox.take(0.0)

    def look_after(self) -> None:
        """Do what no message triggers: notice absent signals, valves, and windows that have passed."""
        since_s, self._looked_after_s = self._looked_after_s, self._clock()
        self._compare_clocks()
        with self._parts.guard.around("look-after"):
            self._parts.verdicts.look_after(since_s, self._looked_after_s)

    def _compare_clocks(self) -> None:
        """Note how far UNIX time is ahead, where that has changed: the wall clock may step."""
        state, ahead_s = self._parts.world.cache.state, self._unix_clock() - self._clock()
        if abs(ahead_s - state.unix_ahead_s) > _CLOCK_STEP_S:
            state.unix_ahead_s = ahead_s

    def _look_after_now_and_then(self) -> None:
        if self._clock() - self._looked_after_s >= _LOOK_AFTER_S:
            self.look_after()

    def _patience_s(self) -> float:
        """Return how long nothing is due, at most half a second."""
        now_s = self._clock()
        deadlines_s: list[float | None] = [now_s + _IDLE_S]
        if self._leading:
            deadlines_s += [self._parts.world.queue.next_deadline(now_s), self._parts.binding.next_deadline()]
        return max(0.0, min(deadline_s for deadline_s in deadlines_s if deadline_s is not None) - now_s)

    def _wait_until(self, done: Callable[[], bool], limit_s: float | None = None) -> None:
        began_s = self._clock()
        while self._stop is None and not done():
            if limit_s is not None and self._clock() - began_s >= limit_s:
                return
            self._apply_waiting(0.05)

    def _wait_for_first_answers(self) -> None:
        self._wait_until(self._parts.verdicts.all_asked, self._parts.first_answers_s)
        missing = self._parts.verdicts.unanswered()
        if missing:
            log.warning("some signals have no answer yet; deciding without them", extra={"signals": sorted(missing)})

    def _binder_said(self, said: BinderSaid) -> None:
        parts = self._parts
        for message in said.messages:
            match message:
                case BindResult():
                    parts.binding.finish(message)
                case PatchResult():
                    parts.metrics.patches(message.outcome).inc()
                    parts.instructions.patched(message)
                case EvictResult():
                    parts.instructions.evicted(message)
                case RequestsDone():
                    host = parts.hosts[message.cluster]
                    parts.metrics.rest_client_requests(message.code, message.verb, host).inc(len(message.durations_s))
                    histogram = parts.metrics.rest_client_request_duration(message.verb, host)
                    for duration_s in message.durations_s:
                        histogram.observe(duration_s)
                case EventsDropped():
                    parts.metrics.events_dropped().inc(message.count)

    @property
    def _stage(self) -> LoopStage:
        return LoopStage(self.has_synced, self._deciding, is_standby=self._deciding and not self._leading)

    def _lead(self, roll_call: RollCall) -> None:
        self._leading = True
        self._parts.metrics.leader_election_master_status(self._parts.lease).set(1)
        self._parts.cycle.lead(roll_call)

    def _permit_called(self, called: PermitCalled) -> None:
        call = called.call
        uid = self._parts.router.uid_of(call.namespace, call.name)
        called.reply(uid is not None and self._parts.binding.called(uid, call.allow, call.message))

    def _drain(self) -> None:
        """Let the binds under way end; nothing new is begun."""
        limit_s = self._clock() + _DRAIN_S
        while not self.has_drained and self._clock() < limit_s:
            message = self._inbox.take(0.1)
            if message is not None and not isinstance(message, Stop):
                self.apply(message)
