"""MatchingPods: how many placed Pods on each row match something, counted as Pods come and go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from scheduler.framework.index import Index
from scheduler.model.arrays import IntArray, read_only
from scheduler.model.pods import PodInfo
from scheduler.model.selectors import Selector

_K = TypeVar("_K")
_V = TypeVar("_V")

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
class PodMatch:
    """Pods for which all clauses hold.

    `is_alive` leaves out those that are being deleted, `below` those whose priority is not lower.
    """

    clauses: tuple[Clause, ...]
    is_alive: bool = False
    below: int | None = None

    def holds(self, pod: PodInfo) -> bool:
        if self.is_alive and pod.pod.metadata.deletion_timestamp is not None:
            return False
        if self.below is not None and pod.priority >= self.below:
            return False
        return all(clause.holds(pod) for clause in self.clauses)


class _Group:
    """Placed Pods that every PodMatch must treat alike, and the columns that count them."""

    __slots__ = ("columns", "rows", "sample")

    def __init__(self, sample: PodInfo) -> None:
        self.sample = sample
        self.rows: dict[int, int] = {}
        self.columns: dict[PodMatch, _Column] = {}


class _Column:
    """int64 counts by row, as wide as the highest row needed so far; another `version` with each change."""

    __slots__ = ("counts", "version")

    def __init__(self) -> None:
        self.counts: IntArray = np.zeros(0, dtype=np.int64)
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


_Likeness = tuple[str, frozenset[tuple[str, str]], bool, int]
_Place = tuple[str | None, tuple[str, str] | None]
"""Where to look for one another: a namespace (None: any) and a label with its value (None: whatever the labels)."""


class MatchingPods(Index):
    """A column of counts for each match asked for.

    Pods of one namespace and priority with the same labels are one group, for which each match is decided once: a Pod
    of a known group that comes or goes costs one addition per column that counts it. The first question about a match
    looks at the groups that have one of its labels, later ones at nothing.
    """

    def __init__(self, capacity: int = _CAPACITY) -> None:
        self._capacity = capacity
        self._groups: dict[_Likeness, _Group] = {}
        self._groups_at: dict[_Place, dict[_Likeness, _Group]] = {}
        self._columns: dict[PodMatch, _Column] = {}
        self._columns_at: dict[_Place, dict[PodMatch, _Column]] = {}

    def add_pod(self, pod: PodInfo, row: int) -> None:
        likeness = _likeness(pod)
        group = self._groups.get(likeness)
        if group is None:
            group = self._found(likeness, pod)
        group.rows[row] = group.rows.get(row, 0) + 1
        for column in group.columns.values():
            column.add(row, 1)

    def remove_pod(self, pod: PodInfo, row: int) -> None:
        likeness = _likeness(pod)
        group = self._groups[likeness]
        group.rows[row] -= 1
        if not group.rows[row]:
            del group.rows[row]
        for column in group.columns.values():
            column.add(row, -1)
        if not group.rows:
            del self._groups[likeness]
            for place in _places_of_group(likeness):
                _take_out(self._groups_at, place, likeness)

    def on_rows(self, match: PodMatch, n_rows: int) -> IntArray:
        """Return int64 (n_rows,): the Pods on each row that match. Not to be kept: it changes as Pods come and go."""
        column = self._asked(match)
        column.widen(n_rows)
        return read_only(column.counts[:n_rows])

    def version_of(self, match: PodMatch) -> object:
        """Return an object that is another one whenever a Pod that matches has come or gone."""
        return self._asked(match).version

    def _asked(self, match: PodMatch) -> _Column:
        column = self._columns.pop(match, None)
        if column is None:
            column = self._learned(match)
        self._columns[match] = column
        if len(self._columns) > self._capacity:
            self._forget(next(iter(self._columns)))
        return column

    def _found(self, likeness: _Likeness, sample: PodInfo) -> _Group:
        """Return a new group, with the columns that count it."""
        group = self._groups[likeness] = _Group(sample)
        for place in _places_of_group(likeness):
            self._groups_at.setdefault(place, {})[likeness] = group
            for match, column in self._columns_at.get(place, {}).items():
                if match.holds(sample):
                    group.columns[match] = column
        return group

    def _learned(self, match: PodMatch) -> _Column:
        """Return a new column, with the Pods that are there."""
        column = _Column()
        for place in _places_of_match(match):
            self._columns_at.setdefault(place, {})[match] = column
            for group in self._groups_at.get(place, {}).values():
                if match.holds(group.sample):
                    group.columns[match] = column
                    for row, n in group.rows.items():
                        column.add(row, n)
        return column

    def _forget(self, match: PodMatch) -> None:
        del self._columns[match]
        for place in _places_of_match(match):
            _take_out(self._columns_at, place, match)
            for group in self._groups_at.get(place, {}).values():
                group.columns.pop(match, None)


def _likeness(pod: PodInfo) -> _Likeness:
    """Return all that a PodMatch may ask about a Pod."""
    is_leaving = pod.pod.metadata.deletion_timestamp is not None
    return pod.namespace, frozenset(pod.labels.items()), is_leaving, pod.priority


def _places_of_group(likeness: _Likeness) -> Iterator[_Place]:
    namespace, labels, *_ = likeness
    for here in (namespace, None):
        yield here, None
        for label in labels:
            yield here, label


def _places_of_match(match: PodMatch) -> list[_Place]:
    """Return the places where to look for all groups that can match; each of them is at one of these at most."""
    named = [clause.namespaces for clause in match.clauses if clause.namespaces is not None]
    namespaces: Sequence[str | None] = sorted(frozenset.intersection(*named)) if named else (None,)
    wanted = [term for clause in match.clauses for term in clause.selector.terms if term.operator == "In"]
    if not wanted:
        return [(namespace, None) for namespace in namespaces]
    narrowest = min(wanted, key=lambda term: len(term.values))
    return [(namespace, (narrowest.key, value)) for namespace in namespaces for value in narrowest.values]


def _take_out(places: dict[_Place, dict[_K, _V]], place: _Place, key: _K) -> None:
    here = places[place]
    del here[key]
    if not here:
        del places[place]
