"""The query for the timestamps behind an expression: the newest of each selector, and which groups are far behind.

An instant query stamps every sample with the time of evaluation, so the answer itself does not say how old its data
is: `timestamp()` of the selectors does. A range goes on seeing the samples of a dead exporter, be its series marked
as ended or not; there the last timestamp within the range is looked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from scheduler.signals.format.promql import quote_label

MARK: Final = "vane_selector"

_MAX_STEPS: Final = 16


def lag_query(
    reaches: Mapping[str, float], labels: Sequence[str], behind_s: float, step_s: float, else_by: str = ""
) -> str:
    """Return a query for the newest timestamp of each selector, and for those groups that are behind.

    Empty where there is no selector. Series of the answer are marked with the number of their selector; those of
    groups carry `labels` besides.

    Parameters
    ----------
    reaches
        How many seconds back the expression reads each selector.
    labels
        What groups the series; without them only the newest of each selector is asked for.
    behind_s
        A group is behind where its newest sample is older than this.
    step_s
        How densely a range is searched for series that have ended, at sixteen steps at most. A timestamp found there
        is early by at most one step, never late; what lived for less than a step may not be found.
    else_by
        The label that groups series without any of `labels`: an expression may give a node its name only by a join.
    """
    parts: list[str] = []
    for i, (selector, reach_s) in enumerate(reaches.items()):
        # Without a label of their own the parts would be one series to `or`, and only the first would be left.
        newest = _newest(selector, "max", 0.0 if labels else reach_s, step_s)
        parts.append(f'label_replace({newest}, "{MARK}", "{i}", "", "")')
        groupings = [(selector, labels)] if labels else []
        if labels and else_by and else_by not in labels:
            groupings.append((_without(selector, labels), (else_by,)))
        for grouped, by in groupings:
            grouping = f"max by ({', '.join(quote_label(label) for label in by)})"
            # A series that ended more recently is not behind; one that ended before is not seen.
            last = _newest(grouped, grouping, reach_s if reach_s > behind_s else 0.0, step_s)
            parts.append(f'label_replace(({last}) < time() - {behind_s:g}, "{MARK}", "{i}", "", "")')
    return " or ".join(parts)


def _without(selector: str, labels: Sequence[str]) -> str:
    """Return the selector of those series that have none of the labels."""
    empty = ", ".join(f'{quote_label(label)}=""' for label in labels)
    return f"{selector[:-1]}, {empty}}}" if selector.endswith("}") else f"{selector}{{{empty}}}"


def _newest(selector: str, grouping: str, reach_s: float, step_s: float) -> str:
    newest = f"{grouping} (timestamp({selector}))"
    if reach_s <= 0.0:
        return newest
    step_ms = round(1000 * max(step_s, reach_s / _MAX_STEPS))
    return f"{newest} or {grouping} (max_over_time(timestamp({selector})[{round(1000 * reach_s)}ms:{step_ms}ms]))"
