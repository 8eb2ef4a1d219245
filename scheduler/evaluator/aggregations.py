"""Aggregations: the series of a vector by groups."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from scheduler.evaluator.functions import Evaluation, warn_of_quantile
from scheduler.evaluator.sums import exact_mean, exact_sum, quantile, variance
from scheduler.evaluator.values import (
    EMPTY,
    NAME,
    ExecutionError,
    Floats,
    LabelKey,
    Labels,
    Vector,
    label_key,
    make_vector,
    only,
    without,
)
from scheduler.promql.nodes import Aggregation

_REDUCERS: Final[Mapping[str, Callable[[Floats], float]]] = {
    "sum": lambda values: exact_sum(values.tolist()),
    "avg": lambda values: exact_mean(values.tolist()),
    # NaN counts only where there is nothing else, as in fmin and fmax.
    "min": lambda values: float(np.fmin.reduce(values)),
    "max": lambda values: float(np.fmax.reduce(values)),
    "count": lambda values: float(len(values)),
    "group": lambda _: 1.0,
    "stdvar": lambda values: variance(values.tolist()),
    "stddev": lambda values: float(np.sqrt(variance(values.tolist()))),
}
_SELECTING: Final = frozenset({"topk", "bottomk"})
# The greatest float64 below 2**63.
_INT64_LIMIT: Final = 9223372036854774784.0
AGGREGATIONS: Final = frozenset({*_REDUCERS, *_SELECTING, "quantile"})


def aggregate(evaluation: Evaluation, node: Aggregation) -> Vector:
    """Evaluate an aggregation."""
    operation = node.op
    parameter = None if node.param is None else evaluation.scalar(node.param)
    vector = evaluation.vector(node.expr)
    groups = _groups(vector, node)
    if operation in _SELECTING:
        return _chosen(vector, groups, parameter or 0.0, is_top=operation == "topk")
    reducer: Callable[[Floats], float]
    if operation == "quantile":
        q = math.nan if parameter is None else parameter
        warn_of_quantile(evaluation, q)
        reducer = functools.partial(quantile, q)
    else:
        reducer = _REDUCERS[operation]
    members = groups.values()
    return make_vector((labels for labels, _ in members), (reducer(vector.values[rows]) for _, rows in members))


def _groups(vector: Vector, node: Aggregation) -> dict[LabelKey, tuple[Labels, list[int]]]:
    """Return the labels and the rows of each group."""
    found: dict[LabelKey, tuple[Labels, list[int]]] = {}
    keep = _group_labels(node)
    for row, labels in enumerate(vector.labels):
        kept = keep(labels)
        found.setdefault(label_key(kept), (kept, []))[1].append(row)
    return found


def _group_labels(node: Aggregation) -> Callable[[Labels], Labels]:
    if not node.is_without:
        return lambda labels: only(labels, node.grouping)
    dropped = frozenset({*node.grouping, NAME})
    return lambda labels: without(labels, dropped)


def _chosen(vector: Vector, groups: Mapping[LabelKey, tuple[Labels, list[int]]], k: float, *, is_top: bool) -> Vector:
    """Return the `k` greatest or smallest of each group, best first, labels as they were."""
    if math.isnan(k):
        raise ExecutionError("Parameter value is NaN")
    if k < 1:
        return EMPTY
    if k >= _INT64_LIMIT:
        raise ExecutionError(f"Scalar value {k!r} overflows int64")
    n = int(min(k, len(vector)))
    # Turned around, so that the greatest is the best whichever is asked for.
    values = vector.values if is_top else -vector.values
    rows = [row for _, members in groups.values() for row in _best(values, members, n)]
    return make_vector((vector.labels[row] for row in rows), vector.values[rows])


def _best(values: Floats, rows: list[int], n: int) -> list[int]:
    """Return the rows of the `n` greatest values, NaN last.

    Among equals stay those that a binary heap of size n leaves: a Prometheus shows the same ones.
    """
    heap: list[int] = []
    for row in rows:
        if len(heap) < n:
            heap.append(row)
            _sift_up(heap, values)
        elif values[heap[0]] < values[row] or (math.isnan(values[heap[0]]) and not math.isnan(values[row])):
            heap[0] = row
            _sift_down(heap, values)
    return sorted(heap, key=lambda row: (math.isnan(values[row]), -values[row]))


def _is_worse(values: Floats, a: int, b: int) -> bool:
    return bool(math.isnan(values[a]) or values[a] < values[b])


def _sift_up(heap: list[int], values: Floats) -> None:
    i = len(heap) - 1
    while i and _is_worse(values, heap[i], heap[(i - 1) // 2]):
        parent = (i - 1) // 2
        heap[i], heap[parent] = heap[parent], heap[i]
        i = parent


def _sift_down(heap: list[int], values: Floats) -> None:
    i = 0
    while 2 * i + 1 < len(heap):
        child = 2 * i + 1
        if child + 1 < len(heap) and _is_worse(values, heap[child + 1], heap[child]):
            child += 1
        if not _is_worse(values, heap[child], heap[i]):
            return
        heap[i], heap[child] = heap[child], heap[i]
        i = child
