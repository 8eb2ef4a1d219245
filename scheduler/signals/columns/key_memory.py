"""What is remembered of each key from one answer to the next, those among them that are gone for a while."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from scheduler.model.arrays import FloatArray, IntArray
from scheduler.signals.columns.keys import CodedKeys, Keys, positions

NEVER_S = float("-inf")


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
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
            for i, name in zip(new.tolist(), _names(keys, new), strict=True):
                moments_s[i], numbers[i] = self.gone.get(name, (NEVER_S, 0.0))
        return moments_s, numbers

    def replaced(self, keys: Keys, moments_s: FloatArray, numbers: FloatArray, since_s: float) -> Memory:
        """Return the memory with what is known of `keys` now; what is gone stays if its moment is after `since_s`."""
        gone = self.gone
        if keys is not self.keys and keys != self.keys:
            lost: IntArray = np.flatnonzero(positions(self.keys, keys) < 0)
            last = zip(self.moments_s[lost].tolist(), self.numbers[lost].tolist(), strict=True)
            known = set(_names(keys, np.arange(len(keys)))) if gone else set()
            gone = {name: last_known for name, last_known in gone.items() if name not in known}
            gone |= dict(zip(_names(self.keys, lost), last, strict=True))
        if gone:
            gone = {name: last_known for name, last_known in gone.items() if last_known[0] > since_s}
        return Memory(keys, moments_s, numbers, gone)


def _names(keys: Keys, which: IntArray) -> Sequence[str | int]:
    if isinstance(keys, CodedKeys):
        codes: list[int] = keys.codes[which].tolist()
        return codes
    return [keys[i] for i in which.tolist()]


def nothing_of(keys: Keys) -> Memory:
    """Return a memory that knows of no moment."""
    return Memory(keys, np.full(len(keys), NEVER_S), np.zeros(len(keys)))
