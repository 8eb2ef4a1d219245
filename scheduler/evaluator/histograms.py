"""Quantiles of classic histograms: cumulative counts by the label `le`."""

from __future__ import annotations

import bisect
import math
import re
import sys
from collections.abc import Sequence
from typing import Final

from scheduler.evaluator.values import LabelKey, Labels, Vector, label_key, without, without_name

_DIGITS: Final = r"[0-9](?:_?[0-9])*"
_BOUND: Final = re.compile(
    rf"[+-]?(?:(?:{_DIGITS}\.?(?:{_DIGITS})?|\.{_DIGITS})(?:e[+-]?{_DIGITS})?|inf|infinity|nan)", re.IGNORECASE
)
_LE: Final = frozenset({"le"})
# Counts that differ by less have only been rounded differently.
_TOLERANCE: Final = 1e-12

Bucket = tuple[float, float]
"""Upper bound and cumulative count."""


def bucket_quantiles(q: float, buckets: Vector) -> tuple[list[Labels], list[float], list[str]]:
    """Return labels and quantile of each histogram, and the values of `le` that are no bound."""
    histograms: dict[LabelKey, tuple[Labels, list[Bucket]]] = {}
    bad: list[str] = []
    for labels, count in zip(buckets.labels, buckets.values.tolist(), strict=True):
        bound = _bound(labels.get("le", ""))
        if bound is None:
            bad.append(labels.get("le", ""))
            continue
        rest = without(labels, _LE)
        histograms.setdefault(label_key(rest), (rest, []))[1].append((bound, count))
    found = list(histograms.values())
    return [without_name(labels) for labels, _ in found], [_quantile(q, counts) for _, counts in found], bad


def _bound(text: str) -> float | None:
    if not _BOUND.fullmatch(text):
        return None
    bound = float(text)
    # Written digits that overflow are no number to Go.
    return None if math.isinf(bound) and any(digit.isdigit() for digit in text) else bound


def _quantile(q: float, buckets: list[Bucket]) -> float:
    """Return the quantile, taken linearly within its bucket; in the last bucket, the bound before it."""
    if math.isnan(q):
        return math.nan
    if not 0 <= q <= 1:
        return math.inf if q > 1 else -math.inf
    buckets = sorted(buckets, key=lambda bucket: bucket[0])
    if buckets[-1][0] != math.inf:
        return math.nan
    bounds, counts = _merged(buckets)
    counts = _rising(counts)
    if len(bounds) < 2 or counts[-1] == 0:
        return math.nan
    rank = q * counts[-1]
    # No bucket reaches a rank that is NaN, so the last one has it.
    i = bisect.bisect_left(range(len(counts) - 1), True, key=lambda bucket: counts[bucket] >= rank)
    if i == len(bounds) - 1:
        return bounds[-2]
    if i == 0 and bounds[0] <= 0:
        return bounds[0]
    start, before = (bounds[i - 1], counts[i - 1]) if i else (0.0, 0.0)
    return start + (bounds[i] - start) * _divided(rank - before, counts[i] - before)


def _merged(buckets: Sequence[Bucket]) -> tuple[list[float], list[float]]:
    """Return bounds and counts, those of one bound added up."""
    bounds, counts = [buckets[0][0]], [buckets[0][1]]
    for bound, count in buckets[1:]:
        if bound == bounds[-1]:
            counts[-1] += count
        else:
            bounds.append(bound)
            counts.append(count)
    return bounds, counts


def _rising(counts: Sequence[float]) -> list[float]:
    """Return the counts made to rise: what falls, or differs by rounding only, becomes what came before."""
    risen = [counts[0]]
    for count in counts[1:]:
        before = risen[-1]
        risen.append(before if _is_almost(before, count) or count < before else count)
    return risen


def _is_almost(a: float, b: float) -> bool:
    if a == b or (math.isnan(a) and math.isnan(b)):
        return True
    size, distance = abs(a) + abs(b), abs(a - b)
    if a == 0 or b == 0 or size < sys.float_info.min:
        return distance < _TOLERANCE * sys.float_info.min
    return distance / min(size, sys.float_info.max) < _TOLERANCE


def _divided(a: float, b: float) -> float:
    return a / b if b else math.nan if not a or math.isnan(a) else math.copysign(math.inf, a)
