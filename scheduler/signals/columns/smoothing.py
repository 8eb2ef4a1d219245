"""Smoothing: each key's samples, averaged with weights that halve with every half-life of age.

    s = s₀ · 2^(-Δt / h) + x · (1 - 2^(-Δt / h))

x is the new sample, s₀ the smoothed value before it, Δt the time between the two samples and h the half-life. The first
sample is taken as it is, and so is the first one after a gap.
"""

from __future__ import annotations

import numpy as np

from scheduler.model.arrays import BoolArray, FloatArray
from scheduler.signals.columns.key_memory import Memory, nothing_of
from scheduler.signals.columns.keys import Keys


def smooth(
    half_life_s: float,
    max_gap_s: float,
    values: FloatArray,
    keys: Keys,
    sampled_at_s: FloatArray,
    memory: Memory | None,
) -> tuple[FloatArray, Memory]:
    """Return the smoothed values, NaN where there is no sample, and what to remember for the next ones.

    Parameters
    ----------
    max_gap_s
        A key that had no sample for longer starts anew.
    values, sampled_at_s
        float64 (n_keys,): the samples, NaN for none, and their times.
    memory
        Of the last call for this signal: the times of the last samples, and the smoothed values.
    """
    known = memory or nothing_of(keys)
    at_s, before = known.along(keys)
    has_sample: BoolArray = ~np.isnan(values)
    gap_s = sampled_at_s - at_s
    goes_on = has_sample & (gap_s <= max_gap_s)
    # A sample that is no newer than the last one has no weight.
    kept = np.exp2(-np.maximum(np.where(goes_on, gap_s, 0.0), 0.0) / half_life_s)
    smoothed = np.where(goes_on, kept * before + (1.0 - kept) * np.where(goes_on, values, 0.0), values)
    at_s = np.where(has_sample, np.maximum(sampled_at_s, at_s), at_s)
    newest_s = float(sampled_at_s.max()) if len(sampled_at_s) else -np.inf
    return smoothed, known.replaced(keys, at_s, np.where(has_sample, smoothed, before), newest_s - max_gap_s)
