"""Asking for one signal: the query, its lag now and then, and the answer that is published."""

from __future__ import annotations

import functools
import logging
import math
import threading
import time
from collections.abc import Callable, Set
from dataclasses import dataclass, replace
from typing import Final

from scheduler.model.rules import Signal
from scheduler.signals.answers import SignalAnswer, signature
from scheduler.signals.asking.breaker import Breaker
from scheduler.signals.asking.client import QueryClient, QueryResult
from scheduler.signals.asking.groupings import grouping_of
from scheduler.signals.asking.ingest import ingest
from scheduler.signals.asking.lag import LagMeter
from scheduler.signals.asking.query_errors import NotNarrowed, QueryError, WrongResultType
from scheduler.signals.asking.resolver import NodeResolver
from scheduler.signals.asking.spacing import SpacingMeter, pace_problems
from scheduler.signals.format.promql_matchers import Matchers, narrowed
from scheduler.signals.problems import MissingReason

_LOG = logging.getLogger(__name__)

SLOW_S: Final = 1.0
MIN_SHARE: Final = 0.8
"""An answer that covers less of what the last good one did is suspect."""
_FAST_AGAIN_S: Final = 0.5
_MAX_PAUSE_S: Final = 300.0
_SHOWN_WARNINGS: Final = 5


@dataclass(frozen=True, slots=True)
class AskContext:
    """With what a signal is asked: `resolver` gives the nodes as they are known when the answer has come."""

    client: QueryClient
    resolver: Callable[[], NodeResolver]
    rules_generation: int


@dataclass(frozen=True, slots=True)
class Coverage:
    """What the last good answer of a signal covered, and when it was evaluated, in monotonic seconds."""

    keys: frozenset[str] = frozenset()
    evaluated_at_s: float = float("-inf")

    def is_thin(self, covered: Set[str], known: Set[str] | None, now_s: float, max_age_s: float) -> bool:
        """Whether an answer lacks more than a fifth of what was covered and still exists.

        After `max_age_s` without a good answer nothing of it is in force any more, and the next answer sets the
        measure: an exporter may be taken off for good.
        """
        if now_s - self.evaluated_at_s > max_age_s or self.keys is covered or self.keys <= covered:
            return False
        expected = self.keys if known is None else self.keys & known
        return len(expected & covered) < MIN_SHARE * len(expected)


