"""How far apart the samples behind an expression come: by scrape interval, or that of the rules that record them.

A signal can be no fresher than its exporters are scraped. Each selector's samples are counted over ten minutes, by
`job`, since the interval of scrapes belongs to a job: the median series stands for its job, and the job whose samples
are furthest apart for the signal. Series that have ended are left out, and a series that is younger than ten minutes
is counted from its first sample. One sample alone says nothing.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from scheduler.model.rules import FRESH_AGES, MAX_AGES, Signal
from scheduler.signals.asking.client import QueryClient
from scheduler.signals.asking.ingest import parse_number
from scheduler.signals.asking.lag_query import MARK
from scheduler.signals.asking.query_errors import QueryError
from scheduler.signals.format.promql import rate_ranges, reaches
from scheduler.signals.format.units import duration_text

_LOG = logging.getLogger(__name__)

OVER_S: Final = 600.0
_AGAIN_S: Final = 600.0
_AGAIN_UNSETTLED_S: Final = 60.0
_SETTLED_SHARE: Final = 0.1
_MIN_SAMPLES: Final = 3
"""What the range of a `rate()` should hold: it needs two, and now and then a scrape fails or is late."""
_LOOKBACK_S: Final = 300.0
"""Of the first query, when no spacing is known: that of Prometheus."""


class SpacingMeter:
    """Measures the spacing of one signal's samples, at first and every ten minutes; one thread at a time asks."""

    def __init__(self, signal: Signal, clock: Callable[[], float]) -> None:
        # A written lag tells of data that is pushed or computed, whose pace no scrape shows; and what is asked for
        # less often than samples could be counted is not held up by them.
        can_be_measured = not signal.lag and signal.interval_s < OVER_S
        selectors = reaches(signal.expr) if can_be_measured else {}
        self._query = spacing_query(selectors)
        self._signal = signal
        self._clock = clock
        self._due_s = -math.inf
        self.spacing_s = 0.0

    def measure(self, client: QueryClient) -> float:
        """Return the spacing in seconds, 0 while it is not known; what was measured before holds on."""
        now_s = self._clock()
        if not self._query or now_s < self._due_s:
            return self.spacing_s
        lookback_s = self._signal.paced(self.spacing_s).max_age_s if self.spacing_s else _LOOKBACK_S
        try:
            result = client.query(self._query, lookback_s)
        except QueryError as error:
            _LOG.debug("spacing unknown", extra={"signal": self._signal.name, "error": str(error)})
            self._due_s = now_s + _AGAIN_UNSETTLED_S
            return self.spacing_s
        before_s, found_s = self.spacing_s, _longest(series.value[1] for series in result.series if series.value)
        is_settled = found_s > 0.0 and abs(found_s - before_s) <= _SETTLED_SHARE * found_s
        if found_s and not is_settled:
            self.spacing_s = found_s
        # Series that have just begun, or go from one interval to another, are measured better a little later.
        self._due_s = now_s + (_AGAIN_S if is_settled else _AGAIN_UNSETTLED_S)
        return self.spacing_s


def pace_problems(signal: Signal) -> Iterator[str]:
    """Yield what a signal's `max_age` and ranges are too short for, given the measured spacing of its samples."""
    spacing = duration_text(signal.spacing_s)
    if signal.max_age_s < FRESH_AGES * signal.spacing_s:
        written = f"`max_age: {duration_text(MAX_AGES * signal.pace_s)}`"
        what = f"samples come {spacing} apart, too seldom for a max_age of {duration_text(signal.max_age_s)}"
        yield f"{what}: nodes are without one at times. Drop the line, or write {written}"
    ranges_s = [range_s for range_s in rate_ranges(signal.expr) if range_s < _MIN_SAMPLES * signal.spacing_s]
    if ranges_s:
        what = f"samples come {spacing} apart, too seldom for a range of {duration_text(min(ranges_s))}"
        yield f"{what}: it holds fewer than three. Write [{duration_text(_MIN_SAMPLES * signal.spacing_s)}] or longer"


def spacing_query(selectors: Iterable[str]) -> str:
    """Return a query for the samples per second of each selector, those of its slowest job; empty without selectors."""
    parts = (f'label_replace({_slowest_job(one)}, "{MARK}", "{i}", "", "")' for i, one in enumerate(selectors))
    return " or ".join(parts)


def _slowest_job(selector: str) -> str:
    over = f"{OVER_S:g}s"
    n_samples = f"quantile by (job) (0.5, count_over_time({selector}[{over}]) and {selector})"
    first = f"quantile by (job) (0.5, min_over_time(timestamp({selector})[{over}:1m]) and {selector})"
    return f"min(({n_samples} >= 2) / clamp(time() - {first}, 1, {OVER_S:g}))"


def _longest(rates: Iterable[float | str]) -> float:
    """Return the longest time between samples, in seconds to the millisecond; 0 where nothing was counted."""
    numbers = (parse_number(rate) for rate in rates)
    spacings_s = [1.0 / rate for rate in numbers if rate is not None and 0.0 < rate < math.inf]
    return round(max(spacings_s, default=0.0), 3)
