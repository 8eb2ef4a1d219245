"""What is remembered of each key from one answer to the next, and smoothing by it.

Keys that are gone are remembered for a while. Smoothing averages each key's samples with weights that halve with every
half-life of age:

    s = s₀ · 2^(-Δt / h) + x · (1 - 2^(-Δt / h))

x is the new sample, s₀ the smoothed value before it, Δt the time between the two samples and h the half-life. The first
sample is taken as it is, and so is the first one after a gap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from scheduler.model.arrays import BoolArray, FloatArray, IntArray
from scheduler.signals.columns.keys import Keys, names_at, positions

NEVER_S = float("-inf")


@dataclass(frozen=True, slots=True, eq=False)
class KeyMemory:
    """A moment and a number for each key.

    moments_s, numbers
        float64 (n_keys,); -inf where there is nothing to remember.
    gone
        The same of keys that the last answers did not have, by name or code.
    """

    keys: Keys
    moments_s: FloatArray
    numbers: FloatArray
    gone: Mapping[str | int, tuple[float, float]] = field(default_factory=dict)

    def along(self, keys: Keys) -> tuple[FloatArray, FloatArray]:
        """Return moments and numbers in the order of `keys`; -inf and 0 for what is not known."""
        if keys is self.keys or keys == self.keys:
            return self.moments_s, self.numbers
        at = positions(keys, self.keys)
        moments_s, numbers = np.append(self.moments_s, NEVER_S)[at], np.append(self.numbers, 0.0)[at]
        if self.gone:
            new: IntArray = np.flatnonzero(at < 0)
            for i, name in zip(new.tolist(), names_at(keys, new), strict=True):
                moments_s[i], numbers[i] = self.gone.get(name, (NEVER_S, 0.0))
        return moments_s, numbers

    def replaced(self, keys: Keys, moments_s: FloatArray, numbers: FloatArray, since_s: float) -> KeyMemory:
        """Return the memory with what is known of `keys` now; what is gone stays if its moment is after `since_s`."""
        gone = self.gone
        if keys is not self.keys and keys != self.keys:
            lost: IntArray = np.flatnonzero(positions(self.keys, keys) < 0)
            last = zip(self.moments_s[lost].tolist(), self.numbers[lost].tolist(), strict=True)
            known = set(names_at(keys, np.arange(len(keys)))) if gone else set()
            gone = {name: last_known for name, last_known in gone.items() if name not in known}
            gone |= dict(zip(names_at(self.keys, lost), last, strict=True))
        if gone:
            gone = {name: last_known for name, last_known in gone.items() if last_known[0] > since_s}
        return KeyMemory(keys, moments_s, numbers, gone)


def nothing_of(keys: Keys) -> KeyMemory:
    """Return a memory that knows of no moment."""
    return KeyMemory(keys, np.full(len(keys), NEVER_S), np.zeros(len(keys)))


def smooth(
    half_life_s: float,
    max_gap_s: float,
    values: FloatArray,
    keys: Keys,
    sampled_at_s: FloatArray,
    memory: KeyMemory | None,
) -> tuple[FloatArray, KeyMemory]:
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
