"""From which nodes a volume or a storage pool can be used: a Reach, as a value, and ReachableRows, the rows of each.

Thousands of volumes share a few of these values, or name one node each; either way their rows are found once, and again
only when a node gets or loses a label that they name.

Source: k8s.io/component-helpers storage/volume CheckNodeAffinity, kubernetes pkg/apis/core/v1/helper
MatchTopologySelectorTerms and kube-scheduler v1.37 volumebinding/binder.go nodeHasAccess (behaviour).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from scheduler.errors import InvalidObjectError
from scheduler.model.arrays import BoolArray, IntArray
from scheduler.model.labels import check_requirement
from scheduler.model.objects import Node
from scheduler.model.selectors import SelectorTerm, selector_of
from scheduler.model.structs import LabelSelector, Requirement
from scheduler.model.views import NodeView
from scheduler.model.volumes import TopologyTerm, VolumeNodeAffinity, VolumeNodeSelectorTerm

Reach = tuple[tuple[SelectorTerm, ...], ...] | None
"""Any of some conjunctions of label requirements holds; None: everywhere, (): nowhere."""

EVERYWHERE: Reach = None
NOWHERE: Reach = ()

_Label = tuple[str, str]

_MOST_UNUSED = 65_536
"""How many rows of released values may be left in the array before it is compacted."""

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


class ReachableRows:
    """The rows of each Reach in use; `expand` strings the rows of many of them together without a loop.

    A node that comes, goes or gets other labels costs the reaches that its labels, before and after, are named by.
    """

    def __init__(self) -> None:
        self._ids: dict[Reach, int] = {}
        self._values: list[Reach] = []
        self._users: list[int] = []
        self._free: list[int] = []
        self._nodes: list[Node | None] = []
        self._generation = -1
        self._by_label: dict[_Label, set[int]] = {}
        self._others: set[int] = set()
        self._to_find: set[int] = set()
        self._starts: IntArray = np.zeros(64, dtype=np.int64)
        self._lengths: IntArray = np.zeros(64, dtype=np.int64)
        self._flat: IntArray = _NO_ROWS
        self._n_flat = 0
        self._n_unused = 0
        self._buckets: dict[str, tuple[IntArray, IntArray]] = {}

    def acquire(self, reach: Reach) -> int:
        """Return the number of a Reach; it stands until as many `release`."""
        found = self._ids.get(reach)
        if found is None:
            if self._free:
                found = self._free.pop()
                self._values[found] = reach
            else:
                found = len(self._values)
                self._values.append(reach)
                self._users.append(0)
            self._ids[reach] = found
            self._to_find.add(found)
            self._name(found, reach)
        self._users[found] += 1
        return found

    def release(self, number: int) -> None:
        self._users[number] -= 1
        if self._users[number] > 0:
            return
        reach = self._values[number]
        del self._ids[reach]
        self._free.append(number)
        self._to_find.discard(number)
        self._others.discard(number)
        for label in (label for terms in reach or () for labels in _label_choices(terms) for label in labels):
            named_by = self._by_label.get(label, set())
            named_by.discard(number)
            if label in self._by_label and not named_by:
                del self._by_label[label]
        self._drop(number)

    def follow(self, nodes: NodeView, generation: int) -> None:
        """Find the rows anew that have changed since the last call; `generation` is the snapshot's."""
        if generation != self._generation:
            self._note_nodes(nodes, nodes.rows_changed_since(self._generation).tolist())
            self._generation = generation
        for number in self._to_find:
            self._find(number, nodes)
        self._to_find.clear()
        if self._n_unused > max(_MOST_UNUSED, self._n_flat // 2):
            self._compact()

    def expand(self, numbers: IntArray) -> tuple[IntArray, IntArray]:
        """Return the rows of all `numbers`, one after the other, and how many each has: int64 (n,), int64 (k,).

        The rows are those of the last `follow`.
        """
        lengths = self._lengths[numbers]
        ends = np.cumsum(lengths)
        n = int(ends[-1]) if len(ends) else 0
        offsets = np.repeat(self._starts[numbers] - (ends - lengths), lengths)
        rows: IntArray = self._flat[offsets + np.arange(n, dtype=np.int64)]
        return rows, lengths

    def _name(self, number: int, reach: Reach) -> None:
        """Note for each conjunction labels of which every node has one that it holds of: those named least so far."""
        for terms in ((),) if reach is None else reach:
            labels = min(
                _label_choices(terms),
                key=lambda labels: sum(len(self._by_label.get(label, ())) for label in labels),
                default=None,
            )
            if labels is None:
                self._others.add(number)
            for label in labels or ():
                self._by_label.setdefault(label, set()).add(number)

    def _note_nodes(self, nodes: NodeView, rows: Iterable[int]) -> None:
        """Have those reaches found anew that nodes with other labels than before may enter or leave."""
        n_before = len(self._nodes)
        self._nodes += [None] * (nodes.n_rows - n_before)
        is_changed = n_before != nodes.n_rows
        for row in rows:
            before, now = self._nodes[row], nodes.node(row)
            if before is now:
                continue
            self._nodes[row] = now
            old, new = ({} if node is None else node.metadata.labels or {} for node in (before, now))
            if old != new:
                is_changed = True
                for label in old.items() | new.items():
                    self._to_find |= self._by_label.get(label, set())
        if is_changed:
            self._to_find |= self._others
            self._buckets.clear()

    def _drop(self, number: int) -> None:
        """Give up the rows of a Reach; they stay in the array until it is compacted."""
        if number < len(self._lengths):
            self._n_unused += int(self._lengths[number])
            self._lengths[number] = 0

    def _find(self, number: int, nodes: NodeView) -> None:
        """Append the rows of one Reach; its old place in the array stays unused."""
        rows = self._rows_of(self._values[number], nodes)
        self._drop(number)
        while number >= len(self._starts):
            self._starts = np.concatenate([self._starts, np.zeros_like(self._starts)])
            self._lengths = np.concatenate([self._lengths, np.zeros_like(self._lengths)])
        needed = self._n_flat + len(rows)
        if needed > len(self._flat):
            wider = np.zeros(2 * needed, dtype=np.int64)
            wider[: self._n_flat] = self._flat[: self._n_flat]
            self._flat = wider
        self._flat[self._n_flat : needed] = rows
        self._starts[number], self._lengths[number] = self._n_flat, len(rows)
        self._n_flat = needed

    def _compact(self) -> None:
        """Compact the array: copy what is in use to the front."""
        numbers = np.flatnonzero(self._lengths)
        rows, lengths = self.expand(numbers)
        self._flat, self._n_flat, self._n_unused = rows, len(rows), 0
        self._starts[numbers] = np.cumsum(lengths) - lengths

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


def _label_choices(terms: Sequence[SelectorTerm]) -> list[list[_Label]]:
    """Return per requirement of this kind the labels of which a node must have one."""
    return [[(term.key, value) for value in term.values] for term in terms if term.operator == "In"]


def _affinity_term(term: VolumeNodeSelectorTerm) -> tuple[SelectorTerm, ...] | None:
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


def _terms(requirements: Iterable[Requirement]) -> tuple[SelectorTerm, ...]:
    terms = {SelectorTerm(one.key, one.operator, tuple(sorted(set(one.values or ())))) for one in requirements}
    return tuple(sorted(terms, key=lambda term: (term.key, term.operator, term.values)))


def _requirement(term: SelectorTerm) -> Requirement:
    return Requirement(key=term.key, operator=term.operator, values=list(term.values))
