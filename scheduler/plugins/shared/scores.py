"""How several plugins turn amounts into scores: scaled to the greatest, or read off a line."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from scheduler.framework.intree_checks import MAX_SHAPE_SCORE
from scheduler.framework.plugin import MAX_NODE_SCORE
from scheduler.model.arrays import IntArray


def scale_to_max(raw: IntArray, *, reverse: bool = False) -> IntArray:
    """Scale counts so that the greatest becomes 100, by integer division; `reverse` makes the smallest best.

    Where nothing was counted all nodes are alike: 0, or 100 in reverse.

    Parameters
    ----------
    raw
        int64 (n_feasible,), not negative, at most INT64_MAX / 100.

    Returns
    -------
    int64 (n_feasible,), 0..100

    Source: kube-scheduler v1.37 plugins/helper/normalize_score.go (behaviour).
    """
    greatest = int(raw.max(initial=0))
    if greatest == 0:
        return np.full(len(raw), MAX_NODE_SCORE if reverse else 0, dtype=np.int64)
    scaled = raw * MAX_NODE_SCORE // greatest
    return MAX_NODE_SCORE - scaled if reverse else scaled


def shape_scores(shape: Sequence[tuple[int, int]]) -> IntArray:
    """Return int64 (101,), 0..100: the broken line through (per cent of use, score 0..10), by integer steps.

    Without points all are 0.

    Source: kube-scheduler v1.37 plugins/helper/shape_score.go (behaviour).
    """
    return np.array([_on_line(shape, percent) if shape else 0 for percent in range(101)], dtype=np.int64)


def _on_line(shape: Sequence[tuple[int, int]], percent: int) -> int:
    scale = MAX_NODE_SCORE // MAX_SHAPE_SCORE
    for (x0, y0), (x1, y1) in pairwise(shape):
        if x0 < percent <= x1:
            # Go divides towards zero, which matters on a falling line.
            return y0 * scale + _divide_to_zero((y1 - y0) * scale * (percent - x0), x1 - x0)
    inside = percent <= shape[0][0]
    return scale * (shape[0][1] if inside else shape[-1][1])


def _divide_to_zero(dividend: int, divisor: int) -> int:
    quotient = abs(dividend) // divisor
    return quotient if dividend >= 0 else -quotient
