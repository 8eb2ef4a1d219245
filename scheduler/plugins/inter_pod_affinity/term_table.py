"""TermTable: what placed Pods say about others, as columns by term; matched with one Pod all terms at once."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scheduler.framework.postings import Postings
from scheduler.framework.row_counts import RowCounts
from scheduler.model.affinity_terms import AffinityTerm
from scheduler.model.arrays import BoolArray, IntArray
from scheduler.model.pods import PodInfo
from scheduler.model.selectors import SelectorTerm

_NEVER = 1 << 20
"""More than any term asks for."""

_WIDTH = 64


class Role(enum.Enum):
    """What a carried term does to a Pod that it means."""

    KEEPS_AWAY = "required anti-affinity"
    DRAWS = "required affinity"
    PREFERS = "preferred, for or against"


@dataclass(frozen=True, slots=True)
class Subject:
    """All that a carried term asks about a Pod; `below` leaves out the terms of Pods whose priority is not lower."""

    namespace: str
    labels: frozenset[tuple[str, str]]
    namespace_labels: frozenset[tuple[str, str]]
    below: int | None = None

    @classmethod
    def of(cls, pod: PodInfo, namespace_labels: Mapping[str, str], below: int | None = None) -> Subject:
        return cls(pod.namespace, frozenset(pod.labels.items()), frozenset(namespace_labels.items()), below)


Domain = tuple[Role, str]
"""A role and a topology key."""


@dataclass(frozen=True, slots=True)
class Carried:
    """One term of a placed Pod, and the Pod's priority."""

    role: Role
    weight: int
    term: AffinityTerm
    priority: int

    @property
    def domain(self) -> Domain:
        return self.role, self.term.topology_key


_LABEL = "a label of the Pod"
_NAMESPACE_LABEL = "a label of its namespace"
_NAMESPACE = "its namespace"

_Fact = tuple[str, str, str | None]
"""What a term may ask about a Pod: that it has a key, with a value (None: with any)."""


class TermTable:
    """Terms by number; the number of one that has gone is given to another.

    A term is up to two sets of requirements, one for namespaces by name and one for those by label, of which either
    does. A set asks for a number of facts and is broken by others: a fact of the Pod counts for all sets that ask for
    it at once. `asked`, bool (width, n_lanes), is whether a term means the Pod that a lane stands for.
    """

    def __init__(self, n_lanes: int) -> None:
        self._numbers: dict[Carried, int] = {}
        self._terms: list[Carried | None] = []
        self._free: list[int] = []
        self._meeting: Postings[_Fact] = Postings()
        self._breaking: Postings[_Fact] = Postings()
        self._needed: IntArray = np.full(2 * _WIDTH, _NEVER, dtype=np.int64)
        self._columns: IntArray = np.zeros((3, _WIDTH), dtype=np.int64)
        self._codes: dict[Domain, tuple[int, int]] = {}
        self._next_code = 0
        self.asked: BoolArray = np.zeros((_WIDTH, n_lanes), dtype=np.bool_)
        self.lanes: list[Any] = [None] * n_lanes
        """What counts for the Pods that the lanes stand for: its owner's affair."""
        self.counts = RowCounts()
        self.of_pods: dict[str, IntArray] = {}
        """By UID, the numbers of the terms of placed Pods that have many."""

    def entries(self) -> dict[Carried, tuple[dict[int, int], list[bool]]]:
        """Return by term its Pods by row, and which lanes' Pods it means."""
        return {
            carried: (self.counts.of(number), self.asked[number].tolist()) for carried, number in self._numbers.items()
        }

    @property
    def domains(self) -> Mapping[Domain, tuple[int, int]]:
        """The domains of all terms, with a code, and how many terms there are."""
        return self._codes

    def number_of(self, carried: Carried) -> int | None:
        return self._numbers.get(carried)

    def numbers_of(self, carried: Sequence[Carried]) -> list[int]:
        """Return the numbers of terms, without those that are not here."""
        found = map(self._numbers.get, carried)
        return [number for number in found if number is not None]

    def term(self, number: int) -> Carried:
        term = self._terms[number]
        if term is None:
            raise LookupError(f"no term has the number {number}")
        return term

    def weights(self, numbers: IntArray) -> IntArray:
        """Return int64 (len(numbers),)."""
        weights: IntArray = self._columns[0, numbers]
        return weights

    def codes(self, numbers: IntArray) -> IntArray:
        """Return int64 (len(numbers),): the codes of the terms' domains."""
        codes: IntArray = self._columns[2, numbers]
        return codes

    def add(self, carried: Carried) -> int:
        """Add a new term, which means nobody yet, and return its number."""
        number = self._free.pop() if self._free else len(self._terms)
        if number == len(self._terms):
            self._terms.append(carried)
            self._widen()
        self._terms[number] = carried
        self._numbers[carried] = number
        code, n_terms = self._codes.get(carried.domain, (self._next_code, 0))
        self._next_code = max(self._next_code, code + 1)
        self._codes[carried.domain] = code, n_terms + 1
        self._columns[:, number] = carried.weight, carried.priority, code
        for at, facts in _sets(carried.term, number):
            self._needed[at] = facts.n_asked
            for fact in facts.meeting:
                self._meeting.add(fact, at)
            for fact in facts.breaking:
                self._breaking.add(fact, at)
        return number

    def remove(self, number: int) -> None:
        carried = self.term(number)
        code, n_terms = self._codes.pop(carried.domain)
        if n_terms > 1:
            self._codes[carried.domain] = code, n_terms - 1
        for at, facts in _sets(carried.term, number):
            self._needed[at] = _NEVER
            for fact in facts.meeting:
                self._meeting.discard(fact, at)
            for fact in facts.breaking:
                self._breaking.discard(fact, at)
        self.asked[number] = False
        self._terms[number] = None
        self._free.append(number)
        del self._numbers[carried]

    def matching(self, subject: Subject) -> BoolArray:
        """Return bool (width,): which terms mean a Pod."""
        missing = self._needed.copy()
        for fact in _facts(subject):
            if self._meeting.n_at(fact):
                missing[self._meeting.at(fact)] -= 1
            if self._breaking.n_at(fact):
                missing[self._breaking.at(fact)] += 1
        is_met = missing == 0
        found: BoolArray = is_met[::2] | is_met[1::2]
        return found if subject.below is None else found & (self._columns[1] < subject.below)

    def summed(self, lane: int, domain: Domain) -> IntArray:
        """Return int64 (2, n): on each row the Pods' terms of a domain that mean a lane's Pod, and their weights."""
        numbers = np.flatnonzero(self.asked[:, lane])
        numbers = numbers[self._columns[2, numbers] == self._codes[domain][0]]
        weights = self._columns[0, numbers]
        return self.counts.summed(numbers, np.stack((np.ones_like(weights), weights)), 0)

    def _widen(self) -> None:
        width = self._columns.shape[1]
        if len(self._terms) > width:
            self._needed = np.concatenate((self._needed, np.full(2 * width, _NEVER, dtype=np.int64)))
            self._columns = np.concatenate((self._columns, np.zeros_like(self._columns)), axis=1)
            self.asked = np.concatenate((self.asked, np.zeros_like(self.asked)))


