"""CarriedTerms: what placed Pods say about other Pods, counted by row as they come and go."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from scheduler.framework.index import Index
from scheduler.model.arrays import IntArray, read_only
from scheduler.model.pods import PodInfo
from scheduler.model.views import NodeView
from scheduler.plugins.inter_pod_affinity.term_table import Carried, Domain, Role, Subject, TermTable

_CAPACITY = 64
"""Subjects kept, least recently asked for forgotten: 16 bytes for each node and topology key."""

_FEW = 8
"""Terms of one Pod that are counted one by one."""

_NOTHING: IntArray = read_only(np.zeros((2, 0), dtype=np.int64))


class _Sums:
    """int64 (2, width): terms on each row, and the sum of their weights; the width is a power of two."""

    __slots__ = ("n_terms", "values")

    def __init__(self, values: IntArray) -> None:
        self.n_terms = int(values[0].sum())
        self.values: IntArray = np.zeros((2, 0), dtype=np.int64)
        self.widen(values.shape[1])
        self.values[:, : values.shape[1]] = values

    def add(self, row: int, n: int, weight: int) -> None:
        self.widen(row + 1)
        self.n_terms += n
        self.values[0, row] += n
        self.values[1, row] += weight

    def add_all(self, rows: IntArray, counts: IntArray, weight: int) -> None:
        """Add a term with its counts on some rows, each given once."""
        self.widen(int(rows.max(initial=-1)) + 1)
        self.n_terms += int(counts.sum())
        self.values[0, rows] += counts
        self.values[1, rows] += counts * weight

    def widen(self, n_rows: int) -> None:
        width = self.values.shape[1]
        if n_rows > width:
            wider = np.zeros((2, 1 << (n_rows - 1).bit_length()), dtype=np.int64)
            wider[:, :width] = self.values
            self.values = wider


@dataclass(slots=True)
class Answer:
    """What is carried about the Pod of one lane, for topology keys that nodes have.

    What is counted once is followed, also while it is nothing. `generation` is how many label keys nodes had when the
    answer was completed, -1 where a domain may be missing.
    """

    lane: int
    namespace: str
    labels: dict[str, str]
    namespace_labels: dict[str, str]
    below: int | None
    generation: int = -1
    sums: dict[Domain, _Sums] = field(default_factory=dict)

    def entries(self) -> dict[Domain, _Sums]:
        """Return by domain what there is."""
        return {domain: sums for domain, sums in self.sums.items() if sums.n_terms}

    def is_about(self, carried: Carried) -> bool:
        if self.below is not None and carried.priority >= self.below:
            return False
        return carried.term.matches(self.namespace, self.labels, self.namespace_labels)

    def count(self, domain: Domain, row: int, n: int, weight: int) -> None:
        """Count `n` terms more (less, if negative) on a row; `weight` is that of all of them."""
        sums = self.sums.get(domain)
        if sums is not None:
            sums.add(row, n, weight)
        elif n > 0:
            self.generation = -1


class CarriedTerms(Index):
    """Counts per distinct term and priority the Pods on each row that carry it; asked for the terms that mean one Pod.

    A question about a new kind of Pod compares it with all terms in columns, a known one with nothing: its counts
    follow the Pods.
    """

    def __init__(self, capacity: int = _CAPACITY) -> None:
        self._capacity = capacity
        self._table = TermTable(capacity)
        self._answers: dict[Subject, Answer] = {}

    def add_pod(self, pod: PodInfo, row: int) -> None:
        carried = _carried_by(pod)
        if not carried:
            return
        table = self._table
        found = table.numbers_of(carried)
        if len(found) < len(carried):
            self._learn_terms([one for one in carried if table.number_of(one) is None])
            found = table.numbers_of(carried)
        for number in found:
            table.counts.add(number, row)
        if len(found) > _FEW:
            table.of_pods[pod.uid] = np.array(found, dtype=np.int64)
        self._follow(found, row, 1)

    def remove_pod(self, pod: PodInfo, row: int) -> None:
        table = self._table
        known = table.of_pods.pop(pod.uid, None)
        if known is None:
            carried = _carried_by(pod)
            numbers = table.numbers_of(carried)
            if len(numbers) < len(carried):
                raise KeyError(f"a term of {pod} was never counted")
        else:
            numbers = known.tolist()
        self._follow(numbers, row, -1)
        for number in numbers:
            if table.counts.remove(number, row):
                table.remove(number)

    def about(self, subject: Subject, nodes: NodeView) -> dict[Domain, IntArray]:
        """Return int64 (2, n_rows) by domain: terms on each row that mean the subject, and the sum of their weights.

        A domain without such a term is left out, as is one of a topology key that no node has. Do not keep the answer:
        it changes as Pods come and go.
        """
        answer = self._answer(subject)
        if answer.generation != nodes.n_label_keys:
            self._complete(answer, nodes)
        n_rows, found = nodes.n_rows, {}
        for domain, sums in answer.sums.items():
            if sums.n_terms:
                sums.widen(n_rows)
                found[domain] = read_only(sums.values[:, :n_rows])
        return found

    def keeping_away(self, pod: PodInfo, subject: Subject, nodes: NodeView) -> dict[str, int] | None:
        """Return by topology key that nodes have how many anti-affinity terms of a placed Pod mean the subject.

        None for a Pod that is not placed, or has few terms.
        """
        numbers = self._table.of_pods.get(pod.uid)
        if numbers is None:
            return None
        table, lane = self._table, self._answer(subject).lane
        codes = table.codes(numbers[table.asked[numbers, lane]])
        found = {}
        for domain in self._domains_on(nodes):
            n = int(np.count_nonzero(codes == table.domains[domain][0]))
            if n and domain[0] is Role.KEEPS_AWAY:
                found[domain[1]] = n
        return found

    def _answer(self, subject: Subject) -> Answer:
        answer = self._answers.pop(subject, None)
        if answer is None:
            lane = len(self._answers)
            if lane == self._capacity:
                lane = self._answers.pop(next(iter(self._answers))).lane
            labels, namespace_labels = dict(subject.labels), dict(subject.namespace_labels)
            answer = Answer(lane, subject.namespace, labels, namespace_labels, subject.below)
            self._table.asked[:, lane] = self._table.matching(subject)
            self._table.lanes[lane] = answer
        self._answers[subject] = answer
        return answer

    def _complete(self, answer: Answer, nodes: NodeView) -> None:
        """Count the domains that are missing."""
        answer.generation = nodes.n_label_keys
        table = self._table
        numbers = table.asked[:, answer.lane].nonzero()[0]
        if len(numbers) > _FEW:
            for domain in self._domains_on(nodes):
                if domain not in answer.sums:
                    sums = _Sums(table.summed(answer.lane, domain))
                    if sums.n_terms:
                        answer.sums[domain] = sums
            return
        missing: dict[Domain, _Sums] = {}
        for number in numbers.tolist():
            carried = table.term(number)
            domain = carried.domain
            if domain not in answer.sums and nodes.has_label_key(domain[1]):
                if domain not in missing:
                    missing[domain] = _Sums(_NOTHING)
                    missing[domain].widen(nodes.n_rows)
                missing[domain].add_all(*table.counts.on_rows(number), carried.weight)
        answer.sums |= missing

    def _domains_on(self, nodes: NodeView) -> Iterator[Domain]:
        """Yield the domains of carried terms whose topology key nodes have."""
        carried = self._table.domains
        if len(carried) <= len(Role) * nodes.n_label_keys:
            yield from (domain for domain in carried if nodes.has_label_key(domain[1]))
        else:
            yield from ((role, key) for key in nodes.label_keys() for role in Role if (role, key) in carried)

    def _learn_terms(self, carried: list[Carried]) -> None:
        """Take in new terms, and find out which of the known subjects they mean."""
        table, fresh = self._table, list(dict.fromkeys(carried))
        numbers = [table.add(one) for one in fresh]
        for subject, answer in self._answers.items():
            if len(numbers) > _FEW:
                table.asked[numbers, answer.lane] = table.matching(subject)[numbers]
            else:
                for one, number in zip(fresh, numbers, strict=True):
                    table.asked[number, answer.lane] = answer.is_about(one)

    def _follow(self, numbers: list[int], row: int, sign: int) -> None:
        """Count the terms of a Pod that comes to a row (1) or leaves it (-1) in the answers that they concern."""
        if len(numbers) > _FEW:
            self._follow_many(np.array(numbers, dtype=np.int64), row, sign)
            return
        table = self._table
        for number in numbers:
            lanes = table.asked[number].nonzero()[0].tolist()
            if lanes:
                term = table.term(number)
                for lane in lanes:
                    table.lanes[lane].count(term.domain, row, sign, sign * term.weight)

    def _codes_of(self, answer: Answer) -> list[tuple[Domain, int]]:
        """Return the domains that an answer counts, as far as any term has them."""
        carried = self._table.domains
        return [(domain, carried[domain][0]) for domain in answer.sums if domain in carried]

    def _follow_many(self, numbers: IntArray, row: int, sign: int) -> None:
        table = self._table
        for answer in self._answers.values():
            meant = numbers[table.asked[numbers, answer.lane]]
            codes, weights = table.codes(meant), table.weights(meant)
            n_counted = 0
            for domain, code in self._codes_of(answer):
                is_here = codes == code
                n = int(np.count_nonzero(is_here))
                if n:
                    answer.count(domain, row, sign * n, sign * int(weights[is_here].sum()))
                    n_counted += n
            if n_counted < len(meant) and sign > 0:
                answer.generation = -1


def _carried_by(pod: PodInfo) -> list[Carried]:
    """Return the terms of a Pod that can mean anyone, as often as it has them."""
    if pod.pod.spec.affinity is None:
        return []
    terms, priority = pod.affinity_terms, pod.priority
    found = []
    if terms.required_anti:
        found += [Carried(Role.KEEPS_AWAY, 1, one, priority) for one in terms.required_anti]
    if terms.required:
        found += [Carried(Role.DRAWS, 1, one, priority) for one in terms.required]
    if terms.preferred:
        found += [Carried(Role.PREFERS, one.weight, one.term, priority) for one in terms.preferred]
    return [one for one in found if not one.term.selector.is_nothing]
