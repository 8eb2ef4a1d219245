"""MatchingPods: how many placed Pods on each row match something, counted as Pods come and go."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scheduler.framework.index import Index
from scheduler.model.arrays import IntArray, read_only
from scheduler.model.label_selectors import Selector
from scheduler.model.pods import PodInfo

_CAPACITY = 256
"""Matches kept, least recently asked for forgotten: 8 bytes for each node, so 10 MB at 5,000 nodes."""


@dataclass(frozen=True, slots=True)
class Clause:
    """Pods of some namespaces (None: of all) whose labels match."""

    namespaces: frozenset[str] | None
    selector: Selector

    def holds(self, pod: PodInfo) -> bool:
        return (self.namespaces is None or pod.namespace in self.namespaces) and self.selector.matches(pod.labels)


@dataclass(frozen=True, slots=True)
class Match:
    """Pods for which all clauses hold; `is_alive` leaves out those that are being deleted."""

    clauses: tuple[Clause, ...]
    is_alive: bool = False

    def holds(self, pod: PodInfo) -> bool:
        if self.is_alive and pod.pod.metadata.deletion_timestamp is not None:
            return False
        return all(clause.holds(pod) for clause in self.clauses)


class MatchingPods(Index):
    """A column of counts for each Match asked for: the first question looks at all Pods, later ones at none."""

    def __init__(self, capacity: int = _CAPACITY) -> None:
        self._capacity = capacity
        self._pods: dict[str, tuple[PodInfo, int]] = {}
        self._counts: dict[Match, IntArray] = {}

    def add_pod(self, pod: PodInfo, row: int) -> None:
        self._pods[pod.uid] = (pod, row)
        self._count(pod, row, 1)

    def remove_pod(self, pod: PodInfo, row: int) -> None:
        del self._pods[pod.uid]
        self._count(pod, row, -1)

    def on_rows(self, match: Match, n_rows: int) -> IntArray:
        """Return int64 (n_rows,): the Pods on each row that match. Not to be kept: it changes as Pods come and go."""
        known = self._counts.pop(match, None)
        counts = _wide_enough(self._counted(match) if known is None else known, n_rows - 1)
        self._counts[match] = counts
        if len(self._counts) > self._capacity:
            del self._counts[next(iter(self._counts))]
        return read_only(counts[:n_rows])

    def _counted(self, match: Match) -> IntArray:
        rows = [row for pod, row in self._pods.values() if match.holds(pod)]
        return np.bincount(np.array(rows, dtype=np.int64)).astype(np.int64)

    def _count(self, pod: PodInfo, row: int, sign: int) -> None:
        for match, counts in self._counts.items():
            if match.holds(pod):
                wide = _wide_enough(counts, row)
                self._counts[match] = wide
                wide[row] += sign


def _wide_enough(counts: IntArray, row: int) -> IntArray:
    if row < len(counts):
        return counts
    wider = np.zeros(max(2 * len(counts), row + 1), dtype=np.int64)
    wider[: len(counts)] = counts
    return wider
