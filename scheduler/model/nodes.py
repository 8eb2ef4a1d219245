"""NodeTable: every node as one row of columns, node axis last.

A row belongs to a name for as long as the node exists or a Pod is bound to that name: Pods may be seen
before their node, and stay counted when it goes. A row whose node is gone is a tombstone (`alive` False).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

import numpy as np

from scheduler.model.arrays import BoolArray, HashArray, IntArray
from scheduler.model.hashes import hash64
from scheduler.model.images import ImageColumns
from scheduler.model.labels import LabelColumns
from scheduler.model.objects import Node, Taint
from scheduler.model.real_allocatable import RealFigures, real_figures
from scheduler.model.requests import NONZERO_RESOURCES, advertised_amounts
from scheduler.model.resource_columns import ResourceColumns, RowSums

_FIRST_CAPACITY = 64

K = TypeVar("K", bound=Hashable)


class NodeTable:
    """Columns over rows; only the owner thread may call the methods that change it.

    Attributes hold (…, capacity) arrays; `n_rows` of them are in use. `allocatable` and `requested` are
    int64 (n_columns, capacity) in millicores for cpu and whole units otherwise, by the resources that some node
    advertises (`resources`: name -> column); `nonzero_requested` is
    int64 (2, capacity), cpu and memory with kube-scheduler's defaults for containers that ask for nothing.
    `cut` is node -> what of its allocatable does not count as it stands.
    `publishes` is True where the owner says what is real; `withheld` is resource -> int64 (capacity,), how much more is
    advertised than that; `unread_figures` is node -> why what its owner says cannot be read.
    """

    def __init__(self) -> None:
        capacity = _FIRST_CAPACITY
        self.n_rows = 0
        self.generation = 0
        self.layout = 0
        self.names: list[str] = []
        self.objects: list[Node | None] = []
        self.alive: BoolArray = np.zeros(capacity, dtype=np.bool_)
        self.unschedulable: BoolArray = np.zeros(capacity, dtype=np.bool_)
        self.room = ResourceColumns(capacity)
        self._nonzero = RowSums(len(NONZERO_RESOURCES), capacity)
        self.n_pods: IntArray = np.zeros(capacity, dtype=np.int64)
        self.name_hash: HashArray = np.zeros(capacity, dtype=np.uint64)
        self.row_generation: IntArray = np.zeros(capacity, dtype=np.int64)
        self.labels = LabelColumns(capacity)
        self.images = ImageColumns()
        self.taints: dict[Taint, BoolArray] = {}
        self.features: dict[str, BoolArray] = {}
        self.publishes: BoolArray = np.zeros(capacity, dtype=np.bool_)
        self.withheld: dict[str, IntArray] = {}
        self.unread_figures: dict[str, str] = {}
        self.cut: dict[str, str] = {}
        self._row_of: dict[str, int] = {}
        self._free_rows: list[int] = []

    @property
    def capacity(self) -> int:
        return len(self.alive)

    @property
    def resources(self) -> Mapping[str, int]:
        return self.room.index

    @property
    def allocatable(self) -> IntArray:
        return self.room.allocatable

    @property
    def requested(self) -> IntArray:
        return self.room.requested

    @property
    def nonzero_requested(self) -> IntArray:
        return self._nonzero.cells

    @property
    def n_alive(self) -> int:
        return int(np.count_nonzero(self.alive))

    def row_of(self, name: str) -> int | None:
        return self._row_of.get(name)

    def ensure_row(self, name: str) -> int:
        """Return the row of `name`, taking a free one (a tombstone until a node comes) if it has none."""
        row = self._row_of.get(name)
        if row is not None:
            return row
        if self._free_rows:
            row = self._free_rows.pop()
            self.names[row] = name
        else:
            row = self.n_rows
            if row == self.capacity:
                self._grow(2 * self.capacity)
            self.names.append(name)
            self.objects.append(None)
            self.n_rows += 1
        self._row_of[name] = row
        self.name_hash[row] = hash64(name)
        self.layout += 1
        return row

    def release_row(self, row: int) -> None:
        """Give a row back once its node is gone and no Pod is left on it."""
        if self.objects[row] is None and self.n_pods[row] == 0:
            del self._row_of[self.names[row]]
            self.names[row] = ""
            self._free_rows.append(row)
            self.layout += 1

    def set_node(self, node: Node) -> int:
        """Add or replace a node; return its row.

        Raises
        ------
        InvalidObjectError
            A quantity cannot be read; the table is unchanged. With any other exception the node is gone.
        """
        amounts, cut = advertised_amounts(node.status.allocatable)
        row = self.ensure_row(node.metadata.name)
        previous = self.objects[row]
        try:
            self._set_columns(row, previous, node)
            left_out = self.room.advertise(row, amounts)
            self._publish(row, real_figures(node, amounts))
        except Exception:
            # Half of a node is none: its row becomes a tombstone.
            self.objects[row] = previous or node
            self.remove_node(node.metadata.name)
            raise
        if left_out:
            cut = f"{len(left_out)} resources, {left_out[0]!r} first, are beyond the number that can be counted"
        self._set_cut(node.metadata.name, cut)
        if not self.alive[row]:
            self.layout += 1
        self.objects[row] = node
        self.alive[row] = True
        self.unschedulable[row] = node.spec.unschedulable
        self.touch(row)
        return row

    def _set_columns(self, row: int, previous: Node | None, node: Node) -> None:
        if previous is None or previous.metadata.labels != node.metadata.labels:
            self.labels.set_row(row, node.metadata.labels or {})
        if previous is None or previous.spec.taints != node.spec.taints:
            self._mark(self.taints, row, node.spec.taints or [])
        if previous is None or previous.status.declared_features != node.status.declared_features:
            self._mark(self.features, row, node.status.declared_features or [])
        if previous is None or previous.status.images != node.status.images:
            self.images.set_row(row, node.status.images or [])

    def remove_node(self, name: str) -> None:
        """Leave a tombstone; Pods bound to the name stay counted on its row. Unknown names are ignored."""
        row = self._row_of.get(name)
        if row is None or self.objects[row] is None:
            return
        self.objects[row] = None
        self.alive[row] = False
        self.unschedulable[row] = False
        self.room.withdraw(row)
        self._set_cut(name, "")
        self.labels.set_row(row, {})
        self.images.set_row(row, [])
        self._mark(self.taints, row, [])
        self._mark(self.features, row, [])
        self._publish(row, RealFigures())
        self.touch(row)
        self.layout += 1
        self.release_row(row)

    def add_usage(self, row: int, requests: Mapping[str, int], nonzero: tuple[int, int], sign: int) -> None:
        """Add (sign 1) or take away (sign -1) what one Pod occupies."""
        self.room.add(row, requests, sign)
        for column, amount in enumerate(nonzero):
            self._nonzero.add(column, row, sign * amount)
        self.n_pods[row] += sign
        self.touch(row)

    def touch(self, row: int) -> None:
        self.generation += 1
        self.row_generation[row] = self.generation

    def rows_changed_since(self, generation: int) -> IntArray:
        """Return the rows that changed after `generation`, int64, ascending."""
        return np.flatnonzero(self.row_generation[: self.n_rows] > generation)

    def _mark(self, columns: dict[K, BoolArray], row: int, held: Iterable[K]) -> None:
        """Make True for this row just the columns of what it holds; a column that is False throughout goes."""
        for column in columns.values():
            column[row] = False
        for key in held:
            if key not in columns:
                columns[key] = np.zeros(self.capacity, dtype=np.bool_)
            columns[key][row] = True
        for key in [key for key, column in columns.items() if not column.any()]:
            del columns[key]

    def _set_cut(self, name: str, cut: str) -> None:
        if cut:
            self.cut[name] = cut
        else:
            self.cut.pop(name, None)

    def _publish(self, row: int, figures: RealFigures) -> None:
        """Take what the row's node publishes; a column that is 0 throughout goes."""
        self.publishes[row] = figures.is_published
        self.unread_figures.pop(self.names[row], None)
        if figures.problem:
            self.unread_figures[self.names[row]] = figures.problem
        for column in self.withheld.values():
            column[row] = 0
        for name, amount in figures.withheld.items():
            if name not in self.withheld:
                self.withheld[name] = np.zeros(self.capacity, dtype=np.int64)
            self.withheld[name][row] = amount
        for name in [name for name, column in self.withheld.items() if not column.any()]:
            del self.withheld[name]

    def _grow(self, capacity: int) -> None:
        def wider(array: np.ndarray) -> np.ndarray:
            grown = np.zeros((*array.shape[:-1], capacity), dtype=array.dtype)
            grown[..., : array.shape[-1]] = array
            return grown

        for name in (
            "alive", "unschedulable", "n_pods", "name_hash", "row_generation", "publishes",
        ):  # fmt: skip
            setattr(self, name, wider(getattr(self, name)))
        self.room.widen(capacity)
        self._nonzero.cells = wider(self._nonzero.cells)
        self.taints = {taint: wider(column) for taint, column in self.taints.items()}
        self.features = {feature: wider(column) for feature, column in self.features.items()}
        self.withheld = {name: wider(column) for name, column in self.withheld.items()}
        self.labels.grow(capacity)
