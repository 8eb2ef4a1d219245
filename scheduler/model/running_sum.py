"""RunningSum: the sum of columns most of which are the same from one time to the next."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_not

import numpy as np

from scheduler.model.arrays import IntArray


class RunningSum:
    """Sums up int64 columns by what has changed since the last time.

    Whole numbers add up to the same in any order, so a sum does not depend on what was summed before. Columns are told
    apart by identity, and held; none may be written again.
    """

    def __init__(self) -> None:
        self._columns: Sequence[IntArray] = ()
        self._sum: IntArray = np.zeros(0, dtype=np.int64)

    def of(self, columns: Sequence[IntArray]) -> IntArray:
        """Return the sum of one column or more, int64 (n,), all of one length: to be read at once, and not written."""
        changed = self._changed(columns)
        if changed is None:
            self._sum = columns[0].copy()
            for column in columns[1:]:
                self._sum += column
        else:
            for i in changed:
                self._sum -= self._columns[i]
                self._sum += columns[i]
        self._columns = columns
        return self._sum

    def _changed(self, columns: Sequence[IntArray]) -> list[int] | None:
        """Return the places whose column is another one; None where to add up all is cheaper, or all that can be."""
        known = self._columns
        if len(known) != len(columns) or known[0].shape != columns[0].shape:
            return None
        changed = [i for i, is_new in enumerate(map(is_not, known, columns)) if is_new]
        # Of each that has changed two columns are read.
        return changed if 2 * len(changed) < len(columns) else None
