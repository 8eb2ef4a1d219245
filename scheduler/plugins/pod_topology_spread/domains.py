"""Domains: which nodes count for a constraint, and how many matching Pods each value of its label has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import islice

import numpy as np

from scheduler.framework.matching_pods import MatchingPods
from scheduler.framework.pod_match import Clause, PodMatch, Work
from scheduler.model.arrays import BoolArray, CodeArray, IntArray
from scheduler.model.labels import ABSENT
from scheduler.model.pods import PodInfo
from scheduler.model.selectors import Selector
from scheduler.model.snapshot import Snapshot
from scheduler.model.views import NodeView
from scheduler.plugins.pod_topology_spread.constraints import Constraint
from scheduler.plugins.shared.eligible_nodes import REFUSING_EFFECTS, required_matches, required_terms, tolerates

PATH = "spec.topologySpreadConstraints"


class Topology:
    """What the constraints of one Pod see of the nodes; everything is bool or int (n_rows,).

    Raises UnsupportedPodError where counting the Pods that they mean takes more work than there is for one Pod.
    """

    def __init__(self, pod: PodInfo, snapshot: Snapshot, constraints: Sequence[Constraint]) -> None:
        self._pod = pod
        self._nodes = snapshot.nodes
        self._index = snapshot.index(MatchingPods)
        self._constraints = constraints
        self._codes = {one.topology_key: _codes(snapshot.nodes, one.topology_key) for one in constraints}

    @cached_property
    def keyed(self) -> BoolArray:
        """The nodes that have the label of every constraint."""
        keyed: BoolArray = self._nodes.alive
        for codes in self._codes.values():
            keyed = keyed & (codes != ABSENT)
        return keyed

    def codes(self, constraint: Constraint) -> CodeArray:
        """Return int32 (n_rows,), the code of each node's domain, ABSENT where it has none."""
        return self._codes[constraint.topology_key]

    def code_of(self, constraint: Constraint, value: str) -> int:
        """Return the code of a domain by the label's value, ABSENT where no node ever had it."""
        return self._nodes.label_values(constraint.topology_key).get(value, ABSENT)

    def counted(self, constraint: Constraint, among: BoolArray) -> BoolArray:
        """Return those of the nodes that the policies of the constraint let count."""
        if constraint.honors_affinity and self._required is not None:
            among = among & self._required
        if constraint.honors_taints and self._repelling is not None:
            among = among & ~self._repelling
        return among

    def matching(self, constraint: Constraint) -> IntArray:
        """Return int64 (n_rows,): the Pods on each node that the constraint counts; an empty selector counts none."""
        if constraint.selector.is_everything or constraint.selector.is_nothing:
            return np.zeros(self._nodes.n_rows, dtype=np.int64)
        if not self._pod.spreads_by_few:
            return self._added_up[constraint.selector]
        clause = Clause(frozenset({self._pod.namespace}), constraint.selector)
        return self._index.on_rows(PodMatch((clause,), is_alive=True), self._nodes.n_rows)

    @cached_property
    def _added_up(self) -> Mapping[Selector, IntArray]:
        """The Pods on each node that count, by selector: of a Pod with a great many constraints none is kept."""
        here = frozenset({self._pod.namespace})
        selectors = dict.fromkeys(one.selector for one in self._constraints)
        wanted = [(at, PodMatch((Clause(here, one),), is_alive=True), 1) for at, one in enumerate(selectors)]
        counts, _ = self._index.added_up(wanted, len(wanted), Work(PATH)).on_rows(self._nodes.n_rows)
        return dict(zip(selectors, counts, strict=True))

    @cached_property
    def _required(self) -> BoolArray | None:
        spec = self._pod.pod.spec
        terms = required_terms(spec)
        if terms is None and not spec.node_selector:
            return None
        return required_matches(spec.node_selector or {}, terms, self._nodes)

    @cached_property
    def _repelling(self) -> BoolArray | None:
        """The nodes with a taint that keeps the Pod away."""
        tolerations = self._pod.pod.spec.tolerations or ()
        repelling: BoolArray | None = None
        for taint, column in self._nodes.taints():
            if taint.effect in REFUSING_EFFECTS and not tolerates(tolerations, taint):
                repelling = column if repelling is None else repelling | column
        return repelling


def _codes(nodes: NodeView, key: str) -> CodeArray:
    codes = nodes.label_codes(key)
    if codes is None:
        return np.full(nodes.n_rows, ABSENT, dtype=np.int32)
    found: CodeArray = codes.astype(np.int32, copy=False)
    return found


def sums(codes: CodeArray, amounts: IntArray, counted: BoolArray) -> IntArray:
    """Return int64 (n_codes + 1,): the amounts of the counted nodes by code; the last entry stands for ABSENT."""
    # In float64, which is exact for any number of Pods.
    by_slot = np.bincount(codes + 1, weights=amounts * counted, minlength=1).astype(np.int64)
    return np.concatenate((by_slot[1:], by_slot[:1]))


def occurs(codes: CodeArray, counted: BoolArray) -> BoolArray:
    """Return bool (n_codes + 1,): which codes any counted node has; the last entry stands for ABSENT."""
    by_slot = np.bincount(codes + 1, weights=counted, minlength=1) > 0
    return np.concatenate((by_slot[1:], by_slot[:1]))


class Domains:
    """The domains of one constraint with their Pods, as PreFilter found them; never written again."""

    def __init__(self, topology: Topology, constraint: Constraint) -> None:
        self.codes = topology.codes(constraint)
        self.counted = topology.counted(constraint, topology.keyed)
        self.counts = sums(self.codes, topology.matching(constraint), self.counted)
        self._there = occurs(self.codes, self.counted)

    @cached_property
    def n(self) -> int:
        return int(np.count_nonzero(self._there))

    @cached_property
    def _ascending(self) -> list[int]:
        """The codes by their counts."""
        codes = np.flatnonzero(self._there)
        ordered: list[int] = codes[np.argsort(self.counts[codes], kind="stable")].tolist()
        return ordered

    @cached_property
    def _fewest(self) -> int:
        return int(self.counts[self._there].min(initial=np.iinfo(np.int64).max))

    def fewest(self, changes: Mapping[int, int]) -> int:
        """Return the smallest count of a domain, given by how much some have changed; there must be a domain."""
        if not changes:
            return self._fewest
        unchanged = next((int(self.counts[code]) for code in self._ascending if code not in changes), None)
        changed = [int(self.counts[code]) + change for code, change in changes.items()]
        return min(changed if unchanged is None else [unchanged, *changed])

    def fewest_apart(self, codes: CodeArray, counts: IntArray, changes: Mapping[int, int]) -> IntArray:
        """Return int64 (len(codes),): `fewest`, had each node's own domain, given by its code, so many Pods instead."""
        unchanged = islice((code for code in self._ascending if code not in changes), 2)
        known = [(int(self.counts[code]), code) for code in unchanged]
        known += [(int(self.counts[code]) + change, code) for code, change in changes.items()]
        (fewest, at), *more = sorted(known)
        of_others = np.full(len(codes), fewest, dtype=np.int64)
        of_others[codes == at] = more[0][0] if more else np.iinfo(np.int64).max
        return np.where(self._there[codes], np.minimum(of_others, counts), fewest)
