"""What the two resource plugins score with: weighted resources, and how full a node would be.

Source: kube-scheduler v1.37 noderesources/resource_allocation.go, least_allocated.go, most_allocated.go and
requested_to_capacity_ratio.go (behaviour).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from scheduler.framework.intree_args import ResourceSpec
from scheduler.framework.plugin import MAX_NODE_SCORE
from scheduler.model.arrays import IntArray, Rows
from scheduler.model.requests import CPU, EPHEMERAL_STORAGE, MEMORY, NONZERO_RESOURCES, Amounts
from scheduler.model.views import NodeView

Weights = tuple[tuple[str, int], ...]


class Strategy(enum.StrEnum):
    LEAST_ALLOCATED = "LeastAllocated"
    MOST_ALLOCATED = "MostAllocated"
    REQUESTED_TO_CAPACITY_RATIO = "RequestedToCapacityRatio"


def weights_of(resources: Iterable[ResourceSpec]) -> Weights:
    return tuple((resource.name, resource.weight) for resource in resources)


@dataclass(frozen=True, slots=True)
class Fill:
    """One resource over the rows looked at, int64 (len(rows),): `requested` is what is used plus the Pod."""

    weight: int
    capacity: IntArray
    used: IntArray
    requested: IntArray


def fills(nodes: NodeView, rows: Rows, resources: Weights, amounts: Amounts, *, nonzero: bool) -> Iterator[Fill]:
    """Yield the resources that count, in order: known to a node, and asked for unless basic.

    Parameters
    ----------
    amounts
        What the Pod counts as, in millicores and whole units.
    nonzero
        Whether cpu and memory of placed Pods count with kube-scheduler's defaults.
    """
    for name, weight in resources:
        amount = amounts.get(name, 0)
        index = nodes.resources.get(name)
        if index is None or (amount == 0 and name not in (CPU, MEMORY, EPHEMERAL_STORAGE)):
            continue
        padded = nonzero and name in NONZERO_RESOURCES
        used = nodes.nonzero_requested[NONZERO_RESOURCES.index(name)] if padded else nodes.requested[index]
        yield Fill(weight, nodes.allocatable[index][rows], used[rows], used[rows] + amount)


def mean_score(strategy: Strategy, parts: Sequence[Fill], shape_table: IntArray, n: int) -> IntArray:
    """Return int64 (n,), 0..100: the weighted integer mean over the resources that a node has.

    Parameters
    ----------
    shape_table
        int64 (101,), the score of each whole per cent of use; only RequestedToCapacityRatio reads it.
    """
    if strategy is Strategy.REQUESTED_TO_CAPACITY_RATIO:
        return _shaped_mean(parts, shape_table, n)
    percent = _free_percent if strategy is Strategy.LEAST_ALLOCATED else _used_percent
    total = np.zeros(n, dtype=np.int64)
    for part in parts:
        total += percent(part) * part.weight
    everywhere = sum(part.weight for part in parts)
    lacking = [part for part in parts if not part.capacity.all()]
    if not lacking:
        return total // max(everywhere, 1)
    # What a node has none of scores 0 with LeastAllocated but 100 with MostAllocated: in both it is left out.
    weights = np.full(n, everywhere, dtype=np.int64)
    for part in lacking:
        none = part.capacity == 0
        weights[none] -= part.weight
        total[none] -= percent(part)[none] * part.weight
    return total // np.maximum(weights, 1)


def _shaped_mean(parts: Sequence[Fill], shape_table: IntArray, n: int) -> IntArray:
    """Return the mean rounded half up; upstream leaves a resource that scores 0 out of it, weight and all."""
    total = np.zeros(n, dtype=np.int64)
    weights = np.zeros(n, dtype=np.int64)
    for part in parts:
        score = shape_table[_used_percent(part)]
        weight = ((part.capacity > 0) & (score > 0)) * np.int64(part.weight)
        total += score * weight
        weights += weight
    np.maximum(weights, 1, out=weights)
    return (2 * total + weights) // (2 * weights)


def _free_percent(part: Fill) -> IntArray:
    """Return int64 (n,), 0..100, rounded down; 0 where more is requested than there is."""
    free = part.capacity - part.requested
    np.maximum(free, 0, out=free)
    free *= MAX_NODE_SCORE
    return free // divisor(part.capacity)


def _used_percent(part: Fill) -> IntArray:
    """Return int64 (n,), 0..100, rounded down; 100 where more is requested than there is."""
    capacity = divisor(part.capacity)
    return np.minimum(part.requested, capacity) * MAX_NODE_SCORE // capacity


def divisor(capacity: IntArray) -> IntArray:
    """Return `capacity` with 1 for 0."""
    return capacity if capacity.all() else np.maximum(capacity, 1)
