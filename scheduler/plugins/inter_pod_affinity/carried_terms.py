"""CarriedTerms: what placed Pods say about other Pods, counted by row as they come and go."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from scheduler.framework.index import Index
from scheduler.model.affinity_terms import AffinityTerm
from scheduler.model.arrays import IntArray, read_only
from scheduler.model.pods import PodInfo

_CAPACITY = 64
"""Subjects kept, least recently asked for forgotten: 16 bytes for each node and topology key."""


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

_Handle = tuple[str | None, tuple[str, str] | None]
"""A namespace and a label that a Pod must have to match; None: any."""


@dataclass(frozen=True, slots=True)
class _Carried:
    role: Role
    weight: int
    term: AffinityTerm
    priority: int

    @property
    def domain(self) -> Domain:
        return self.role, self.term.topology_key


@dataclass(slots=True)
class _Holders:
    """Who carries one term: Pods by row; and the answers that count them."""

    rows: dict[int, int] = field(default_factory=dict)
    answers: dict[Subject, _Answer] = field(default_factory=dict)


class _Sums:
    """int64 (2, width): terms on each row, and the sum of their weights; the width is a power of two."""

    __slots__ = ("n_terms", "values")

    def __init__(self) -> None:
        self.n_terms = 0
        self.values: IntArray = np.zeros((2, 0), dtype=np.int64)

    def add(self, row: int, n: int, weight: int) -> None:
        self.widen(row + 1)
        self.n_terms += n
        self.values[0, row] += n
        self.values[1, row] += n * weight

    def widen(self, n_rows: int) -> None:
        width = self.values.shape[1]
        if n_rows > width:
            wider = np.zeros((2, 1 << (n_rows - 1).bit_length()), dtype=np.int64)
            wider[:, :width] = self.values
            self.values = wider


@dataclass(slots=True)
class _Answer:
    """What is carried about one subject; no entry is empty."""

    namespace: str
    labels: dict[str, str]
    namespace_labels: dict[str, str]
    below: int | None
    n_rows: int = 0
    matching: set[_Carried] = field(default_factory=set)
    sums: dict[Domain, _Sums] = field(default_factory=dict)

    def is_about(self, carried: _Carried) -> bool:
        if self.below is not None and carried.priority >= self.below:
            return False
        return carried.term.matches(self.namespace, self.labels, self.namespace_labels)

    def count(self, carried: _Carried, row: int, n: int) -> None:
        sums = self.sums.get(carried.domain)
        if sums is None:
            sums = self.sums[carried.domain] = _Sums()
            sums.widen(self.n_rows)
        sums.add(row, n, carried.weight)
        if not sums.n_terms:
            del self.sums[carried.domain]


class CarriedTerms(Index):
    """Counts per distinct term and priority the Pods on each row that carry it; asked for the terms that mean one Pod.

    A question about a new kind of Pod looks at the terms that share a namespace and a label with it, a known one at
    nothing: its counts follow the Pods.
    """

    def __init__(self, capacity: int = _CAPACITY) -> None:
        self._capacity = capacity
        self._holders: dict[_Carried, _Holders] = {}
        self._by_handle: dict[_Handle, dict[_Carried, _Holders]] = {}
        self._answers: dict[Subject, _Answer] = {}

    def add_pod(self, pod: PodInfo, row: int) -> None:
        for carried in _carried_by(pod):
            holders = self._holders.get(carried)
            if holders is None:
                holders = self._learn_term(carried)
            holders.rows[row] = holders.rows.get(row, 0) + 1
            for answer in holders.answers.values():
                answer.count(carried, row, 1)

    def remove_pod(self, pod: PodInfo, row: int) -> None:
        for carried in _carried_by(pod):
            holders = self._holders[carried]
            holders.rows[row] -= 1
            for answer in holders.answers.values():
                answer.count(carried, row, -1)
            if not holders.rows[row]:
                del holders.rows[row]
            if not holders.rows:
                self._forget_term(carried, holders)

    def about(self, subject: Subject, n_rows: int) -> dict[Domain, IntArray]:
        """Return int64 (2, n_rows) by domain: terms on each row that mean the subject, and the sum of their weights.

        A domain without such a term is left out. Do not keep the answer: it changes as Pods come and go.
        """
        answer = self._answers.pop(subject, None)
        if answer is None:
            answer = self._learn_subject(subject)
        self._answers[subject] = answer
        if len(self._answers) > self._capacity:
            self._forget_subject(next(iter(self._answers)))
        answer.n_rows = n_rows
        for sums in answer.sums.values():
            sums.widen(n_rows)
        return {domain: read_only(sums.values[:, :n_rows]) for domain, sums in answer.sums.items()}

    def _learn_term(self, carried: _Carried) -> _Holders:
        holders = self._holders[carried] = _Holders()
        for handle in _handles(carried.term):
            self._by_handle.setdefault(handle, {})[carried] = holders
        for subject, answer in self._answers.items():
            if answer.is_about(carried):
                holders.answers[subject] = answer
                answer.matching.add(carried)
        return holders

    def _forget_term(self, carried: _Carried, holders: _Holders) -> None:
        del self._holders[carried]
        for handle in _handles(carried.term):
            here = self._by_handle[handle]
            del here[carried]
            if not here:
                del self._by_handle[handle]
        for answer in holders.answers.values():
            answer.matching.discard(carried)

    def _learn_subject(self, subject: Subject) -> _Answer:
        answer = _Answer(subject.namespace, dict(subject.labels), dict(subject.namespace_labels), subject.below)
        for namespace in (subject.namespace, None):
            for label in (*subject.labels, None):
                for carried, holders in self._by_handle.get((namespace, label), {}).items():
                    if answer.is_about(carried):
                        holders.answers[subject] = answer
                        answer.matching.add(carried)
                        for row, n in holders.rows.items():
                            answer.count(carried, row, n)
        return answer

    def _forget_subject(self, subject: Subject) -> None:
        for carried in self._answers.pop(subject).matching:
            del self._holders[carried].answers[subject]


def _carried_by(pod: PodInfo) -> Iterator[_Carried]:
    """Yield the terms of a Pod that can mean anyone, as often as it has them."""
    terms = pod.affinity_terms
    for term in terms.required_anti:
        if not term.selector.is_nothing:
            yield _Carried(Role.KEEPS_AWAY, 1, term, pod.priority)
    for term in terms.required:
        if not term.selector.is_nothing:
            yield _Carried(Role.DRAWS, 1, term, pod.priority)
    for one in terms.preferred:
        if not one.term.selector.is_nothing:
            yield _Carried(Role.PREFERS, one.weight, one.term, pod.priority)


def _handles(term: AffinityTerm) -> Iterator[_Handle]:
    """Yield where to look a term up: of all the handles that fit a Pod, at most one is the term's."""
    wanted = next((one for one in term.selector.terms if one.operator == "In"), None)
    labels = [None] if wanted is None else [(wanted.key, value) for value in wanted.values]
    for namespace in term.namespaces if term.namespace_selector.is_nothing else (None,):
        for label in labels:
            yield namespace, label
