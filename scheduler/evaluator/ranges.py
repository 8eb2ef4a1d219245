"""Functions of the samples in a range: one number per series, or none where there are too few samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from scheduler.evaluator.selectors import Window
from scheduler.evaluator.sums import exact_mean, exact_sum, exact_variance

# A gap up to this many average distances is taken for an ordinary one.
_EXTRAPOLATE_UP_TO: Final = 1.1


def rate(window: Window) -> float | None:
    return _extrapolated(window, is_counter=True, is_rate=True)


def increase(window: Window) -> float | None:
    return _extrapolated(window, is_counter=True, is_rate=False)


def delta(window: Window) -> float | None:
    return _extrapolated(window, is_counter=False, is_rate=False)


def irate(window: Window) -> float | None:
    """Return what a counter gained per second between its last two samples; after a reset it started from 0."""
    if len(window.times) < 2:
        return None
    before, last = (float(value) for value in window.values[-2:])
    gained = last if last < before else last - before
    return gained / (int(window.times[-1] - window.times[-2]) / 1000)


def idelta(window: Window) -> float | None:
    return None if len(window.times) < 2 else float(window.values[-1]) - float(window.values[-2])


def changes(window: Window) -> float:
    before, after = window.values[:-1], window.values[1:]
    return float(np.count_nonzero((before != after) & ~(np.isnan(before) & np.isnan(after))))


def resets(window: Window) -> float:
    return float(np.count_nonzero(window.values[1:] < window.values[:-1]))


def _extrapolated(window: Window, *, is_counter: bool, is_rate: bool) -> float | None:
    """Return the change over the range, taken on to the range's ends where the samples come near them.

    Near means within 1.1 average distances; an end farther away is moved half a distance towards. A counter is never
    taken back below 0.
    """
    times, values = window.times, window.values
    n_steps = len(times) - 1
    if n_steps < 1:
        return None
    change = float(values[-1]) - float(values[0])
    if is_counter:
        for before in values[:-1][values[1:] < values[:-1]].tolist():
            change += before
    sampled_s = int(times[-1] - times[0]) / 1000
    average_s = sampled_s / n_steps
    to_start_s = _reach((int(times[0]) - window.start_ms) / 1000, average_s)
    if is_counter and change > 0 and values[0] >= 0:
        to_start_s = min(to_start_s, sampled_s * (float(values[0]) / change))
    to_end_s = _reach((window.end_ms - int(times[-1])) / 1000, average_s)
    factor = (sampled_s + to_start_s + to_end_s) / sampled_s
    if is_rate:
        factor /= (window.end_ms - window.start_ms) / 1000
    return change * factor


def _reach(distance_s: float, average_s: float) -> float:
    return distance_s if distance_s < average_s * _EXTRAPOLATE_UP_TO else average_s / 2


OVER_RANGE: Final[Mapping[str, Callable[[Window], float | None]]] = {
    "rate": rate,
    "increase": increase,
    "delta": delta,
    "irate": irate,
    "idelta": idelta,
    "changes": changes,
    "resets": resets,
    "avg_over_time": lambda window: exact_mean(window.values.tolist()),
    "sum_over_time": lambda window: exact_sum(window.values.tolist()),
    # NaN counts only where there is nothing else, as in fmin and fmax.
    "min_over_time": lambda window: float(np.fmin.reduce(window.values)),
    "max_over_time": lambda window: float(np.fmax.reduce(window.values)),
    "count_over_time": lambda window: float(len(window.values)),
    "last_over_time": lambda window: float(window.values[-1]),
    "present_over_time": lambda _: 1.0,
    "stddev_over_time": lambda window: _root(exact_variance(window.values.tolist())),
    "stdvar_over_time": lambda window: exact_variance(window.values.tolist()),
}

KEEPS_NAME: Final = frozenset({"last_over_time"})


def _root(value: float) -> float:
    return math.sqrt(value) if value >= 0 else math.nan