class SignalAsker:
    """One signal and what is remembered of it between two queries; one thread at a time asks.

    Parameters
    ----------
    matchers
        Those of the server: every selector that is asked for gets them.

    Attributes
    ----------
    attempted
        Set once the first attempt has ended, one way or the other.
    started_s
        When the last attempt was due and taken up, in monotonic seconds.
    is_slow
        The last query took more than a second; it is fast again below half of that.
    missing
        Key -> why it had no value in the last answer.
    """

    def __init__(
        self,
        signal: Signal,
        clock: Callable[[], float],
        chance: Callable[[], float],
        wall: Callable[[], float] = time.time,  # noqa: TID251  # compared with the times in Pods, which are by wall clocks
        matchers: Matchers = (),
    ) -> None:
        self.signal = signal
        self.signature = signature(signal)
        self.grouping = grouping_of(signal)
        pause_s = min(2.0 * signal.interval_s, _MAX_PAUSE_S)
        self.breaker = Breaker(clock, first_s=pause_s, cap_s=_MAX_PAUSE_S, chance=chance)
        self.attempted = threading.Event()
        self.started_s = clock()
        self.is_slow = False
        self.missing: dict[str, MissingReason] = {}
        self._clock = clock
        self._wall = wall
        self._running = threading.Lock()
        self._matchers = matchers
        self._paced = signal
        self._coverage = Coverage()

    @functools.cached_property
    def _asked(self) -> Signal:
        """The signal as its server is asked; NotNarrowed where nobody can say what would be selected."""
        signal, matchers = self.signal, self._matchers
        try:
            lag = narrowed(signal.lag, matchers) if signal.lag else ""
            return replace(signal, expr=narrowed(signal.expr, matchers), lag=lag)
        except ValueError as error:
            raise NotNarrowed(f"not asked: {error}") from error

    @functools.cached_property
    def _spacing(self) -> SpacingMeter:
        return SpacingMeter(self._asked, self._clock)

    @functools.cached_property
    def _lag(self) -> LagMeter:
        return LagMeter(self._asked, self._clock)

    @property
    def is_running(self) -> bool:
        return self._running.locked()

    def begin(self) -> bool:
        """Whether the caller may ask now; then it has to call `end`."""
        if not self._running.acquire(blocking=False):
            return False
        self.started_s = self._clock()
        return True

    def end(self) -> None:
        self.attempted.set()
        self._running.release()

    def is_same(self, signal: Signal) -> bool:
        """Whether `signal` is asked in the same way; where it stands in its file does not matter."""
        return replace(signal, where="") == replace(self.signal, where="")

    def ask(self, context: AskContext) -> SignalAnswer:
        """Return the answer of Prometheus as values.

        Raises
        ------
        QueryError
            What is remembered of good answers stays.
        """
        begun_s = self._clock()
        try:
            result = self._query(context.client)
            if result.is_scalar and not self.grouping.takes_scalar:
                what = "got a scalar, which names no node"
                raise WrongResultType(f"{what}; write `by: cluster`, or an expression that gives a vector")
            resolver = context.resolver()
            found = ingest(self.signal, result.series, resolver)
            lags = self._lag.measure(context.client, result, found, resolver)
        finally:
            duration_s = self._clock() - begun_s
            self.is_slow = duration_s > (_FAST_AGAIN_S if self.is_slow else SLOW_S)
        everything, found = found, self._lag.without_stale(found, lags)
        self.missing = found.missing_reasons(everything)
        covered = found.covered()
        is_suspect = self._is_suspect(covered, resolver, result)
        return SignalAnswer(
            signal=self.signal.name,
            signature=self.signature,
            rules_generation=context.rules_generation,
            max_age_s=self._paced.max_age_s,
            spacing_s=self._paced.spacing_s,
            smoothing_s=self.signal.smoothing_s,
            evaluated_at_s=result.evaluated_at_s,
            evaluated_unix_s=self._wall() - (self._clock() - result.evaluated_at_s),
            duration_s=duration_s,
            lag_s=lags.newest_s if math.isfinite(lags.newest_s) else 0.0,
            lag_by_key=self._lag.notable(found, lags),
            is_suspect=is_suspect,
            clock_skew_s=result.clock_skew_s,
            warnings=result.warnings[:_SHOWN_WARNINGS],
            n_series=len(result.series),
            n_mapped=len(covered),
            drops=found.drops,
            **found.keys.packed(found.values),
        )

    def failure(self, error: QueryError, rules_generation: int) -> SignalAnswer:
        """Return the answer that says why there is none; what was published before stays in force."""
        now_s = self._clock()
        return SignalAnswer(
            signal=self.signal.name,
            signature=self.signature,
            rules_generation=rules_generation,
            max_age_s=self._paced.max_age_s,
            spacing_s=self._paced.spacing_s,
            evaluated_at_s=now_s,
            duration_s=now_s - self.started_s,
            error=str(error) or type(error).__name__,
            error_kind=error.kind,
        )

    def _query(self, client: QueryClient) -> QueryResult:
        """Ask, and once more where the samples turn out to come at another pace: their nodes may have been left out."""
        result = client.query(self._asked.expr, self._paced.max_age_s)
        before, spacing_s = self._paced, self._spacing.measure(client)
        if spacing_s == before.spacing_s:
            return result
        self._paced = self._asked.paced(spacing_s)
        self._lag.set_pace(self._paced)
        for problem in pace_problems(self._paced):
            _LOG.warning("signal %s: %s", self.signal.name, problem, extra={"where": self.signal.where})
        if self._paced.max_age_s == before.max_age_s:
            return result
        return client.query(self._asked.expr, self._paced.max_age_s)

    def _is_suspect(self, covered: frozenset[str], resolver: NodeResolver, result: QueryResult) -> bool:
        """Compare with the last good answer, and take this one as the measure if it is good."""
        expected = self.grouping.expected(resolver)
        is_thin = self._coverage.is_thin(covered, expected, self._clock(), self._paced.max_age_s)
        if is_thin or result.warnings:
            return True
        self._coverage = Coverage(covered, result.evaluated_at_s)
        return False
