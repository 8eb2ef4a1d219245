"""NodeView: the NodeTable as plugins may see it, cut to the rows in use and read-only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from scheduler.model.arrays import BoolArray, IntArray, read_only
from scheduler.model.nodes import NodeTable
from scheduler.model.objects import Node, Taint
from scheduler.model.structs import Requirement


class NodeView:
    """Read-only columns (…, n_rows) of a NodeTable; see there for units."""

    def __init__(self, table: NodeTable) -> None:
        n = self.n_rows = table.n_rows
        self._table = table
        self.alive: BoolArray = read_only(table.alive[:n])
        self.unschedulable: BoolArray = read_only(table.unschedulable[:n])
        self.allocatable: IntArray = read_only(table.allocatable[:, :n])
        self.requested: IntArray = read_only(table.requested[:, :n])
        self.nonzero_requested: IntArray = read_only(table.nonzero_requested[:, :n])
        self.n_pods: IntArray = read_only(table.n_pods[:n])
        self.name_hash = read_only(table.name_hash[:n])
        self.publishes: BoolArray = read_only(table.publishes[:n])

    @property
    def n_alive(self) -> int:
        return self._table.n_alive

    @property
    def layout(self) -> int:
        """Grows whenever a name gains or loses its row or its node; alignments hold while it stands."""
        return self._table.layout

    @property
    def names(self) -> Sequence[str]:
        return self._table.names

    @property
    def resources(self) -> Mapping[str, int]:
        """Resource name -> index of the first axis; a resource that no node advertises is not in it."""
        return self._table.resources

    def row_of(self, name: str) -> int | None:
        return self._table.row_of(name)

    def node(self, row: int) -> Node | None:
        return self._table.objects[row]

    def label_matches(self, requirement: Requirement) -> BoolArray:
        """Return bool (n_rows,), True where the node's labels satisfy a valid requirement."""
        return self._table.labels.matches(requirement, self.n_rows)

    def label_codes(self, key: str) -> IntArray | None:
        """Return int32 (n_rows,) value codes of a label, -1 where absent; None where no node ever had it."""
        codes = self._table.labels.codes(key)
        return None if codes is None else read_only(codes[: self.n_rows])

    @property
    def n_label_keys(self) -> int:
        """How many label keys any node ever had; never less than before."""
        return self._table.labels.n_keys

    def label_keys(self) -> Iterable[str]:
        """Return the label keys that any node ever had."""
        return self._table.labels.keys()

    def has_label_key(self, key: str) -> bool:
        """Return whether any node ever had a label."""
        return self._table.labels.codes(key) is not None

    def label_values(self, key: str) -> Mapping[str, int]:
        """Return value -> code of a label."""
        return self._table.labels.values(key)

    def taints(self) -> Iterator[tuple[Taint, BoolArray]]:
        """Yield each distinct taint with bool (n_rows,), True where a node has it."""
        for taint, column in self._table.taints.items():
            yield taint, column[: self.n_rows]

    def declares(self, feature: str) -> BoolArray:
        """Return bool (n_rows,), True where the node declares the feature."""
        column = self._table.features.get(feature)
        return np.zeros(self.n_rows, dtype=np.bool_) if column is None else read_only(column[: self.n_rows])

    def withheld(self, resource: str) -> IntArray | None:
        """Return int64 (n_rows,), how much more of a resource is advertised than is real; None where nothing is."""
        column = self._table.withheld.get(resource)
        return None if column is None else read_only(column[: self.n_rows])

    def image(self, name: str) -> tuple[int, IntArray] | None:
        """Return (size in bytes, int64 rows that hold the image), None where no node does."""
        return self._table.images.find(name)

    def rows_changed_since(self, generation: int) -> IntArray:
        """Return int64 rows whose node or Pods changed after `generation`, ascending."""
        return self._table.rows_changed_since(generation)
