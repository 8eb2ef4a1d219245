"""Postings: which numbered things have something, by what they have."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

import numpy as np

from scheduler.model.arrays import IntArray, read_only

K = TypeVar("K", bound=Hashable)

_FEW = 64
"""Arrays of no more numbers are made each time."""

_NONE: IntArray = read_only(np.zeros(0, dtype=np.int64))


class Postings(Generic[K]):
    """Sets of numbers by key, given out as int64 arrays in no order; an array is made when it is asked for."""

    __slots__ = ("_arrays", "_numbers")

    def __init__(self) -> None:
        self._numbers: dict[K, set[int]] = {}
        self._arrays: dict[K, IntArray] = {}

    def add(self, key: K, number: int) -> None:
        numbers = self._numbers.get(key)
        if numbers is None:
            self._numbers[key] = {number}
            return
        numbers.add(number)
        self._arrays.pop(key, None)

    def discard(self, key: K, number: int) -> None:
        numbers = self._numbers[key]
        numbers.discard(number)
        self._arrays.pop(key, None)
        if not numbers:
            del self._numbers[key]

    def n_at(self, key: K) -> int:
        numbers = self._numbers.get(key)
        return 0 if numbers is None else len(numbers)

    def at(self, key: K) -> IntArray:
        """Return the numbers of a key. Not to be kept, nor written."""
        numbers = self._numbers.get(key)
        if numbers is None:
            return _NONE
        found = self._arrays.get(key)
        if found is None:
            found = np.fromiter(numbers, np.int64, len(numbers))
            if len(numbers) > _FEW:
                self._arrays[key] = found
        return found
