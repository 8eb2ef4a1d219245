"""Sums, means, spreads and quantiles with Prometheus' rounding: the same operations in the same order."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from scheduler.evaluator.values import Floats


def exact_sum(values: Iterable[float]) -> float:
    """Return the sum with Neumaier's compensation."""
    total = compensation = 0.0
    for value in values:
        total, compensation = _add(value, total, compensation)
    return total if math.isinf(total) else total + compensation


def exact_mean(values: Sequence[float]) -> float:
    """Return the mean; where the sum would overflow, of what is left by way of a running mean."""
    total, compensation = values[0], 0.0
    for i, value in enumerate(values[1:], start=1):
        new_total, new_compensation = _add(value, total, compensation)
        if math.isinf(new_total):
            return _running_mean(values[i:], i, total / i, compensation / i)
        total, compensation = new_total, new_compensation
    return total / len(values) + compensation / len(values)


def variance(values: Iterable[float]) -> float:
    """Return the population's variance, as the aggregations compute it."""
    n, mean, total = 0, 0.0, 0.0
    for value in values:
        if n == 0:
            n, mean = 1, value
            total = 0.0 if math.isfinite(value) else math.nan
            continue
        n += 1
        delta = value - mean
        mean += delta / n
        total += delta * (value - mean)
    return total / n


def exact_variance(values: Iterable[float]) -> float:
    """Return the population's variance, as the functions over time compute it."""
    n, mean, mean_low, total, total_low = 0, 0.0, 0.0, 0.0, 0.0
    for value in values:
        n += 1
        delta = value - (mean + mean_low)
        mean, mean_low = _add(delta / n, mean, mean_low)
        total, total_low = _add(delta * (value - (mean + mean_low)), total, total_low)
    return (total + total_low) / n


def quantile(q: float, values: Floats) -> float:
    """Return the quantile between the two nearest values; NaN counts as smaller than any number."""
    if not len(values) or math.isnan(q):
        return math.nan
    if not 0 <= q <= 1:
        return math.inf if q > 1 else -math.inf
    n_nan = int(np.isnan(values).sum())
    # numpy sorts NaN to the end.
    ordered = np.roll(np.sort(values), n_nan)
    rank = q * (len(ordered) - 1)
    lower = max(0, math.floor(rank))
    upper = min(len(ordered) - 1, lower + 1)
    weight = rank - math.floor(rank)
    return float(ordered[lower]) * (1 - weight) + float(ordered[upper]) * weight


def _running_mean(values: Sequence[float], n: int, mean: float, compensation: float) -> float:
    for value in values:
        n += 1
        share = (n - 1) / n
        mean, compensation = _add(value / n, share * mean, share * compensation)
    return mean + compensation


def _add(value: float, total: float, compensation: float) -> tuple[float, float]:
    added = total + value
    if math.isinf(added):
        compensation = 0.0
    elif abs(total) >= abs(value):
        compensation += (total - added) + value
    else:
        compensation += (value - added) + total
    return added, compensation
