"""RowMemo: columns of which each row depends on nothing but that node's row, brought up to date row by row."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from scheduler.model.arrays import Rows
from scheduler.model.nodes import NodeTable

S = TypeVar("S", bound=np.generic)

_CAPACITY = 128
"""Columns kept: 8 bytes for each node, so 5 MB at 5,000 nodes."""

_PART = 4
"""Beyond a quarter of the rows changed, all are computed: picking rows costs more than it saves."""


class _Entry(NamedTuple):
    shape: tuple[int, int]
    generation: int
    column: NDArray[Any]


class RowMemo:
    """Columns by key, least recently used ones forgotten.

    Asking the memo or computing all rows again is the same as long as `compute` reads, for a row, only that row of the
    NodeTable and what the key says; so `decide` stays pure. Pods that ask for the same share a column, and from one
    decision to the next few rows change.
    """

    def __init__(self, capacity: int = _CAPACITY) -> None:
        self._capacity = capacity
        self._entries: dict[Hashable, _Entry] = {}

    def column(self, key: Hashable, table: NodeTable, compute: Callable[[Rows], NDArray[S]]) -> NDArray[S]:
        """Return (n_rows,), a column that is never written again.

        Parameters
        ----------
        compute
            Gives (len(rows),), always of one type, for a slice or int64 rows.
        """
        shape = table.layout, table.room.version
        entry = self._entries.pop(key, None)
        column = None if entry is None or entry.shape != shape else _renewed(entry, table, compute)
        if column is None:
            column = compute(slice(None))
        column.flags.writeable = False
        self._entries[key] = _Entry(shape, table.generation, column)
        if len(self._entries) > self._capacity:
            del self._entries[next(iter(self._entries))]
        return column


def _renewed(entry: _Entry, table: NodeTable, compute: Callable[[Rows], NDArray[S]]) -> NDArray[S] | None:
    """Return the column as it is now, None where too much has changed."""
    if entry.generation == table.generation:
        return entry.column
    changed = table.rows_changed_since(entry.generation)
    if len(changed) * _PART > table.n_rows:
        return None
    if len(changed) == 0:
        return entry.column
    column = entry.column.copy()
    column[changed] = compute(changed)
    return column
