"""The refresher: queries one Prometheus for its signals, each at its interval, and publishes the answers.

A slow signal delays no other. While Prometheus is down it costs one attempt, with growing pauses. The deciding process
waits for nothing here.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from scheduler.model.identity import NodeIdentity
from scheduler.model.rules import RuleSet
from scheduler.signals.answers import SignalAnswer
from scheduler.signals.asking.asker import AskContext, SignalAsker
from scheduler.signals.asking.breaker import Breaker
from scheduler.signals.asking.client import QueryClient
from scheduler.signals.asking.complaints import Complaints
from scheduler.signals.asking.query_errors import QueryError
from scheduler.signals.asking.query_health import QueryHealth, query_health_of
from scheduler.signals.asking.resolver import NodeResolver
from scheduler.signals.asking.timetable import FAST, SLOW, Timetable
from scheduler.signals.format.promql_matchers import Matchers

_LOG = logging.getLogger(__name__)

SWAP_WITHIN_S: Final = 1.0
_LONGEST_OUTAGE_PAUSE_S: Final = 15.0
_SHARE_OF_INTERVAL: Final = 0.9
# What the rule format takes at least.
_SHORTEST_INTERVAL_S: Final = 1.0
_NOTABLE_SHARE_OF_NEW_NODES: Final = 0.1


@dataclass(frozen=True, slots=True)
class AskedServer:
    """The name by which signals ask for a Prometheus, and what every selector of every query to it gets."""

    name: str = ""
    matchers: Matchers = ()


class RefreshObserver(Protocol):
    """Counts what the refresher does; called by several threads."""

    def query_done(self, signal: str, duration_s: float, error_kind: str) -> None:
        """A query has ended; `error_kind` is empty after an answer."""

    def server_done(self, server: str, is_up: bool) -> None:
        """A server, by its name, has answered, if only to refuse the query; or it has not."""

    def query_skipped(self, signal: str, reason: str) -> None:
        """A query was due and not made; reason: running, outage or breaker."""

    def answered(self, answer: SignalAnswer) -> None:
        """An answer with values is about to be published."""


class Refresher:
    """Asks this Prometheus for each of its signals in the rules in force.

    Parameters
    ----------
    publish
        Takes each answer, failures included; never called twice at once.
    clock
        CLOCK_MONOTONIC seconds, as the deciding process reads it.
    concurrency
        Queries at once; half as many again are kept for signals whose last query took more than a second.
    chance
        Returns a number in [0, 1).
    server
        Which Prometheus this is.
    """

    def __init__(
        self,
        client: QueryClient,
        publish: Callable[[SignalAnswer], None],
        observer: RefreshObserver,
        clock: Callable[[], float] = time.monotonic,
        concurrency: int = 4,
        chance: Callable[[], float] = random.random,
        server: AskedServer = AskedServer(),
    ) -> None:
        self._name, self._matchers = server.name, server.matchers
        self._client = client
        self._publish = publish
        self._clock = clock
        self._observer = observer
        self._chance = chance
        self._server = Breaker(clock, chance=chance)
        self._resolver = NodeResolver(NodeIdentity())
        self._rules_generation = 0
        self._askers: dict[str, SignalAsker] = {}
        self._complaints = Complaints()
        self._lock = threading.RLock()
        self._publishing = threading.Lock()
        self._is_stopped = False
        self._timetable = Timetable(n_fast=concurrency, n_slow=max(1, concurrency // 2))
        self._timetable.start()

    def set_rules(self, rules: RuleSet) -> list[SignalAsker]:
        """Ask for the signals of `rules` from now on, new and changed ones at once; return those."""
        asked = {name: signal for name, signal in rules.asked.items() if signal.server == self._name}
        with self._lock:
            self._rules_generation = rules.generation
            for name in self._askers.keys() - asked.keys():
                self._timetable.cancel(name)
                del self._askers[name]
                self._complaints.forget(name)
            shortest_s = min((signal.interval_s for signal in asked.values()), default=_LONGEST_OUTAGE_PAUSE_S)
            # Shorter than the interval, so that the end of an outage is found within one.
            self._server.limit(_SHARE_OF_INTERVAL * min(max(shortest_s, _SHORTEST_INTERVAL_S), _LONGEST_OUTAGE_PAUSE_S))
            added = []
            for name, signal in asked.items():
                known = self._askers.get(name)
                if known is None or not known.is_same(signal):
                    self._askers[name] = SignalAsker(signal, self._clock, self._chance, matchers=self._matchers)
                    self._complaints.forget(name)
                    added.append(self._askers[name])
            for i, asker in enumerate(added):
                # Asked at once and then spread over the second half of an interval: all in one instant would
                # come back in one instant each time.
                share = 0.5 + 0.5 * (i + 1) / len(added)
                interval_s = asker.signal.interval_s
                self._timetable.every(asker.signal.name, interval_s, interval_s * share, self._job(asker))
            self._ask_once(added)
            return added

    def swap(self, rules: RuleSet, announce: Callable[[RuleSet], None], within_s: float = SWAP_WITHIN_S) -> None:
        """Ask for what is new in `rules`, and announce them when it has answered, or after `within_s`."""
        wait_for_first(self.set_rules(rules), within_s)
        announce(rules)

    def set_identity(self, identity: NodeIdentity) -> None:
        """Map series to these nodes from now on; where many are new, ask at once."""
        resolver, before = NodeResolver(identity), self._resolver
        n_new = len(resolver.keys.known - before.keys.known)
        self._resolver = resolver
        if not _knows_nodes(before) or n_new > _NOTABLE_SHARE_OF_NEW_NODES * len(identity.names):
            with self._lock:
                self._ask_once(asker for asker in self._askers.values() if asker.grouping.names_nodes)

    def refresh_now(self) -> None:
        """Ask for every signal as soon as a thread is free; the intervals go on as they were."""
        with self._lock:
            self._ask_once(self._askers.values())

    def query_health(self) -> dict[str, QueryHealth]:
        """Return the health of each signal's queries, by signal."""
        now_s = self._clock()
        with self._lock:
            return {
                name: query_health_of(asker, self._server, self._complaints.last(name), now_s)
                for name, asker in self._askers.items()
            }

    def tick(self) -> None:
        """Ask for signals that are overdue: the timetable runs by the wall clock, and that may step back.

        The owner of the process calls it about every second.
        """
        with self._lock:
            for name, asker in self._askers.items():
                overdue_s = self._clock() - asker.started_s - 1.5 * asker.signal.interval_s - 1.0
                if overdue_s > 0 and not asker.is_running:
                    asker.started_s = self._clock()
                    self._timetable.run_now(name)

    def stop(self) -> None:
        """Publish nothing more; queries under way are left to their timeouts."""
        with self._lock, self._publishing:
            if not self._is_stopped:
                self._is_stopped = True
                self._timetable.stop()

    def _ask_once(self, askers: Iterable[SignalAsker]) -> None:
        for asker in () if self._is_stopped else askers:
            executor = SLOW if asker.is_slow else FAST
            self._timetable.once(f"{asker.signal.name} {asker.signature}", self._job(asker), executor)

    def _job(self, asker: SignalAsker) -> Callable[[], None]:
        return lambda: self._refresh(asker)

    def _refresh(self, asker: SignalAsker) -> None:
        name = asker.signal.name
        if self._is_stopped or (asker.grouping.names_nodes and not _knows_nodes(self._resolver)):
            return
        if asker.is_slow and self._timetable.is_fast_thread():
            self._ask_once([asker])
            return
        if not asker.begin():
            self._observer.query_skipped(name, "running")
            return
        try:
            if not asker.breaker.allows():
                self._observer.query_skipped(name, "breaker")
            elif not self._server.allows():
                asker.breaker.withdraw()
                self._observer.query_skipped(name, "outage")
            else:
                self._ask(asker)
        finally:
            asker.end()

    def _ask(self, asker: SignalAsker) -> None:
        name, was_slow = asker.signal.name, asker.is_slow
        context = AskContext(self._client, lambda: self._resolver, self._rules_generation)
        try:
            answer = asker.ask(context)
        except QueryError as error:
            answer = asker.failure(error, self._rules_generation)
            self._note_failure(asker, error)
        except Exception as error:  # noqa: BLE001 - a fault of ours, logged as that
            # It must end like any failure: a breaker whose one attempt never ends would let nothing be asked again.
            _LOG.exception("the query of signal %s failed", name)
            fault = QueryError(type(error).__name__)
            answer = asker.failure(fault, self._rules_generation)
            self._note_failure(asker, fault)
        else:
            asker.breaker.succeeded()
            self._observer.answered(answer)
            self._note_success()
        self._observer.query_done(name, answer.duration_s, answer.error_kind)
        if asker.is_slow != was_slow:
            self._timetable.use(name, SLOW if asker.is_slow else FAST)
        self._complaints.note(asker.signal, answer)
        with self._publishing:
            if not self._is_stopped and self._askers.get(name) is asker:
                self._publish(answer)

    def _note_failure(self, asker: SignalAsker, error: QueryError) -> None:
        if not error.is_outage:
            # It answered, if only to refuse.
            self._note_success()
            asker.breaker.failed()
            return
        self._observer.server_done(self._name, is_up=False)
        if self._server.is_open:
            asker.breaker.withdraw()
            self._server.failed()
        elif self._server.failed():
            details = {"server": self._name, "signal": asker.signal.name, "error": str(error)}
            _LOG.error("%s cannot be queried; trying again less and less often", self._title, extra=details)
            # It is the server's fault: the signal's own, longer pause would only delay its return.
            asker.breaker.withdraw()
        else:
            asker.breaker.failed()

    def _note_success(self) -> None:
        self._observer.server_done(self._name, is_up=True)
        if self._server.succeeded():
            _LOG.warning("%s answers again; querying its signals", self._title, extra={"server": self._name})
            self.refresh_now()

    @property
    def _title(self) -> str:
        return f"Prometheus {self._name}" if self._name else "Prometheus"


def wait_for_first(askers: Iterable[SignalAsker], within_s: float) -> None:
    """Wait until each has been asked once, together no longer than `within_s`."""
    deadline_s = time.monotonic() + within_s
    for asker in askers:
        asker.attempted.wait(max(deadline_s - time.monotonic(), 0.0))


def _knows_nodes(resolver: NodeResolver) -> bool:
    """Whether the nodes are known: until then all series that name a node would go unmapped."""
    return resolver.identity.generation > 0
