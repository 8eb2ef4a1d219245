"""SchedulingLoop: the deciding thread's life. Messages in, one cycle after the other, messages out."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable
from dataclasses import dataclass

from scheduler.cluster.router import Router
from scheduler.kube.binder.messages import BindResult, EventsDropped, RequestsDone
from scheduler.kube.watching import Changed, Replaced
from scheduler.loop.binding import BindingCycle
from scheduler.loop.cycle import SchedulingCycle, World
from scheduler.loop.messages import (
    BinderSaid,
    Inbox,
    Message,
    PageAsked,
    RulesLoaded,
    RulesRefused,
    SignalAnswered,
    Stop,
)
from scheduler.loop.pages import Pages
from scheduler.loop.ports import Clock
from scheduler.loop.verdicts import Verdicts
from scheduler.metrics import Metrics
from scheduler.model.identity import NodeIdentity

log = logging.getLogger(__name__)

_MESSAGES_AT_ONCE = 1_000
_IDLE_S = 0.5
_DRAIN_S = 10.0
_LOOK_AFTER_S = 1.0


@dataclass(frozen=True, slots=True)
class Parts:
    """What the loop drives; see `app` for how they are put together.

    `kinds` are the kinds of objects whose first lists are waited for; `first_answers_s` is how long the first
    decision waits at most for the signals' first answers.
    """

    world: World
    router: Router
    cycle: SchedulingCycle
    binding: BindingCycle
    verdicts: Verdicts
    pages: Pages
    metrics: Metrics
    kinds: frozenset[str]
    api_server: str
    first_answers_s: float


class SchedulingLoop:
    """Applies messages one at a time, and decides between them. Runs on one thread until told to stop."""

    def __init__(
        self, inbox: Inbox, parts: Parts, publish_identity: Callable[[NodeIdentity], None], clock: Clock
    ) -> None:
        self._inbox = inbox
        self._parts = parts
        self._publish_identity = publish_identity
        self._clock = clock
        self._synced: set[str] = set()
        self._stop: Stop | None = None
        self._deciding = False
        self._looked_after_s = 0.0

    @property
    def has_synced(self) -> bool:
        """Whether a complete list of every kind that is watched has arrived."""
        return self._synced >= self._parts.kinds

    def run(self) -> Stop:
        """Decide until a Stop arrives; return it once the binds under way have ended, or after 10 s."""
        self._wait_until(lambda: self.has_synced)
        if self._stop is None:
            self._settle_memory()
            self._wait_for_first_answers()
        self._deciding = True
        while self._stop is None:
            self._apply_waiting(self._patience_s())
            self._look_after_now_and_then()
            if self._stop is None:
                self._parts.cycle.run_once()
        self._drain()
        return self._stop

    def apply(self, message: Message) -> None:
        """Change the world by one message: the only way in."""
        now_s = self._clock()
        match message:
            case Changed():
                self._parts.metrics.watch_events(message.kind, message.type).inc()
                self._parts.router.changed(message.kind, message.type, message.object, now_s)
            case Replaced():
                self._parts.router.replaced(message.kind, message.objects, now_s)
                self._synced.add(message.kind)
            case BinderSaid():
                self._binder_said(message, now_s)
            case SignalAnswered():
                self._parts.verdicts.answered(message.answer, now_s)
            case RulesLoaded():
                self._parts.verdicts.loaded(message.rules, now_s)
            case RulesRefused():
                self._parts.verdicts.reload_refused(message.message)
            case PageAsked():
                message.reply(self._parts.pages.answer(message.what, self.has_synced, self._deciding))
            case Stop():
                self._stop = message
        self._announce_nodes()

    def _announce_nodes(self) -> None:
        identity = self._parts.world.cache.identity() if self.has_synced else None
        if identity is not None:
            self._parts.world.signals.add_identity(identity)
            self._publish_identity(identity)

    def _apply_waiting(self, patience_s: float) -> None:
        """Wait for one message as long as nothing else is due, then apply all that are there."""
        message = self._inbox.take(patience_s)
        for _ in range(_MESSAGES_AT_ONCE):
            if message is None:
                return
            self.apply(message)
            if self._stop is not None:
                return
            message = self._inbox.take(0.0)

    def look_after(self) -> None:
        """Do what no message brings: notice signals that have aged away, and valves."""
        self._looked_after_s = self._clock()
        self._parts.verdicts.look_after(self._looked_after_s)

    def _look_after_now_and_then(self) -> None:
        if self._clock() - self._looked_after_s >= _LOOK_AFTER_S:
            self.look_after()

    def _patience_s(self) -> float:
        now_s = self._clock()
        deadline_s = self._parts.world.queue.next_deadline(now_s)
        return _IDLE_S if deadline_s is None else max(0.0, min(_IDLE_S, deadline_s - now_s))

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
            log.warning("deciding without the first answers of some signals", extra={"signals": sorted(missing)})

    def _settle_memory(self) -> None:
        """Keep what the first lists brought out of the collector's way: a full collection would stall a cycle."""
        gc.collect()
        gc.freeze()
        gc.enable()

    def _binder_said(self, said: BinderSaid, now_s: float) -> None:
        parts, host = self._parts, self._parts.api_server
        for message in said.messages:
            match message:
                case BindResult():
                    parts.binding.finish(message, now_s)
                case RequestsDone():
                    parts.metrics.rest_client_requests(message.code, message.verb, host).inc(len(message.durations_s))
                    histogram = parts.metrics.rest_client_request_duration(message.verb, host)
                    for duration_s in message.durations_s:
                        histogram.observe(duration_s)
                case EventsDropped():
                    parts.metrics.events_dropped().inc(message.count)

    def _drain(self) -> None:
        """Let the binds under way end; nothing new is begun."""
        limit_s = self._clock() + _DRAIN_S
        while len(self._parts.binding) and self._clock() < limit_s:
            message = self._inbox.take(0.1)
            if message is not None and not isinstance(message, Stop):
                self.apply(message)
