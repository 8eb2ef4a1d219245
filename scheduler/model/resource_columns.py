"""What nodes have, and what the Pods on them request, of each resource that some node advertises."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from scheduler.model.arrays import IntArray
from scheduler.model.requests import BASIC

SATURATED = 2**62
"""The most that a sum shows: far beyond what any node advertises, and adding a Pod to it can't wrap."""

MAX_NAMES = 1_024
"""So many resources have columns: 16 bytes each for every node."""

_FIRST_HEIGHT = 8


class RowSums:
    """Sums by column and row, int64 (n_columns, n_rows), that neither wrap nor forget.

    A cell beyond SATURATED shows that; its true sum stands beside, so that taking away what was added gives what was
    there before. A thousand Pods, each asking for as much as a number can say, may be bound to one node by their owner.
    """

    def __init__(self, n_columns: int, capacity: int) -> None:
        self.cells: IntArray = np.zeros((n_columns, capacity), dtype=np.int64)
        self._beyond: dict[tuple[int, int], int] = {}

    def add(self, column: int, row: int, amount: int) -> None:
        self.put(column, row, self.total(column, row) + amount)

    def total(self, column: int, row: int) -> int:
        """Return the true sum."""
        if self._beyond:
            beyond = self._beyond.get((column, row))
            if beyond is not None:
                return beyond
        return self.cells.item(column, row)

    def put(self, column: int, row: int, total: int) -> None:
        if total > SATURATED:
            self._beyond[column, row] = total
            total = SATURATED
        elif self._beyond:
            self._beyond.pop((column, row), None)
        self.cells[column, row] = total

    def take_column(self, column: int) -> dict[int, int]:
        """Return row -> sum of the rows that have any, and make the column zero."""
        rows = np.flatnonzero(self.cells[column]).tolist()
        found = {row: self.total(column, row) for row in rows}
        for row in rows:
            self.put(column, row, 0)
        return found


class ResourceColumns:
    """Columns over rows by resource; only cpu, memory, ephemeral-storage and Pods have one before any node.

    `index` is name -> column; `version` grows whenever a name gains or loses its column. What Pods request of
    resources that nobody advertises takes no column: a Pod may name tens of thousands. It is counted beside, and has a
    column as soon as a node advertises it.
    """

    def __init__(self, capacity: int) -> None:
        self.index: dict[str, int] = {name: i for i, name in enumerate(BASIC)}
        self.version = 0
        self._allocatable: IntArray = np.zeros((_FIRST_HEIGHT, capacity), dtype=np.int64)
        self._requested = RowSums(_FIRST_HEIGHT, capacity)
        self._n_columns = len(BASIC)
        self._unused: list[int] = []
        self._names_of: dict[int, tuple[str, ...]] = {}
        self._n_advertising: dict[str, int] = dict.fromkeys(BASIC, 1)
        self._without_column: dict[str, dict[int, int]] = {}

    @property
    def allocatable(self) -> IntArray:
        """(n_columns, capacity); what is between the columns in use is zero."""
        return self._allocatable[: self._n_columns]

    @property
    def requested(self) -> IntArray:
        """(n_columns, capacity), at most SATURATED."""
        return self._requested.cells[: self._n_columns]

    def advertise(self, row: int, amounts: Mapping[str, int]) -> list[str]:
        """Take what a node has, in place of what it had; return the names for which there is no room."""
        before, self._names_of[row] = self._names_of.get(row, ()), tuple(amounts)
        left_out = [name for name in amounts if not self._count(name)]
        self._allocatable[:, row] = 0
        for name, amount in amounts.items():
            if name in self.index:
                self._allocatable[self.index[name], row] = amount
        if left_out:
            self._names_of[row] = tuple(name for name in amounts if name in self.index)
        self._release(before)
        return left_out

    def withdraw(self, row: int) -> None:
        """Forget what a node had that is gone."""
        self._allocatable[:, row] = 0
        self._release(self._names_of.pop(row, ()))

    def add(self, row: int, requests: Mapping[str, int], sign: int) -> None:
        """Add (sign 1) or take away (sign -1) what one Pod requests."""
        for name, amount in requests.items():
            column = self.index.get(name)
            if column is not None:
                self._requested.add(column, row, sign * amount)
            elif amount:
                self._add_without_column(name, row, sign * amount)

    def widen(self, capacity: int) -> None:
        self._resize(len(self._allocatable), capacity)

    def _add_without_column(self, name: str, row: int, amount: int) -> None:
        by_row = self._without_column.setdefault(name, {})
        total = by_row.get(row, 0) + amount
        if total:
            by_row[row] = total
            return
        by_row.pop(row, None)
        if not by_row:
            del self._without_column[name]

    def _count(self, name: str) -> bool:
        """Note that one more node advertises a resource; return False if there is no room for its column."""
        if name not in self.index and not self._begin(name):
            return False
        self._n_advertising[name] += 1
        return True

    def _begin(self, name: str) -> bool:
        """Give a resource its column, with what Pods request of it already."""
        if len(self.index) >= MAX_NAMES:
            return False
        column = self._unused.pop() if self._unused else self._n_columns
        if column == len(self._allocatable):
            self._resize(2 * column, self._allocatable.shape[1])
        self.index[name] = column
        self._n_columns = max(self._n_columns, column + 1)
        self._n_advertising[name] = 0
        for row, total in self._without_column.pop(name, {}).items():
            self._requested.put(column, row, total)
        self.version += 1
        return True

    def _release(self, names: Iterable[str]) -> None:
        """Count one node less for each name; take its column from one that nobody advertises any more."""
        gone = []
        for name in names:
            self._n_advertising[name] -= 1
            if not self._n_advertising[name]:
                gone.append(name)
        for name in gone:
            del self._n_advertising[name]
            held = self._requested.take_column(self.index.pop(name))
            if held:
                self._without_column[name] = held
        if gone:
            self.version += 1
            self._n_columns = max(self.index.values()) + 1
            self._unused = sorted(set(range(self._n_columns)).difference(self.index.values()), reverse=True)
            if _FIRST_HEIGHT < 4 * self._n_columns < len(self._allocatable):
                self._resize(2 * self._n_columns, self._allocatable.shape[1])

    def _resize(self, height: int, capacity: int) -> None:
        self._allocatable = _resized(self._allocatable, height, capacity)
        self._requested.cells = _resized(self._requested.cells, height, capacity)


def _resized(columns: IntArray, height: int, capacity: int) -> IntArray:
    resized = np.zeros((height, capacity), dtype=np.int64)
    kept, width = min(height, columns.shape[0]), min(capacity, columns.shape[1])
    resized[:kept, :width] = columns[:kept, :width]
    return resized


def where_known(left: IntArray, requested: IntArray) -> IntArray:
    """Return what is left of sums once some Pods have gone, SATURATED where what there was is beyond counting.

    Both are int64 (n_columns, n_rows); `left` is written.
    """
    if requested.max(initial=0) >= SATURATED:
        left[requested >= SATURATED] = SATURATED
    return left
