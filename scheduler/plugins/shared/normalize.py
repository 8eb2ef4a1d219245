"""The normalisation that several score plugins share."""

from __future__ import annotations

import numpy as np

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
