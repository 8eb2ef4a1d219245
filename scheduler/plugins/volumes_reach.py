"""From which nodes a volume or a pool of storage can be used, as a value, and the rows of such values.

Thousands of volumes share few of these values, or name one node each; either way their rows are found once and
kept while the labels of nodes stand.

Source: k8s.io/component-helpers storage/volume CheckNodeAffinity, kubernetes pkg/apis/core/v1/helper
MatchTopologySelectorTerms and kube-scheduler v1.37 volumebinding/binder.go nodeHasAccess (behaviour).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from scheduler.errors import InvalidObjectError
from scheduler.model.arrays import BoolArray, IntArray
from scheduler.model.label_selectors import Term, selector_of
from scheduler.model.labels import check_requirement
from scheduler.model.structs import Labels, LabelSelector, Requirement
from scheduler.model.views import NodeView
from scheduler.model.volumes import TopologyTerm, VolumeNodeAffinity, VolumeNodeSelectorTerm

Reach = tuple[tuple[Term, ...], ...] | None
"""Any of some conjunctions of label requirements holds; None: everywhere, (): nowhere."""

EVERYWHERE: Reach = None
NOWHERE: Reach = ()

_MOST_UNUSED = 65_536
"""Rows of values given back that may lie about before all are found again."""

_NO_ROWS: IntArray = np.zeros(0, dtype=np.int64)


def reach_of_affinity(affinity: VolumeNodeAffinity | None) -> Reach:
    """Return where a PersistentVolume can be used; a term that cannot be read, or is empty, matches nothing.

    Only the node's labels are looked at, so that a field of the node reads as empty.
    """
    if affinity is None or affinity.required is None:
        return EVERYWHERE
    terms = (_affinity_term(term) for term in affinity.required.node_selector_terms or ())
    return tuple(term for term in terms if term is not None)


def reach_of_selector(selector: LabelSelector | None) -> Reach:
    """Return where a CSIStorageCapacity counts: without a selector nowhere, with an empty one everywhere."""
    try:
        meant = selector_of(selector)
    except InvalidObjectError:
        return NOWHERE
    return NOWHERE if meant.is_nothing else (meant.terms,)


def reach_of_topologies(terms: Sequence[TopologyTerm] | None) -> Reach:
    """Return where a StorageClass lets volumes be made: without terms everywhere, an empty term matches nothing."""
    if not terms:
        return EVERYWHERE
    wanted = (
        [Requirement(key=one.key, operator="In", values=one.values) for one in term.match_label_expressions or ()]
        for term in terms
    )
    return tuple(_terms(requirements) for requirements in wanted if requirements and _are_valid(requirements))


def matching(reach: Reach, nodes: NodeView) -> BoolArray:
    """Return bool (n_rows,): the nodes within reach."""
    if reach is None:
        return np.ones(nodes.n_rows, dtype=np.bool_)
    matches = np.zeros(nodes.n_rows, dtype=np.bool_)
    for terms in reach:
        every = np.ones(nodes.n_rows, dtype=np.bool_)
        for term in terms:
            every &= nodes.label_matches(_requirement(term))
        matches |= every
    return matches


class Reaches:
    """The rows of each Reach in use, found when first asked for and kept until a label changes.

    `expand` strings the rows of many of them together without a loop.
    """

    def __init__(self) -> None:
        self._ids: dict[Reach, int] = {}
        self._values: list[Reach] = []
        self._users: list[int] = []
        self._free: list[int] = []
        self._labels: list[Labels | None] = []
        self._generation = -1
        self._forget_rows()

    def acquire(self, reach: Reach) -> int:
        """Return the number of a Reach; it stands until as many `release`."""
        found = self._ids.get(reach)
        if found is None:
            if self._free:
                found = self._free.pop()
                self._values[found], self._users[found] = reach, 0
            else:
                found = len(self._values)
                self._values.append(reach)
                self._users.append(0)
            self._ids[reach] = found
            self._known.discard(found)
        self._users[found] += 1
        return found

    def release(self, number: int) -> None:
        self._users[number] -= 1
        if self._users[number] == 0:
            del self._ids[self._values[number]]
            self._free.append(number)
            self._n_unused += int(self._lengths[number]) if number in self._known else 0
            if self._n_unused > max(_MOST_UNUSED, self._n_flat // 2):
                self._forget_rows()

    def follow(self, nodes: NodeView, generation: int) -> None:
        """Take in what has changed on nodes since the last call; `generation` is the snapshot's."""
        if generation == self._generation:
            return
        changed = nodes.rows_changed_since(self._generation).tolist()
        self._generation = generation
        if self._note_labels(nodes, changed):
            self._forget_rows()

    def expand(self, numbers: IntArray, nodes: NodeView) -> tuple[IntArray, IntArray]:
        """Return the rows of all `numbers`, one after the other, and how many each has: int64 (n,), int64 (k,)."""
        for number in set(numbers.tolist()) - self._known:
            self._find(number, nodes)
        lengths = self._lengths[numbers]
        ends = np.cumsum(lengths)
        n = int(ends[-1]) if len(ends) else 0
        within = np.arange(n, dtype=np.int64) - np.repeat(ends - lengths, lengths)
        rows: IntArray = self._flat[np.repeat(self._starts[numbers], lengths) + within]
        return rows, lengths

    def _note_labels(self, nodes: NodeView, rows: Iterable[int]) -> bool:
        """Remember the labels of these rows; return whether any are other ones than before."""
        is_changed = len(self._labels) != nodes.n_rows
        self._labels += [None] * (nodes.n_rows - len(self._labels))
        for row in rows:
            node = nodes.node(row)
            labels = None if node is None else node.metadata.labels or {}
            if self._labels[row] != labels:
                self._labels[row] = labels
                is_changed = True
        return is_changed

    def _forget_rows(self) -> None:
        self._known: set[int] = set()
        self._starts: IntArray = np.zeros(64, dtype=np.int64)
        self._lengths: IntArray = np.zeros(64, dtype=np.int64)
        self._flat: IntArray = _NO_ROWS
        self._n_flat = 0
        self._n_unused = 0
        self._buckets: dict[str, tuple[IntArray, IntArray]] = {}

    def _find(self, number: int, nodes: NodeView) -> None:
        """Append the rows of one Reach; what a reach given back has left there is not used again."""
        rows = self._rows_of(self._values[number], nodes)
        while number >= len(self._starts):
            self._starts, self._lengths = (np.concatenate([one, one]) for one in (self._starts, self._lengths))
        needed = self._n_flat + len(rows)
        if needed > len(self._flat):
            wider = np.zeros(2 * needed, dtype=np.int64)
            wider[: self._n_flat] = self._flat[: self._n_flat]
            self._flat = wider
        self._flat[self._n_flat : needed] = rows
        self._starts[number], self._lengths[number] = self._n_flat, len(rows)
        self._n_flat = needed
        self._known.add(number)

    def _rows_of(self, reach: Reach, nodes: NodeView) -> IntArray:
        """Return int64 rows; for one label with one value, as local volumes have it, at the cost of a look-up."""
        if reach is not None and len(reach) == 1 and len(reach[0]) == 1:
            term = reach[0][0]
            if term.operator == "In" and len(term.values) == 1:
                return self._rows_with(term.key, term.values[0], nodes)
        return np.flatnonzero(matching(reach, nodes))

    def _rows_with(self, key: str, value: str, nodes: NodeView) -> IntArray:
        codes = nodes.label_codes(key)
        code = nodes.label_values(key).get(value)
        if codes is None or code is None:
            return _NO_ROWS
        if key not in self._buckets:
            order = np.argsort(codes, kind="stable")
            self._buckets[key] = order, codes[order]
        order, ordered = self._buckets[key]
        first, end = np.searchsorted(ordered, [code, code + 1])
        return order[first:end]


def _affinity_term(term: VolumeNodeSelectorTerm) -> tuple[Term, ...] | None:
    expressions, fields = term.match_expressions or [], term.match_fields or []
    if not _are_valid(expressions) or not (expressions or fields):
        return None
    if not all(_field_holds(field) for field in fields):
        return None
    return _terms(expressions)


def _field_holds(field: Requirement) -> bool:
    """Return whether a field requirement holds of an empty value; one that cannot be read does not."""
    values = field.values or []
    return len(values) == 1 and field.operator in ("In", "NotIn") and (values[0] == "") == (field.operator == "In")


def _are_valid(requirements: Iterable[Requirement]) -> bool:
    try:
        for requirement in requirements:
            check_requirement(requirement)
    except InvalidObjectError:
        return False
    return True


def _terms(requirements: Iterable[Requirement]) -> tuple[Term, ...]:
    terms = {Term(one.key, one.operator, tuple(sorted(set(one.values or ())))) for one in requirements}
    return tuple(sorted(terms, key=lambda term: (term.key, term.operator, term.values)))


def _requirement(term: Term) -> Requirement:
    return Requirement(key=term.key, operator=term.operator, values=list(term.values))
