"""`smoothing:` of a signal: the half-life of past samples."""

from __future__ import annotations

from typing import Final

from scheduler.signals.format.fields import Fields
from scheduler.signals.format.report import got
from scheduler.signals.format.values import read_duration

MAX_SMOOTHING_S: Final = 3_600.0


def read_smoothing(fields: Fields) -> float:
    """Return seconds, 0 where samples are taken as they are."""
    node, scope = fields.get("smoothing"), fields.scope.inner("smoothing")
    seconds = read_duration(node, scope)
    if seconds is None or node is None:
        return 0.0
    if not 0.0 < seconds <= MAX_SMOOTHING_S:
        write = "Write the half-life of past samples, as `smoothing: 30s`, or drop the line"
        scope.problem(node, f"must be above 0s and at most 1h, {got(node)}. {write}")
    if "inflight" in fields:
        what = "a smoothed value shows a placed Pod later than the window of inflight says, got both"
        scope.problem(fields.at("smoothing"), f"{what}. Drop one, or write a longer range into the expression")
    return seconds
