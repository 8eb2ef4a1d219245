"""Rows whose own samples are older than those of the others: each fades and becomes absent on its own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from scheduler.model.arrays import FloatArray, IntArray, read_only
from scheduler.signals.columns.alignment import spread


def key_lags(lag_by_key: Mapping[str, float], newest_s: float, keys: Sequence[str]) -> FloatArray | None:
    """Return how much older than the newest samples those of each key are, float64 (n_keys,); None where none is."""
    if not lag_by_key:
        return None
    lags_s = np.fromiter((lag_by_key.get(key, newest_s) for key in keys), dtype=np.float64, count=len(keys))
    return read_only(np.maximum(lags_s - newest_s, 0.0))


def aged_rows(
    values: FloatArray, lags_s: FloatArray, alignment: IntArray, spare_s: float
) -> tuple[FloatArray, FloatArray | None, float]:
    """Take away the values of rows whose samples have grown too old.

    Parameters
    ----------
    values
        float64 (n_rows,).
    lags_s
        float64 (n_keys,), as `key_lags` gives them.
    spare_s
        How much longer the newest samples may be used.

    Returns
    -------
    float64 (n_rows,)
        The values, NaN where too old.
    float64 (n_rows,) or None
        How much older each row's sample is; None where no row with a value lags.
    float
        After how many seconds the next row grows too old; inf for none.
    """
    rows_s = spread(lags_s, alignment, 0.0)
    is_too_old = rows_s > spare_s
    kept = np.where(is_too_old, np.nan, values)
    still = rows_s[~np.isnan(kept) & (rows_s > 0.0)]
    if not len(still):
        return read_only(kept), None, math.inf
    lag_s = np.where(np.isnan(kept), 0.0, rows_s)
    return read_only(kept), read_only(lag_s), spare_s - float(still.max())
