"""PlacementHistory: Pods that were placed and have gone, for counts over a window of time.

Those that this process has seen leave, and those that had ended, Succeeded or Failed, and stood in the first list.
A trial changes nothing here. Times are UNIX time, as the API server writes them.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from scheduler.model.arrays import FloatArray, IntArray
from scheduler.model.nodes import NodeTable
from scheduler.model.pods import PodInfo

MAX_WINDOW_S = 86_400.0
"""No window is longer."""

CAPACITY = 50_000
"""Pods remembered, the earliest placed forgotten first: some 50 MB, with five labels each."""

_COLUMNS = 256
"""Columns kept; the one that was not asked for longest is forgotten first."""

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Departed:
    """A Pod that has left its node."""

    uid: str
    namespace: str
    labels: Mapping[str, str]
    node_name: str
    placed_s: float


class CountedPods(NamedTuple):
    """Which Pods to count: those with all these labels, at least one, in a namespace (None: in any)."""

    namespace: str | None
    labels: Labels

    def holds(self, pod: Departed | PodInfo) -> bool:
        if self.namespace is not None and pod.namespace != self.namespace:
            return False
        return all(pod.labels.get(key) == value for key, value in self.labels)


class _PlacedColumn:
    """When and where the counted Pods were placed, in the order in which they left."""

    __slots__ = ("n", "nodes", "placed_s")

    def __init__(self, placed_s: Sequence[float], nodes: Sequence[int]) -> None:
        self.n = len(placed_s)
        self.placed_s: FloatArray = np.array([*placed_s, 0.0])
        self.nodes: IntArray = np.array([*nodes, 0], dtype=np.int64)

    def add(self, placed_s: float, node: int, since_s: float) -> None:
        if self.n == len(self.placed_s):
            self._make_room(since_s)
        self.placed_s[self.n], self.nodes[self.n] = placed_s, node
        self.n += 1

    def _make_room(self, since_s: float) -> None:
        """Drop what no window reaches any more, and double where that is not half of it."""
        kept = np.flatnonzero(self.placed_s > since_s)
        size = len(self.placed_s) if 2 * len(kept) <= len(self.placed_s) else 2 * len(self.placed_s)
        placed_s, nodes = np.zeros(size), np.zeros(size, dtype=np.int64)
        self.n = len(kept)
        placed_s[: self.n], nodes[: self.n] = self.placed_s[kept], self.nodes[kept]
        self.placed_s, self.nodes = placed_s, nodes


class PlacementHistory:
    """Only the thread that owns the world may call what changes it.

    Pods are found by one label of theirs, for the keys that were ever asked about, and each question keeps a column: a
    Pod that leaves costs as much as there are questions about its labels, a count one pass over those it is about.
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._departed: dict[str, Departed] = {}
        self._by_time: list[tuple[float, str]] = []
        self._forgotten_s = -np.inf
        self._by_label: dict[str, dict[str, dict[str, Departed]]] = {}
        self._columns: dict[CountedPods, _PlacedColumn] = {}
        self._codes: dict[str, int] = {}
        self._rows: tuple[int, int, IntArray] = (-1, 0, np.zeros(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self._departed)

    def leave(self, pod: PodInfo, node_name: str, unix_s: float) -> None:
        """Remember a Pod that has left its node or has ended on it; one that is known stays as it is.

        Without a time of its own it counts as placed now, at `unix_s`.
        """
        placed_s = min(pod.bound_s, pod.started_s, unix_s)
        since_s = max(unix_s - MAX_WINDOW_S, self._forgotten_s)
        if pod.uid in self._departed or placed_s <= since_s:
            return
        if len(self._codes) > 2 * self._capacity:
            # Names of nodes that are long gone.
            self._codes.clear()
            self._columns.clear()
        one = Departed(pod.uid, pod.namespace, pod.labels, node_name, placed_s)
        self._departed[one.uid] = one
        insort(self._by_time, (placed_s, one.uid))
        for key, by_value in self._by_label.items():
            if key in one.labels:
                by_value.setdefault(one.labels[key], {})[one.uid] = one
        for whom, column in self._columns.items():
            if whom.holds(one):
                column.add(placed_s, self._code(node_name), since_s)
        self._forget(unix_s - MAX_WINDOW_S)

    def come_back(self, uid: str) -> None:
        """Forget a Pod that is on its node after all, as where a list had missed it."""
        one = self._departed.get(uid)
        if one is not None:
            self._drop(one)
            del self._by_time[bisect_left(self._by_time, (one.placed_s, uid))]
            self._columns.clear()

    def counts(self, whom: CountedPods, since_s: float, nodes: NodeTable) -> IntArray:
        """Return int64 (n_rows,): those who have gone and were placed on each row after `since_s`."""
        column = self._columns.pop(whom, None)
        if column is None:
            column = self._learned(whom)
        self._columns[whom] = column
        if len(self._columns) > _COLUMNS:
            del self._columns[next(iter(self._columns))]
        counted = column.nodes[: column.n][column.placed_s[: column.n] > max(since_s, self._forgotten_s)]
        rows = self._aligned(nodes)[counted]
        return np.bincount(rows[rows >= 0], minlength=nodes.n_rows)

    def passing(self, after_s: float, until_s: float) -> Sequence[Departed]:
        """Return those placed after `after_s`, and until `until_s`."""
        first = bisect_left(self._by_time, (np.nextafter(after_s, np.inf), ""))
        last = bisect_left(self._by_time, (np.nextafter(until_s, np.inf), ""))
        return [self._departed[uid] for _, uid in self._by_time[first:last]]

    def _learned(self, whom: CountedPods) -> _PlacedColumn:
        key, value = whom.labels[0]
        if key not in self._by_label:
            by_value = self._by_label[key] = {}
            for one in self._departed.values():
                if key in one.labels:
                    by_value.setdefault(one.labels[key], {})[one.uid] = one
        found = [one for one in self._by_label[key].get(value, {}).values() if whom.holds(one)]
        return _PlacedColumn([one.placed_s for one in found], [self._code(one.node_name) for one in found])

    def _forget(self, since_s: float) -> None:
        """Let go of those that no window reaches, and of the earliest beyond the capacity."""
        n = max(bisect_left(self._by_time, (since_s, "")), len(self._by_time) - self._capacity)
        for placed_s, uid in self._by_time[:n]:
            self._forgotten_s = max(self._forgotten_s, placed_s)
            self._drop(self._departed[uid])
        del self._by_time[:n]

    def _drop(self, one: Departed) -> None:
        del self._departed[one.uid]
        for key, by_value in self._by_label.items():
            value = one.labels.get(key)
            if value is not None:
                del by_value[value][one.uid]
                if not by_value[value]:
                    del by_value[value]

    def _code(self, node_name: str) -> int:
        return self._codes.setdefault(node_name, len(self._codes))

    def _aligned(self, nodes: NodeTable) -> IntArray:
        """Return int64 (n_codes,): the row of each node's name, -1 where it has none."""
        layout, n_codes, rows = self._rows
        if layout != nodes.layout or n_codes != len(self._codes):
            found = (nodes.row_of(name) for name in self._codes)
            rows = np.array([-1 if row is None else row for row in found], dtype=np.int64)
            self._rows = (nodes.layout, len(self._codes), rows)
        return rows