@dataclass(frozen=True, slots=True)
class _Facts:
    """`n_asked` requirements are met by one of `meeting` each, and any of `breaking` is one too many."""

    n_asked: int
    meeting: set[_Fact]
    breaking: set[_Fact]


def _sets(term: AffinityTerm, number: int) -> Iterator[tuple[int, _Facts]]:
    """Yield the sets of requirements of a term, with their numbers."""
    if term.selector.is_nothing:
        return
    about_pod = [(_LABEL, one) for one in term.selector.terms]
    if term.namespaces:
        names = SelectorTerm("", "In", tuple(term.namespaces))
        yield 2 * number, _facts_of([*about_pod, (_NAMESPACE, names)])
    if not term.namespace_selector.is_nothing:
        by_label = [(_NAMESPACE_LABEL, one) for one in term.namespace_selector.terms]
        yield 2 * number + 1, _facts_of([*about_pod, *by_label])


def _facts_of(requirements: Sequence[tuple[str, SelectorTerm]]) -> _Facts:
    wanted: dict[tuple[str, str], set[str]] = {}
    existing: set[_Fact] = set()
    breaking: set[_Fact] = set()
    for about, one in requirements:
        match one.operator:
            case "In":
                values = wanted.get((about, one.key))
                wanted[about, one.key] = set(one.values) if values is None else values & set(one.values)
            case "Exists":
                existing.add((about, one.key, None))
            case "NotIn":
                breaking.update((about, one.key, value) for value in one.values)
            case _:
                breaking.add((about, one.key, None))
    meeting = {(about, key, value) for (about, key), values in wanted.items() for value in values}
    return _Facts(len(wanted) + len(existing), meeting | existing, breaking)


def _facts(subject: Subject) -> Iterator[_Fact]:
    yield _NAMESPACE, "", subject.namespace
    for about, labels in ((_LABEL, subject.labels), (_NAMESPACE_LABEL, subject.namespace_labels)):
        for key, value in labels:
            yield about, key, value
            yield about, key, None
