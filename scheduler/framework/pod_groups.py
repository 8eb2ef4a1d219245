"""PodGroups: placed Pods with equal labels as one, found by requirement in columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from scheduler.framework.pod_match import PodMatch, Work
from scheduler.framework.postings import Postings
from scheduler.framework.row_counts import RowCounts
from scheduler.model.arrays import BoolArray, IntArray
from scheduler.model.pods import PodInfo
from scheduler.model.selectors import SelectorTerm

_FEW = 16
"""Groups that are looked at one by one: faster than columns."""

_MOST_PLACES = 64
"""Beyond, groups are looked for in all namespaces at once."""

_STEP_COST = 1_000
"""What one step in columns costs however short they are, in comparisons."""

_MASK_SHARE = 8
"""So many groups cost as much as one comparison, where masks are combined."""

_NAME_COST = 50
"""What one namespace costs that is named, or found by its labels."""

Likeness = tuple[str, frozenset[tuple[str, str]], bool, int]
"""All that a PodMatch may ask about a Pod: namespace, labels, whether it is being deleted, priority."""

Place = tuple[str | None, tuple[str, str] | None]
"""Where to look for one another: a namespace (None: any) and a label with its value (None: whatever the labels)."""


def likeness_of(pod: PodInfo) -> Likeness:
    is_leaving = pod.pod.metadata.deletion_timestamp is not None
    return pod.namespace, frozenset(pod.labels.items()), is_leaving, pod.priority


class AlikePods:
    """Placed Pods that every PodMatch must treat alike; `columns` are those that count them."""

    __slots__ = ("columns", "number", "sample")

    def __init__(self, number: int, sample: PodInfo) -> None:
        self.number = number
        self.sample = sample
        self.columns: dict[PodMatch, Any] = {}


class PodGroups:
    """The groups by number; the number of one that has gone is given to another."""

    def __init__(self) -> None:
        self._by_likeness: dict[Likeness, AlikePods] = {}
        self._groups: list[AlikePods | None] = []
        self._free: list[int] = []
        self._at: Postings[Place] = Postings()
        self._with_key: Postings[str] = Postings()
        self._is_leaving: BoolArray = np.zeros(0, dtype=np.bool_)
        self._priority: IntArray = np.zeros(0, dtype=np.int64)
        self.counts = RowCounts()
        self.n_founded = 0
        """Groups that have ever come: while it stands, no number is that of another group."""

    @property
    def n_numbers(self) -> int:
        """All numbers are below it."""
        return len(self._groups)

    def entries(self) -> dict[Likeness, tuple[dict[int, int], frozenset[PodMatch]]]:
        """Return by group its Pods by row and the matches whose columns count them."""
        return {
            likeness: (self.counts.of(group.number), frozenset(group.columns))
            for likeness, group in self._by_likeness.items()
        }

    def get(self, likeness: Likeness) -> AlikePods | None:
        return self._by_likeness.get(likeness)

    def among(self, numbers: IntArray) -> Iterator[AlikePods]:
        for number in numbers.tolist():
            group = self._groups[number]
            if group is not None:
                yield group

    def are_below(self, priority: int) -> BoolArray:
        """Return bool (n_numbers,): which groups have a lower priority; of no meaning for a number that is free."""
        return self._priority[: len(self._groups)] < priority

    def found(self, likeness: Likeness, sample: PodInfo) -> AlikePods:
        """Add a new group."""
        number = self._free.pop() if self._free else len(self._groups)
        group = AlikePods(number, sample)
        if number == len(self._groups):
            self._groups.append(group)
            self._widen()
        else:
            self._groups[number] = group
        self._by_likeness[likeness] = group
        self._is_leaving[number], self._priority[number] = likeness[2:]
        for place in places_of_group(likeness):
            self._at.add(place, number)
        for key, _ in likeness[1]:
            self._with_key.add(key, number)
        self.n_founded += 1
        return group

    def remove(self, likeness: Likeness) -> None:
        number = self._by_likeness.pop(likeness).number
        self._groups[number] = None
        self._free.append(number)
        for place in places_of_group(likeness):
            self._at.discard(place, number)
        for key, _ in likeness[1]:
            self._with_key.discard(key, number)

    def _widen(self) -> None:
        width = len(self._priority)
        if len(self._groups) > width:
            self._is_leaving = np.concatenate((self._is_leaving, np.zeros(max(width, 64), dtype=np.bool_)))
            self._priority = np.concatenate((self._priority, np.zeros(max(width, 64), dtype=np.int64)))

    # -- questions -------------------------------------------------------------------------------------------

    def matching(self, match: PodMatch) -> IntArray:
        """Return the numbers of the groups that match."""
        found = self.selecting(match)
        return np.flatnonzero(found) if found.dtype == np.bool_ else found.astype(np.int64, copy=False)

    def selecting(self, match: PodMatch, work: Work | None = None) -> IntArray | BoolArray:
        """Return the groups that match, as their numbers or, where they may be many, as bool (n_numbers,).

        Raises
        ------
        UnsupportedPodError
            That takes more than `work`.
        """
        if any(clause.selector.is_nothing for clause in match.clauses):
            return np.zeros(0, dtype=np.int64)
        terms = {term for clause in match.clauses for term in clause.selector.terms}
        found, is_inside = self._candidates(match.namespaces, terms)
        if work is not None:
            work.spend(_STEP_COST + len(found) + _NAME_COST * len(match.namespaces or ()))
        if len(found) <= _FEW and len(terms) <= _FEW:
            return np.array([one.number for one in self.among(found) if match.holds(one.sample)], dtype=np.int64)
        standing = self._marked([found])
        if not is_inside:
            standing &= self._marked([self._at.at((name, None)) for name in match.namespaces or ()])
        if match.is_alive:
            standing &= ~self._is_leaving[: len(standing)]
        if match.below is not None:
            standing &= self.are_below(match.below)
        for term in terms:
            self._sift(standing, term, work)
        return standing

    def _sift(self, standing: BoolArray, term: SelectorTerm, work: Work | None) -> None:
        """Leave in `standing`, bool (n_numbers,), only groups that meet a requirement."""
        arrays = self._meeting(term)
        if work is not None:
            work.spend(_STEP_COST + len(standing) // _MASK_SHARE + sum(map(len, arrays)))
        if term.operator in ("In", "Exists"):
            standing &= self._marked(arrays)
        else:
            for array in arrays:
                standing[array] = False

    def _candidates(self, namespaces: frozenset[str] | None, terms: Iterable[SelectorTerm]) -> tuple[IntArray, bool]:
        """Return groups with all that can match among them, each once, and whether all are in the namespaces."""
        names: Sequence[str | None] = (None,) if namespaces is None else tuple(namespaces)
        best: Sequence[Place] = [(name, None) for name in names]
        fewest, is_inside = sum(map(self._at.n_at, best)), True
        for term in terms:
            if term.operator == "In":
                is_narrow = len(names) * len(term.values) <= _MOST_PLACES
                labels = [(term.key, value) for value in term.values]
                places: Sequence[Place] = list(product(names if is_narrow else (None,), labels))
                n = sum(map(self._at.n_at, places))
                if n < fewest:
                    best, fewest, is_inside = places, n, is_narrow
        arrays = [self._at.at(place) for place in best if self._at.n_at(place)]
        found = arrays[0] if len(arrays) == 1 else np.concatenate(arrays or [np.zeros(0, dtype=np.int64)])
        return found, is_inside or namespaces is None

    def _meeting(self, term: SelectorTerm) -> list[IntArray]:
        """Return the numbers of the groups that have a value, or the key, which a requirement names."""
        if term.operator in ("Exists", "DoesNotExist"):
            return [self._with_key.at(term.key)]
        places: list[Place] = [(None, (term.key, value)) for value in term.values]
        return [self._at.at(place) for place in places if self._at.n_at(place)]

    def _marked(self, arrays: Iterable[IntArray]) -> BoolArray:
        """Return bool (n_numbers,), True for the groups in any of the arrays."""
        marks = np.zeros(len(self._groups), dtype=np.bool_)
        for array in arrays:
            marks[array] = True
        return marks


def places_of_group(likeness: Likeness) -> Iterator[Place]:
    namespace, labels, *_ = likeness
    for here in (namespace, None):
        yield here, None
        for label in labels:
            yield here, label


def places_of_match(match: PodMatch) -> list[Place]:
    """Return the places where to look for all groups that can match; each of them is at one of these at most."""
    names: Sequence[str | None] = (None,) if match.namespaces is None else sorted(match.namespaces)
    wanted = [term for clause in match.clauses for term in clause.selector.terms if term.operator == "In"]
    if not wanted:
        return [(name, None) for name in names]
    narrowest = min(wanted, key=lambda term: len(term.values))
    return [(name, (narrowest.key, value)) for name in names for value in narrowest.values]
