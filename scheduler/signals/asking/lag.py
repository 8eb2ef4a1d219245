"""How far behind the samples of an expression are.

An instant query stamps every sample with the time of evaluation, so the answer itself does not say how old its
data is: `timestamp()` of the selectors does. The lag of a signal is that of its worst selector, and a selector's
that of its newest series: one dead exporter among many does not age the others (its series end after `max_age`).
"""

from __future__ import annotations

from typing import Final

from scheduler.signals.asking.client import QueryResult
from scheduler.signals.asking.ingest import parse_number
from scheduler.signals.format.promql import selectors

_MARK: Final = "vane_selector"


def lag_query(expr: str) -> str:
    """Return a query for the newest sample of each selector of `expr`, empty where it has none."""
    # Without a label of their own the parts would be one series to `or`, and only the first would be left.
    parts = [
        f'label_replace(max(timestamp({selector})), "{_MARK}", "{i}", "", "")'
        for i, selector in enumerate(selectors(expr))
    ]
    return " or ".join(parts)


def lag_of(result: QueryResult) -> float | None:
    """Return seconds from the oldest of the newest samples to the evaluation, None where nothing was found."""
    newest = [number for one in result.series if one.value and (number := parse_number(one.value[1])) is not None]
    if not newest or result.server_time_s is None:
        return None
    lag_s = result.server_time_s - min(newest)
    return max(lag_s, 0.0) if lag_s == lag_s and lag_s != float("inf") else None
