"""RowCounts: how often each of many numbered things is on each row, as columns that follow in O(change)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

import numpy as np

from scheduler.model.arrays import IntArray

_FEW = 32
"""Of so many numbers the rows are looked up; beyond, all pairs are looked at, in columns."""

_NOWHERE: Mapping[int, int] = {}


class RowCounts:
    """Pairs of a number and a row with a count above zero, int64 (3, n_pairs) in no order."""

    __slots__ = ("_at", "_n_pairs", "_pairs")

    def __init__(self) -> None:
        self._at: dict[int, dict[int, int]] = {}
        self._n_pairs = 0
        self._pairs: IntArray = np.zeros((3, 64), dtype=np.int64)

    def add(self, number: int, row: int) -> None:
        rows = self._at.setdefault(number, {})
        at = rows.get(row)
        if at is not None:
            self._pairs[2, at] += 1
            return
        at = self._n_pairs
        if at == self._pairs.shape[1]:
            self._pairs = np.concatenate((self._pairs, np.zeros_like(self._pairs)), axis=1)
        pairs = self._pairs
        pairs[0, at], pairs[1, at], pairs[2, at] = number, row, 1
        rows[row] = at
        self._n_pairs += 1

    def remove(self, number: int, row: int) -> bool:
        """Take one away; return whether the number is on no row any more."""
        rows, pairs = self._at[number], self._pairs
        at = rows[row]
        pairs[2, at] -= 1
        if pairs[2, at]:
            return False
        del rows[row]
        if not rows:
            del self._at[number]
        self._n_pairs -= 1
        if at != self._n_pairs:
            pairs[:, at] = pairs[:, self._n_pairs]
            self._at[int(pairs[0, at])][int(pairs[1, at])] = at
        return not rows

    def of(self, number: int) -> dict[int, int]:
        """Return row -> count of one number."""
        return {row: int(self._pairs[2, at]) for row, at in self._at.get(number, _NOWHERE).items()}

    def on_rows(self, number: int) -> tuple[IntArray, IntArray]:
        """Return int64 rows, each once, and the counts there of one number."""
        there = self._at.get(number, _NOWHERE)
        pairs = self._pairs[:, np.fromiter(there.values(), np.int64, len(there))]
        return pairs[1], pairs[2]

    def summed(self, numbers: IntArray, amounts: IntArray, n_rows: int) -> IntArray:
        """Return int64 (n_sums, n_rows): on each row the amounts of the numbers that are there, as often as they are.

        Wider where there is something on further rows.

        Parameters
        ----------
        numbers
            int64 (n,), each once.
        amounts
            int64 (n_sums, n).
        """
        amounts, (_, rows, counts) = self._pairs_of(numbers, amounts)
        width = max(n_rows, int(rows.max(initial=-1)) + 1)
        # Weights make bincount add in floating point: exact below 2**53, far beyond any weight times all Pods.
        sums = [np.bincount(rows, weights=each * counts, minlength=width) for each in amounts]
        return np.array(sums, dtype=np.int64).reshape(len(amounts), width)

    def _pairs_of(self, numbers: IntArray, amounts: IntArray) -> tuple[IntArray, IntArray]:
        """Return the pairs with one of the numbers, and its amounts for each."""
        if len(numbers) <= _FEW:
            there = [self._at.get(number, _NOWHERE) for number in numbers.tolist()]
            lengths = [len(rows) for rows in there]
            found = np.fromiter(chain.from_iterable(rows.values() for rows in there), np.int64, sum(lengths))
            return np.repeat(amounts, lengths, axis=1), self._pairs[:, found]
        pairs = self._pairs[:, : self._n_pairs]
        by_number = np.full(int(max(numbers.max(), pairs[0].max(initial=0))) + 1, -1, dtype=np.int64)
        by_number[numbers] = np.arange(len(numbers))
        places = by_number[pairs[0]]
        is_asked = places >= 0
        places = places[is_asked]
        return amounts[:, places], pairs[:, is_asked]
