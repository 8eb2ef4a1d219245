"""What the CSINodes say, as columns: limits, drivers that are installed, plugins that drivers have taken over.

A change to one CSINode costs one row.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from scheduler.model.arrays import BoolArray, IntArray
from scheduler.model.snapshot import Snapshot
from scheduler.model.views import NodeView
from scheduler.model.volumes import CSINode
from scheduler.plugins.volumes.csi_migration import migrated_plugins

NO_LIMIT = -1


class RowColumns:
    """Columns by name with an int64 entry per row, each made when first written to; `empty` where nothing is."""

    def __init__(self, empty: int) -> None:
        self._empty = empty
        self._n_rows = 0
        self._columns: dict[str, IntArray] = {}

    def of(self, name: str) -> IntArray:
        """Return int64 (n_rows,)."""
        column = self._columns.get(name)
        return np.full(self._n_rows, self._empty, dtype=np.int64) if column is None else column[: self._n_rows]

    def all(self) -> Iterable[IntArray]:
        return (column[: self._n_rows] for column in self._columns.values())

    def set(self, name: str, row: int, value: int) -> None:
        self._column(name)[row] = value

    def add(self, name: str, row: int, amount: int) -> None:
        self._column(name)[row] += amount

    def clear(self, row: int) -> None:
        for column in self._columns.values():
            column[row] = self._empty

    def widen(self, n_rows: int) -> None:
        self._n_rows = n_rows
        for name, column in self._columns.items():
            if len(column) < n_rows:
                self._columns[name] = self._fresh(2 * n_rows)
                self._columns[name][: len(column)] = column

    def _column(self, name: str) -> IntArray:
        if name not in self._columns:
            self._columns[name] = self._fresh(self._n_rows)
        return self._columns[name]

    def _fresh(self, capacity: int) -> IntArray:
        return np.full(capacity, self._empty, dtype=np.int64)


class RowNames:
    """Notices which rows stand for another node than before."""

    def __init__(self) -> None:
        self._layout = -1
        self._names: list[str] = []

    def changed(self, nodes: NodeView) -> list[int]:
        """Return the rows that were taken, given up or given to another since the last call; all at the first."""
        if nodes.layout == self._layout:
            return []
        before = [*self._names, *[""] * (nodes.n_rows - len(self._names))]
        self._layout, self._names = nodes.layout, list(nodes.names)
        return [row for row, (old, new) in enumerate(zip(before, self._names, strict=True)) if old != new]


class CSINodes:
    """Columns of all CSINodes; `follow` brings them up to date, they are int64 or bool (n_rows,)."""

    def __init__(self) -> None:
        self._seen = 0
        self._names = RowNames()
        self._limits = RowColumns(NO_LIMIT)
        self._installed = RowColumns(0)
        self._migrated = RowColumns(0)
        self._there = RowColumns(0)

    def follow(self, snapshot: Snapshot) -> None:
        """Take in what has changed since the last call."""
        nodes, catalog = snapshot.nodes, snapshot.catalog
        changed = catalog.changed_since(CSINode, self._seen)
        self._seen = catalog.generation(CSINode)
        for columns in (self._limits, self._installed, self._migrated, self._there):
            columns.widen(nodes.n_rows)
        rows = set(self._names.changed(nodes))
        if changed is None:
            rows = set(range(nodes.n_rows))
        else:
            rows |= {row for _, name in changed if (row := nodes.row_of(name)) is not None}
        for row in rows:
            self._set(row, catalog.get(CSINode, nodes.names[row]))

    def is_there(self) -> BoolArray:
        """Return where there is a CSINode."""
        found: BoolArray = self._there.of("") != 0
        return found

    def limit(self, driver: str) -> IntArray:
        """Return how many volumes of a driver may be attached, NO_LIMIT where nothing is said."""
        return self._limits.of(driver)

    def has_limits(self) -> BoolArray:
        """Return where there is a limit for any driver."""
        found = np.zeros(len(self.is_there()), dtype=np.bool_)
        for limit in self._limits.all():
            found |= limit != NO_LIMIT
        return found

    def installed(self, driver: str) -> BoolArray:
        """Return where the driver is listed, with a limit or without."""
        found: BoolArray = self._installed.of(driver) != 0
        return found

    def migrated(self, plugin: str) -> BoolArray:
        """Return where a CSI driver has taken over a plugin that was built into Kubernetes."""
        found: BoolArray = self._migrated.of(plugin) != 0
        return found

    def _set(self, row: int, node: CSINode | None) -> None:
        for columns in (self._limits, self._installed, self._migrated, self._there):
            columns.clear(row)
        if node is None:
            return
        self._there.set("", row, 1)
        for plugin in migrated_plugins(node):
            self._migrated.set(plugin, row, 1)
        for driver in node.spec.drivers or ():
            self._installed.set(driver.name, row, 1)
            if driver.allocatable is not None and driver.allocatable.count is not None:
                self._limits.set(driver.name, row, driver.allocatable.count)
