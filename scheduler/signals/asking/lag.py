"""How far behind the samples of a signal are, as a whole and key by key.

By the timestamps of the selectors in its expression, or as `lag` says where the file has it. The lag of a signal is
that of its worst selector, and a selector's that of its newest series. A node (domain, card) of which a selector has
only older series lags on its own: a dead exporter among many ages its node and no other. This needs a label that
names the node on the selector's series and on those of the answer alike, or `instance` on the former. With `a or b` a
node that has gone over from one to the other lags until no range sees the first any more.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec
import numpy as np

from scheduler.model.arrays import FloatArray
from scheduler.model.rules import Reduce, Signal
from scheduler.signals.asking.answer_keys import AnswerKeys, ClusterKey
from scheduler.signals.asking.client import QueryClient, QueryResult
from scheduler.signals.asking.groupings import grouping_of
from scheduler.signals.asking.ingest import Ingested, ingest, parse_number
from scheduler.signals.asking.lag_query import MARK, lag_query
from scheduler.signals.asking.query_errors import QueryError
from scheduler.signals.asking.resolver import NodeResolver
from scheduler.signals.asking.session import ResultSeries
from scheduler.signals.format.promql import reaches

_LOG = logging.getLogger(__name__)

_MAX_EVERY: Final = 4
# A query for timestamps that takes more of an interval than this is not made in each.
_CHEAP_SHARE: Final = 0.001


@dataclass(frozen=True, slots=True)
class Lags:
    """How far behind samples are, in seconds at the evaluation of the answer.

    newest_s
        The lag of all keys that do not lag on their own.
    by_key
        float64 (n_keys,) in the order of the answer's keys, NaN for keys that do not lag on their own; inf: nothing
        says how far. None where no key does.
    """

    newest_s: float = 0.0
    by_key: FloatArray | None = None


class LagMeter:
    """Measures the lags of one signal; one thread at a time asks."""

    def __init__(self, signal: Signal, clock: Callable[[], float]) -> None:
        self._grouping = grouping_of(signal)
        self._clock = clock
        self._every = 1
        self._n_turns = 0
        self._reaches = {} if signal.lag else reaches(signal.expr)
        self._built_for: tuple[str, ...] | None = None
        self._query = ""
        self._last = Lags()
        self._last_keys: AnswerKeys = ClusterKey()
        self._measured_at_s = 0.0
        self.set_pace(signal)

    def set_pace(self, signal: Signal) -> None:
        """Go by the same signal with another spacing."""
        self._signal = signal
        # A group that is behind must be reported early enough to be missing in time.
        self.behind_s = min(signal.fresh_s, signal.max_age_s - signal.interval_s)
        spare = int((signal.max_age_s - self.behind_s) / signal.interval_s)
        self._longest_every = min(max(spare, 1), _MAX_EVERY)
        self._every = min(self._every, self._longest_every)
        self._built_for = None

    def measure(self, client: QueryClient, answer: QueryResult, found: Ingested, resolver: NodeResolver) -> Lags:
        """Return the lags of an answer; between two measurements, and after one that failed, the last ones hold on.

        Raises
        ------
        QueryError
            A written `lag` has no answer: nothing else says how old the samples are.
        """
        if self._signal.lag:
            return self._written(client, found, resolver)
        is_due = self._n_turns % self._every == 0
        self._n_turns += 1
        if is_due and self._reaches:
            self._by_timestamps(client, answer, found, resolver)
        elapsed_s = max(answer.evaluated_at_s - self._measured_at_s, 0.0)
        if self._last.by_key is None:
            return self._last
        return Lags(self._last.newest_s, _along(self._last_keys, self._last.by_key, found.keys, math.nan) + elapsed_s)

    def without_stale(self, found: Ingested, lags: Lags) -> Ingested:
        """Return what was found without the values that are older than `max_age`, counted as such."""
        max_age_s = self._signal.max_age_s
        if found.keys.names is None:
            # Rows do not age on their own here, so what would be too old before the next answer goes now.
            max_age_s -= self._signal.interval_s
        lag_s = lags.newest_s if lags.by_key is None else np.fmax(lags.by_key, lags.newest_s)
        is_stale = found.has_value & (lag_s > max_age_s)
        if not is_stale.any():
            return found
        drops = msgspec.structs.replace(found.drops, stale=int(is_stale.sum()))
        return replace(found, values=np.where(is_stale, np.nan, found.values), drops=drops)

    def notable(self, found: Ingested, lags: Lags) -> dict[str, float]:
        """Return the lags of those keys with a value that lag on their own; nothing where keys have no names."""
        names = found.keys.names
        if lags.by_key is None or names is None:
            return {}
        lagging: list[int] = np.flatnonzero(found.has_value & ~np.isnan(lags.by_key)).tolist()
        return {names[i]: float(lags.by_key[i]) for i in lagging}

    def _written(self, client: QueryClient, found: Ingested, resolver: NodeResolver) -> Lags:
        try:
            result = client.query(self._signal.lag, self._signal.max_age_s)
        except QueryError as error:
            error.args = (f"asking for its lag: {error}",)
            raise
        if result.is_scalar:
            number = parse_number(result.series[0].value[1]) if result.series and result.series[0].value else None
            return Lags(math.inf if number is None or math.isnan(number) else max(number, 0.0))
        measured = self._ingested(result.series, resolver)
        by_key = np.maximum(_along(measured.keys, measured.values, found.keys, math.nan), 0.0)
        known = by_key[~np.isnan(by_key) & found.has_value]
        newest_s = float(known.min()) if len(known) else 0.0
        by_key[np.isnan(by_key)] = math.inf
        by_key[by_key <= max(self.behind_s, newest_s)] = math.nan
        return Lags(newest_s, by_key if not np.isnan(by_key).all() else None)

    def _by_timestamps(self, client: QueryClient, answer: QueryResult, found: Ingested, resolver: NodeResolver) -> None:
        labels = self._grouping.naming_labels(answer.series, resolver)
        if labels != self._built_for:
            self._built_for = labels
            interval_s, else_by = self._signal.interval_s, self._grouping.lag_else_by
            self._query = lag_query(self._reaches, labels, self.behind_s, interval_s, else_by)
        begun_s = self._clock()
        try:
            result = client.query(self._query, self._signal.max_age_s)
        except QueryError as error:
            self._every = self._longest_every
            _LOG.debug("lag unknown", extra={"signal": self._signal.name, "error": str(error)})
            return
        n_cheap = (self._clock() - begun_s) / (_CHEAP_SHARE * self._signal.interval_s)
        self._every = min(max(math.ceil(n_cheap), 1), self._longest_every)
        self._last, self._last_keys = self._lags_of(result, found, resolver), found.keys
        self._measured_at_s = answer.evaluated_at_s

    def _lags_of(self, result: QueryResult, found: Ingested, resolver: NodeResolver) -> Lags:
        now_s = result.server_time_s
        if now_s is None:
            return Lags()
        oldest_newest_s = now_s
        by_key = np.full(len(found.values), math.nan)
        for i in range(len(self._reaches)):
            of_selector = [one for one in result.series if one.metric.get(MARK) == str(i)]
            groups = [one for one in of_selector if len(one.metric) > 1]
            newest = [one for one in of_selector if len(one.metric) == 1]
            # Where nothing but ended series is left, the last of those to end is the newest.
            times = [number for one in newest or groups if (number := _number(one)) is not None]
            oldest_newest_s = min(oldest_newest_s, max(times, default=now_s))
            if groups:
                measured = self._ingested(groups, resolver)
                by_key = np.fmax(by_key, now_s - _along(measured.keys, measured.values, found.keys, math.nan))
        return Lags(max(now_s - oldest_newest_s, 0.0), by_key if not np.isnan(by_key).all() else None)

    def _ingested(self, series: Sequence[ResultSeries], resolver: NodeResolver) -> Ingested:
        """Bring numbers of seconds to keys as those of the signal, the highest of each."""
        label, other = self._signal.node_label, self._grouping.lag_else_by
        if label and other:
            # Series that get the label only by a join are grouped by the other, which then has to name the node.
            series = [_named(one, label, other) for one in series]
        return ingest(replace(self._signal, reduce=Reduce.MAX, range=None), series, resolver)


def _along(keys: AnswerKeys, values: FloatArray, wanted: AnswerKeys, default: float) -> FloatArray:
    """Return what stands under `wanted`, float64 (n_wanted,), `default` for what is not among `keys`; a copy."""
    if keys is wanted:
        return values.copy()
    # One entry more: what is not among them, -1, reads the last.
    along: FloatArray = np.append(values, default)[wanted.positions_in(keys)]
    return along


def _named(series: ResultSeries, label: str, other: str) -> ResultSeries:
    """Return a series whose `label` has the value of the `other` where it has none of its own."""
    metric = series.metric
    if metric.get(label) or other not in metric:
        return series
    return msgspec.structs.replace(series, metric={**metric, label: metric[other]})


def _number(series: ResultSeries) -> float | None:
    """Return a sample that is a finite number."""
    number = parse_number(series.value[1]) if series.value else None
    return number if number is not None and math.isfinite(number) else None
