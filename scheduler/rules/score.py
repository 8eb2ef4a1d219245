"""From samples to points: a rule's curve, what a node without a sample gets, and how scores of old samples fade."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np

from scheduler.framework.plugin import MAX_NODE_SCORE
from scheduler.model.arrays import BoolArray, FloatArray
from scheduler.model.rules import Curve, RuleScore, ScoreMissing, WeightSignal
from scheduler.model.signals import Freshness, SignalColumn, SignalTable

NEUTRAL_SCORE: Final = MAX_NODE_SCORE / 2
"""What a rule gives to every node while it has no sample at all."""

_FEW_POINTS: Final = 4


def rule_weight(weight: float | WeightSignal, signals: SignalTable) -> float:
    """Return the weight in force, 0..100; without a usable sample of its signal the rule's `missing`."""
    if not isinstance(weight, WeightSignal):
        return weight
    column = signals.columns.get(weight.signal)
    if column is None or column.freshness is Freshness.ABSENT or not len(column.values):
        return weight.missing
    # A cluster-wide signal holds the same value in every row.
    value = float(column.values[0])
    return weight.missing if np.isnan(value) else float(np.interp(value, weight.curve.xs, weight.curve.ys))


def rule_scores(score: RuleScore, column: SignalColumn | None, alive: BoolArray) -> FloatArray:
    """Return what one rule gives to every node.

    A fading signal draws the scores towards neutral, never the weight towards zero: a rule must not lose its
    say bit by bit. Neutral is the median over all nodes that have a sample, not only the feasible ones, so
    that a node's score does not depend on who else is looked at. A node whose sample alone has grown too old to be
    fresh fades alone, and what it once was never lifts it above those that are known.

    Parameters
    ----------
    column
        The signal's column over all rows; None and an absent one mean that no node has a sample.
    alive
        bool (n_rows,); tombstones do not enter the median.

    Returns
    -------
    float64 (n_rows,), 0..100
        Never NaN.
    """
    if column is None or column.freshness is Freshness.ABSENT:
        return np.full(len(alive), _missing_score(score, NEUTRAL_SCORE))
    scores = on_curve(score.curve, column.expected)
    missing = np.isnan(scores)
    confidence, by_row = column.confidence, column.row_confidence
    # The median costs as much as all the rest; with every node measured and fresh it is not needed.
    needs_neutral = confidence < 1.0 or by_row is not None or bool((missing & alive).any())
    neutral = _median(scores[_telling(column, alive & ~missing)]) if needs_neutral else NEUTRAL_SCORE
    if by_row is not None:
        # Only where it fades: subtracting neutral and adding it again may give slightly more than 100.
        faded = neutral + by_row * (scores - neutral)
        np.minimum(faded, neutral, out=faded, where=_is_outdated(column, by_row))
        np.copyto(scores, faded, where=by_row < 1.0)
    elif confidence < 1.0:
        scores -= neutral
        scores *= confidence
        scores += neutral
    np.copyto(scores, _missing_score(score, neutral), where=missing)
    return scores


def _telling(column: SignalColumn, measured: BoolArray) -> BoolArray:
    """Return bool (n_rows,): the measured nodes that say what is usual, those with the newest samples."""
    if column.row_lag_s is None:
        return measured
    newest: BoolArray = measured & (column.row_lag_s == 0.0)
    return newest if newest.any() else measured


def _is_outdated(column: SignalColumn, confidence: FloatArray) -> BoolArray:
    """Return bool (n_rows,), True for nodes whose own sample is no longer fresh while others' may be."""
    outdated: BoolArray = np.zeros(confidence.shape, dtype=np.bool_)
    return outdated if column.row_lag_s is None else (column.row_lag_s > 0.0) & (confidence < 1.0)


def _missing_score(score: RuleScore, neutral: float) -> float:
    if score.missing is ScoreMissing.NEUTRAL:
        return neutral
    return max(score.curve.ys) if score.missing is ScoreMissing.BEST else min(score.curve.ys)


def on_curve(curve: Curve, values: FloatArray) -> FloatArray:
    """Return float64 of the same shape, NaN where the value is.

    A curve of few points is climbed piece by piece, which is faster than a search for each value.
    """
    xs, ys = curve.xs, curve.ys
    if len(xs) > _FEW_POINTS:
        return np.interp(values, xs, ys)
    scores = np.full(values.shape, ys[0])
    for (x0, y0), (x1, y1) in pairwise(zip(xs, ys, strict=True)):
        step = values - x0
        np.maximum(step, 0.0, out=step)
        np.minimum(step, x1 - x0, out=step)
        step *= (y1 - y0) / (x1 - x0)
        scores += step
    # Rounding may give slightly more than an end, which the framework would refuse.
    np.maximum(scores, min(ys), out=scores)
    np.minimum(scores, max(ys), out=scores)
    return scores


def _median(scores: FloatArray) -> float:
    """Return the median of (n,) without NaN, 50 for none; half the time of np.median, which looks for NaN."""
    n = len(scores)
    if n == 0:
        return NEUTRAL_SCORE
    half = n // 2
    parted = np.partition(scores, half)
    return float(parted[half] if n % 2 else (parted[:half].max() + parted[half]) / 2)
