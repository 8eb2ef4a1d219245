"""An order of slots that is kept while single slots come, go and change."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence

import numpy as np

from scheduler.model.arrays import BoolArray, IntArray

_MOST_SINGLY = 32
"""Slots that are put in their places one by one; more are sorted in with all others."""


class Order:
    """Slots in ascending order of some columns: one that changes costs a look-up and a copy, no sort."""

    def __init__(self) -> None:
        self.slots: IntArray = np.zeros(0, dtype=np.int64)

    def update(self, columns: Sequence[IntArray], is_there: BoolArray, changed: Collection[int]) -> None:
        """Take in which slots are there and have changed; the first column is what counts first.

        Columns are int64, `is_there` bool (capacity,); of slots that are not named nothing may have changed.
        """
        if len(changed) > _MOST_SINGLY:
            slots = np.flatnonzero(is_there)
            self.slots = slots[np.lexsort([column[slots] for column in reversed(columns)])]
            return

        def place(slot: int) -> tuple[int, ...]:
            return tuple(int(column[slot]) for column in columns)

        is_changed = np.zeros(len(is_there), dtype=np.bool_)
        is_changed[list(changed)] = True
        self.slots = self.slots[~is_changed[self.slots]]
        for slot in changed:
            if is_there[slot]:
                at = bisect_left(self.slots, place(slot), key=place)
                self.slots = np.insert(self.slots, at, slot)
