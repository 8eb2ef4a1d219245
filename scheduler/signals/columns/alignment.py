"""From the keys of a signal to the rows of the NodeTable.

An alignment is int64 (n_rows,): per row the index of its key, -1 where it has none. It is made once per set of
keys and kept for as long as names, nodes and labels stand where they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from scheduler.model.arrays import BoolArray, IntArray
from scheduler.model.rules import Signal
from scheduler.model.views import NodeView

NO_KEY: Final = -1
_MAX_ALIGNMENTS: Final = 64


@dataclass(frozen=True, slots=True)
class _LabelState:
    """The codes of one label as they were; a code means what it meant while the mapping is this one, and as long."""

    codes: IntArray | None
    values: Mapping[str, int]
    n_values: int

    def holds(self, nodes: NodeView, label: str) -> bool:
        values, codes = nodes.label_values(label), nodes.label_codes(label)
        if values is not self.values or len(values) != self.n_values or codes is None or self.codes is None:
            return codes is None and self.codes is None
        return np.array_equal(codes, self.codes)


class RowAligner:
    """Alignments for the nodes last looked at; owned by the deciding thread."""

    def __init__(self) -> None:
        self._layout = -1
        self._names: Sequence[str] = ()
        self._alive: BoolArray = np.zeros(0, dtype=np.bool_)
        self._by_identity: dict[int, IntArray] = {}
        self._labels: dict[str, _LabelState] = {}

    @property
    def alive(self) -> BoolArray:
        """Bool (n_rows,), True where a node stands behind the row."""
        return self._alive

    def look(self, nodes: NodeView, labels: Iterable[str]) -> bool:
        """Take note of the nodes; return whether any alignment made before is void."""
        has_moved = nodes.layout != self._layout
        if has_moved:
            self._layout = nodes.layout
            self._names = list(nodes.names[: nodes.n_rows])
            self._alive = nodes.alive.copy()
            self._by_identity.clear()
        for label in labels:
            state = self._labels.get(label)
            if has_moved or state is None or not state.holds(nodes, label):
                codes, values = nodes.label_codes(label), nodes.label_values(label)
                self._labels[label] = _LabelState(None if codes is None else codes.copy(), values, len(values))
                has_moved = True
        return has_moved

    def of_nodes(self, generation: int, names: Sequence[str]) -> IntArray:
        """Align the names of one generation of NodeIdentity; a row without a node has no key."""
        alignment = self._by_identity.get(generation)
        if alignment is None:
            position = {name: i for i, name in enumerate(names)}
            found = map(position.get, self._names, repeat(NO_KEY))
            alignment = np.fromiter(found, dtype=np.int64, count=len(self._names))
            alignment[~self._alive] = NO_KEY
            if len(self._by_identity) >= _MAX_ALIGNMENTS:
                self._by_identity.clear()
            self._by_identity[generation] = alignment
        return alignment

    def of_label(self, label: str, values: Sequence[str]) -> IntArray:
        """Align values of a node label."""
        state = self._labels.get(label)
        if state is None or state.codes is None:
            return np.full(len(self._names), NO_KEY, dtype=np.int64)
        # One entry more: code -1, a node without the label, reads the last.
        key_of_code = np.full(state.n_values + 1, NO_KEY, dtype=np.int64)
        for i, value in enumerate(values):
            code = state.values.get(value)
            if code is not None:
                key_of_code[code] = i
        aligned: IntArray = key_of_code[state.codes]
        return aligned

    def of_cluster(self) -> IntArray:
        """Align the one value of the cluster with every row."""
        return np.zeros(len(self._names), dtype=np.int64)

    def of_names(self, signal: Signal, generation: int, names: Sequence[str]) -> IntArray:
        """Align what the series of a signal name: values of its label, or nodes where it has none."""
        return self.of_label(signal.label, names) if signal.label else self.of_nodes(generation, names)


def spread(values: NDArray[Any], alignment: IntArray, default: float | bool) -> NDArray[Any]:
    """Return `values` by row, `default` where a row has no key; read-only, since cycles share it."""
    rows: NDArray[Any] = np.append(values, np.array([default], dtype=values.dtype))[alignment]
    rows.flags.writeable = False
    return rows
