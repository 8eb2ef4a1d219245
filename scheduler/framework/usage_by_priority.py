"""UsageByPriority: what placed Pods of each priority occupy on each row, counted as Pods come and go."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from scheduler.framework.index import Index
from scheduler.model.arrays import IntArray
from scheduler.model.pods import PodInfo
from scheduler.model.views import NodeView


@dataclass(slots=True)
class _Usage:
    """What the Pods of one priority occupy: columns (n,) over the rows, with room for more rows than there are.

    `n_asking` are the Pods behind each column of `requested`: without any, the column goes.
    """

    n_pods: IntArray
    total: int = 0
    requested: dict[str, IntArray] = field(default_factory=dict)
    n_asking: dict[str, int] = field(default_factory=dict)


class UsageByPriority(Index):
    """What the placed Pods of each priority occupy, by row."""

    def __init__(self) -> None:
        self._width = 1
        self._by_priority: dict[int, _Usage] = {}

    def add_pod(self, pod: PodInfo, row: int) -> None:
        if row >= self._width:
            self._widen(row)
        usage = self._by_priority.get(pod.priority)
        if usage is None:
            usage = self._by_priority[pod.priority] = _Usage(self._zeros())
        usage.total += 1
        self._count(usage, pod, row, 1)

    def remove_pod(self, pod: PodInfo, row: int) -> None:
        usage = self._by_priority[pod.priority]
        usage.total -= 1
        if usage.total == 0:
            del self._by_priority[pod.priority]
        else:
            self._count(usage, pod, row, -1)

    def n_pods_below(self, priority: int, n_rows: int) -> IntArray:
        """Return int64 (n_rows,): the Pods on each row whose priority is lower."""
        counts: IntArray = np.zeros(n_rows, dtype=np.int64)
        for usage in self._below(priority):
            _add(counts, usage.n_pods, 1)
        return counts

    def left_below(self, priority: int, nodes: NodeView) -> tuple[IntArray, IntArray]:
        """Return what is requested, (n_resources, n_rows), and Pods, (n_rows,), without those of lower priority.

        Where there are none of lower priority, these are the columns of `nodes`.
        """
        below = self._below(priority)
        if not below:
            return nodes.requested, nodes.n_pods
        requested, n_pods = nodes.requested.copy(), nodes.n_pods.copy()
        for usage in below:
            _add(n_pods, usage.n_pods, -1)
            for name, column in usage.requested.items():
                _add(requested[nodes.resources[name]], column, -1)
        return requested, n_pods

    def _below(self, priority: int) -> list[_Usage]:
        return [usage for one, usage in self._by_priority.items() if one < priority]

    def _count(self, usage: _Usage, pod: PodInfo, row: int, sign: int) -> None:
        usage.n_pods[row] += sign
        for name, amount in pod.usage[0].items():
            column = usage.requested.get(name)
            if column is None:
                column = usage.requested[name] = self._zeros()
            column[row] += sign * amount
            usage.n_asking[name] = usage.n_asking.get(name, 0) + sign
            if not usage.n_asking[name]:
                del usage.requested[name], usage.n_asking[name]

    def _zeros(self) -> IntArray:
        return np.zeros(self._width, dtype=np.int64)

    def _widen(self, row: int) -> None:
        more = (1 << row.bit_length()) - self._width
        self._width += more
        for usage in self._by_priority.values():
            usage.n_pods = np.pad(usage.n_pods, (0, more))
            usage.requested = {name: np.pad(column, (0, more)) for name, column in usage.requested.items()}


def _add(total: IntArray, column: IntArray, sign: int) -> None:
    """Add a column to (n_rows,) in place; one of the two may be shorter."""
    width = min(len(column), len(total))
    total[:width] += sign * column[:width]
