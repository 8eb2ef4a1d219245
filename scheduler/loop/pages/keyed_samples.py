"""Which samples of a signal with two keys the page /signals shows: cards, workloads on nodes, pairs of domains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from scheduler.model.arrays import BoolArray, IntArray
from scheduler.model.keyed import KeyedColumn
from scheduler.model.rules import ByKind, Signal
from scheduler.model.views import NodeView

MOST_SAMPLES: Final = 1_000
"""As many of 100,000 take the deciding thread 1.5 ms."""


class Samples(NamedTuple):
    """Samples in the order in which they are shown.

    names
        The nodes, or of pairs the domain from which they lead.
    keys
        The workload, or of pairs both domains; empty for cards, whose names are not kept.
    at
        int64, their indexes in the column.
    """

    names: list[str]
    keys: list[str]
    at: IntArray


def chosen_samples(signal: Signal, column: KeyedColumn, nodes: NodeView, node: str, limit: int) -> Samples:
    """Return the samples with the highest values, or those of one node; at most MOST_SAMPLES."""
    rows = _row_of_inner(column, nodes)
    candidates = np.flatnonzero(rows[column.inner] >= 0)
    if node:
        row = nodes.row_of(node)
        inner = -1 if row is None or row >= len(column.alignment) else int(column.alignment[row])
        candidates = candidates[column.inner[candidates] == inner]
    at = _highest(column, candidates, min(len(candidates) if node else limit, MOST_SAMPLES))
    names = [_name(signal, nodes, int(rows[inner])) for inner in column.inner[at]]
    return Samples(names, _keys(signal, column, names, at), at)


def tripped_samples(column: KeyedColumn, rule: str, at: IntArray) -> BoolArray:
    """Return bool, True where the rule's filter refuses the sample."""
    bits = column.trips.get(rule)
    return np.zeros(len(at), dtype=np.bool_) if bits is None else bits[at]


def _row_of_inner(column: KeyedColumn, nodes: NodeView) -> IntArray:
    """Return int64 (n_inner,): some live row of each inner key, -1 where there is none."""
    rows = np.full(column.n_inner, -1, dtype=np.int64)
    live = np.flatnonzero((column.alignment >= 0) & nodes.alive[: len(column.alignment)])
    rows[column.alignment[live]] = live
    return rows


def _highest(column: KeyedColumn, candidates: IntArray, limit: int) -> IntArray:
    values = -column.values[candidates]
    if limit < len(values):
        candidates = candidates[np.argpartition(values, limit)[:limit]]
        values = -column.values[candidates]
    ordered: IntArray = candidates[np.lexsort((candidates, values))]
    return ordered


def _name(signal: Signal, nodes: NodeView, row: int) -> str:
    if signal.by is not ByKind.PAIR:
        return nodes.names[row]
    node = nodes.node(row)
    return "" if node is None else (node.metadata.labels or {}).get(signal.label, "")


def _keys(signal: Signal, column: KeyedColumn, names: Sequence[str], at: IntArray) -> list[str]:
    if signal.by is ByKind.GPU:
        return []
    groups: list[int] = (np.searchsorted(column.starts, at, side="right") - 1).tolist()
    wanted = set(groups)
    name_of = {number: name for name, number in column.groups.items() if number in wanted}
    if signal.by is ByKind.WORKLOAD:
        return [name_of[group] for group in groups]
    return [f"{source} -> {name_of[group]}" for source, group in zip(names, groups, strict=True)]
