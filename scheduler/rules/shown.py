"""What a page shows of a signal: the samples of some nodes, in order, and what filters say of them."""

from __future__ import annotations

import enum
import heapq
from typing import NamedTuple

import numpy as np

from scheduler.model.arrays import FloatArray, IntArray
from scheduler.model.keyed import KeyedColumn
from scheduler.model.signals import SignalColumn
from scheduler.model.views import NodeView


class Sort(enum.StrEnum):
    """The order of the nodes of a signal: the highest value first, the oldest sample, the name."""

    VALUE = "value"
    AGE = "age"
    NAME = "name"


class Verdict(enum.IntEnum):
    """What the filter of a rule says of one sample."""

    PASSES = 0
    BEYOND = 1
    UNMEASURED = 2


class Wanted(NamedTuple):
    """The first `limit` samples in this order; with a node those of that node alone."""

    node: str
    sort: Sort
    limit: int


class Shown(NamedTuple):
    """Samples in the order in which they are shown.

    names
        The nodes, or of pairs the domain from which they lead.
    keys
        Values of the node label that joins signal and nodes, workloads, or both domains of pairs; empty where the names
        say it all, and for cards, whose names are not kept.
    values, ages_s, pending
        float64 each; NaN: no usable sample, nothing pending is counted.
    at
        int64, the rows, or the indexes of `samples`.
    samples
        What `at` points into, where one node has several samples or other ones for other Pods; else None.
    """

    names: list[str]
    keys: list[str]
    values: FloatArray
    ages_s: FloatArray
    pending: FloatArray
    at: IntArray
    samples: KeyedColumn | None = None


def shown_nodes(column: SignalColumn, nodes: NodeView, wanted: Wanted) -> Shown | None:
    """Return nodes with their values, None where the column is not of these nodes."""
    if column.values.shape != nodes.alive.shape:
        return None
    rows = _chosen(column, nodes, wanted)
    return Shown(
        names=[nodes.names[row] for row in rows],
        keys=[],
        values=np.where(column.has_sample[rows], column.values[rows], np.nan),
        ages_s=np.full(len(rows), column.age_s) if column.row_lag_s is None else column.age_s + column.row_lag_s[rows],
        pending=np.full(len(rows), np.nan) if column.pending is None else column.pending[rows],
        at=rows,
    )


def label_of(nodes: NodeView, row: int, label: str) -> str:
    """Return the value of a node's label, empty where it has none."""
    node = nodes.node(row)
    return "" if node is None else (node.metadata.labels or {}).get(label, "")


def _chosen(column: SignalColumn, nodes: NodeView, wanted: Wanted) -> IntArray:
    """Return the rows to show, int64, in order; equal ones by name."""
    if wanted.node:
        row = nodes.row_of(wanted.node)
        return np.array([] if row is None or not nodes.alive[row] else [row], dtype=np.int64)
    rows = np.flatnonzero(nodes.alive)
    if wanted.sort is Sort.VALUE:
        # Highest first; -NaN sorts behind all numbers.
        keys = -np.where(column.has_sample[rows], column.expected[rows], np.nan)
    elif wanted.sort is Sort.AGE and column.row_lag_s is not None:
        keys = -column.row_lag_s[rows]
    else:
        names = nodes.names
        return np.array(heapq.nsmallest(wanted.limit, rows.tolist(), key=names.__getitem__), dtype=np.int64)
    first: IntArray = rows[np.argsort(keys, kind="stable")][: wanted.limit]
    return first
