"""UsageByPriority: what placed Pods of each priority occupy on each row, counted as Pods come and go."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from scheduler.framework.index import Index
from scheduler.model.arrays import IntArray
from scheduler.model.pods import PodInfo
from scheduler.model.resource_columns import SATURATED, where_known
from scheduler.model.views import NodeView

_FEW = 16
"""With amounts on so few rows, or on one row in so many, a dict takes less than a column."""


@dataclass(slots=True)
class RequestedByRow:
    """What is requested of one resource, by row: as a dict as long as few rows have any, else as a column (n,).

    A Pod may name tens of thousands of resources, which must not take a column each. `n_asking` are the Pods behind it.
    """

    n_asking: int = 0
    by_row: dict[int, int] = field(default_factory=dict)
    column: IntArray | None = None

    def add(self, row: int, amount: int, width: int) -> None:
        if self.column is None:
            total = self.by_row.pop(row, 0) + amount
            if total:
                self.by_row[row] = total
            if len(self.by_row) <= max(_FEW, width // _FEW):
                return
            self.column = np.zeros(width, dtype=np.int64)
            for known, total in self.by_row.items():
                self.column[known] = min(total, SATURATED)
            self.by_row = {}
        else:
            # Only where more than SATURATED is requested can it wrap, and there nobody reads it.
            self.column[row : row + 1] += amount

    def entries(self) -> dict[int, int]:
        """Return row -> amount of the rows that have any, however they are kept."""
        if self.column is None:
            return dict(self.by_row)
        return {row: int(self.column[row]) for row in np.flatnonzero(self.column).tolist()}

    def take_from(self, total: IntArray) -> None:
        """Subtract from (n_rows,) in place."""
        if self.column is not None:
            _add(total, self.column, -1)
            return
        for row, amount in self.by_row.items():
            if row < len(total):
                total[row] -= min(amount, SATURATED)


@dataclass(slots=True)
class _Usage:
    """What the Pods of one priority occupy: columns (n,) over the rows, with room for more rows than there are."""

    n_pods: IntArray
    total: int = 0
    requested: dict[str, RequestedByRow] = field(default_factory=dict)


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
            for name, column in nodes.resources.items():
                if name in usage.requested:
                    usage.requested[name].take_from(requested[column])
        return where_known(requested, nodes.requested), n_pods

    def _below(self, priority: int) -> list[_Usage]:
        return [usage for one, usage in self._by_priority.items() if one < priority]

    def _count(self, usage: _Usage, pod: PodInfo, row: int, sign: int) -> None:
        usage.n_pods[row] += sign
        for name, amount in pod.usage.requests.items():
            requested = usage.requested.get(name)
            if requested is None:
                requested = usage.requested[name] = RequestedByRow()
            requested.add(row, sign * amount, self._width)
            requested.n_asking += sign
            if not requested.n_asking:
                del usage.requested[name]

    def _zeros(self) -> IntArray:
        return np.zeros(self._width, dtype=np.int64)

    def _widen(self, row: int) -> None:
        more = (1 << row.bit_length()) - self._width
        self._width += more
        for usage in self._by_priority.values():
            usage.n_pods = np.pad(usage.n_pods, (0, more))
            for requested in usage.requested.values():
                if requested.column is not None:
                    requested.column = np.pad(requested.column, (0, more))


def _add(total: IntArray, column: IntArray, sign: int) -> None:
    """Add a column to (n_rows,) in place; one of the two may be shorter."""
    width = min(len(column), len(total))
    total[:width] += sign * column[:width]
