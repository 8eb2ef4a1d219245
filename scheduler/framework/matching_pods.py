"""MatchingPods: how many placed Pods on each row match something, counted as Pods come and go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from scheduler.framework.index import Index
from scheduler.framework.pod_groups import (
    AlikePods,
    Likeness,
    Place,
    PodGroups,
    likeness_of,
    places_of_group,
    places_of_match,
)
from scheduler.framework.pod_match import PodMatch, Work
from scheduler.model.arrays import IntArray, read_only
from scheduler.model.pods import PodInfo

_K = TypeVar("_K")
_V = TypeVar("_V")

_CAPACITY = 256
"""Matches kept, least recently asked for forgotten: 8 bytes for each node, so 10 MB at 5,000 nodes."""

_ONE = np.ones((1, 1), dtype=np.int64)


class _Column:
    """int64 counts by row, as wide as the highest row needed so far; another `version` with each change."""

    __slots__ = ("counts", "version")

    def __init__(self, counts: IntArray) -> None:
        self.counts = counts
        self.version = object()

    def add(self, row: int, n: int) -> None:
        self.widen(row + 1)
        self.counts[row] += n
        self.version = object()

    def widen(self, n_rows: int) -> None:
        if n_rows > len(self.counts):
            wider = np.zeros(max(2 * len(self.counts), n_rows), dtype=np.int64)
            wider[: len(self.counts)] = self.counts
            self.counts = wider


class MatchingPods(Index):
    """A column of counts for each match asked for.

    Pods of one namespace and priority with the same labels are one group, for which each match is decided once: a Pod
    of a known group that comes or goes costs one addition per column that counts it. The first question about a match
    looks at the groups that have one of its labels, later ones at nothing. Matches of Pods that ask for a great many
    are not kept: they are added up by group.
    """

    def __init__(self, capacity: int = _CAPACITY) -> None:
        self._capacity = capacity
        self._groups = PodGroups()
        self._columns: dict[PodMatch, _Column] = {}
        self._columns_at: dict[Place, dict[PodMatch, _Column]] = {}

    def add_pod(self, pod: PodInfo, row: int) -> None:
        likeness = likeness_of(pod)
        group = self._groups.get(likeness)
        if group is None:
            group = self._found(likeness, pod)
        self._groups.counts.add(group.number, row)
        for column in group.columns.values():
            column.add(row, 1)

    def remove_pod(self, pod: PodInfo, row: int) -> None:
        likeness = likeness_of(pod)
        group = self._groups.get(likeness)
        if group is None:
            raise KeyError(likeness)
        for column in group.columns.values():
            column.add(row, -1)
        if self._groups.counts.remove(group.number, row):
            self._groups.remove(likeness)

    def on_rows(self, match: PodMatch, n_rows: int) -> IntArray:
        """Return int64 (n_rows,): the Pods on each row that match. Not to be kept: it changes as Pods come and go."""
        column = self._asked(match)
        column.widen(n_rows)
        return read_only(column.counts[:n_rows])

    def version_of(self, match: PodMatch) -> object:
        """Return an object that is another one whenever a Pod that matches has come or gone."""
        return self._asked(match).version

    def added_up(self, wanted: Sequence[tuple[int, PodMatch, int]], n_sums: int, work: Work | None) -> GroupSums:
        """Add up matches without keeping them; UnsupportedPodError where that takes more than `work`, if any is given.

        Parameters
        ----------
        wanted
            Which of the sums, below `n_sums`, a match adds to, and its weight.
        """
        return GroupSums(self._groups, wanted, n_sums, work)

    def _asked(self, match: PodMatch) -> _Column:
        column = self._columns.pop(match, None)
        if column is None:
            column = self._learned(match)
        self._columns[match] = column
        if len(self._columns) > self._capacity:
            self._forget(next(iter(self._columns)))
        return column

    def _found(self, likeness: Likeness, sample: PodInfo) -> AlikePods:
        """Return a new group, with the columns that count it."""
        group = self._groups.found(likeness, sample)
        for place in places_of_group(likeness):
            for match, column in self._columns_at.get(place, {}).items():
                if match.holds(sample):
                    group.columns[match] = column
        return group

    def _learned(self, match: PodMatch) -> _Column:
        """Return a new column, with the Pods that are there."""
        numbers = self._groups.matching(match)
        counts = self._groups.counts.summed(numbers, np.broadcast_to(_ONE, (1, len(numbers))), 0)[0]
        column = _Column(counts)
        for place in places_of_match(match):
            self._columns_at.setdefault(place, {})[match] = column
        for group in self._groups.among(numbers):
            group.columns[match] = column
        return column

    def _forget(self, match: PodMatch) -> None:
        del self._columns[match]
        for place in places_of_match(match):
            _take_out(self._columns_at, place, match)
        for group in self._groups.among(self._groups.matching(match)):
            del group.columns[match]


class GroupSums:
    """Matches of one Pod added up by group: how many match, and the sum of their weights; int64 (n_sums, n_numbers).

    It stands for the Pods that were placed when it was made.
    """

    def __init__(
        self, groups: PodGroups, wanted: Sequence[tuple[int, PodMatch, int]], n_sums: int, work: Work | None
    ) -> None:
        self._groups = groups
        self._wanted = wanted
        self._n_founded = groups.n_founded
        self._n: IntArray = np.zeros((n_sums, groups.n_numbers), dtype=np.int64)
        self._weights = np.zeros_like(self._n)
        for at, match, weight in wanted:
            chosen = groups.selecting(match, work)
            if chosen.dtype == np.bool_:
                self._n[at] += chosen
                self._weights[at] += chosen * np.int64(weight)
            else:
                self._n[at, chosen] += 1
                self._weights[at, chosen] += weight

    def on_rows(self, n_rows: int) -> tuple[IntArray, IntArray]:
        """Return int64 (n_sums, n_rows) twice: how many matches there are on each row, and their weights."""
        both = self._on_rows(np.concatenate((self._n, self._weights)), n_rows)
        return both[: len(self._n)], both[len(self._n) :]

    def below(self, priority: int, n_rows: int) -> IntArray:
        """Return int64 (n_sums, n_rows): how many matches there are among Pods of lower priority."""
        return self._on_rows(self._n * self._groups.are_below(priority)[: self._n.shape[1]], n_rows)

    def held_by(self, pods: Sequence[PodInfo]) -> IntArray:
        """Return int64 (n_sums, len(pods)): how many matches hold for each Pod, placed or not."""
        groups = self._groups
        are_same = groups.n_founded == self._n_founded
        strangers: dict[Likeness, tuple[int, PodInfo]] = {}
        numbers: list[int] = []
        for pod in pods:
            likeness = likeness_of(pod)
            group = groups.get(likeness) if are_same else None
            if group is None:
                numbers.append(strangers.setdefault(likeness, (self._n.shape[1] + len(strangers), pod))[0])
            else:
                numbers.append(group.number)
        held = [self._n, *(self._held_by_one(pod) for _, pod in strangers.values())]
        return np.concatenate(held, axis=1)[:, numbers]

    def _held_by_one(self, pod: PodInfo) -> IntArray:
        """Return int64 (n_sums, 1): how many matches hold for a Pod of no group."""
        held: IntArray = np.zeros((len(self._n), 1), dtype=np.int64)
        for at, match, _ in self._wanted:
            held[at] += match.holds(pod)
        return held

    def _on_rows(self, amounts: IntArray, n_rows: int) -> IntArray:
        numbers = np.flatnonzero(amounts.any(axis=0))
        return self._groups.counts.summed(numbers, amounts[:, numbers], n_rows)[:, :n_rows]


def _take_out(places: dict[Place, dict[_K, _V]], place: Place, key: _K) -> None:
    here = places[place]
    del here[key]
    if not here:
        del places[place]
