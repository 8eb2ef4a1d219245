"""The plugin itself: what the counts by domain come to at each extension point."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from scheduler.framework.events import Action, ClusterEvent, EventInterest, QueueingHint, Resource
from scheduler.framework.intree_args import PodTopologySpreadArgs
from scheduler.framework.matching_pods import MatchingPods
from scheduler.framework.plugin import (
    MAX_NODE_SCORE,
    FilterPlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    Tally,
)
from scheduler.framework.pod_match import Clause, PodMatch, Work
from scheduler.framework.status import SKIP, Code, PreFilterResult, Rejection, ScoreTerm, Status
from scheduler.model.arrays import BoolArray, FloatArray, IntArray, Rows
from scheduler.model.labels import ABSENT
from scheduler.model.pods import PodInfo
from scheduler.model.selectors import EVERYTHING
from scheduler.model.snapshot import Snapshot
from scheduler.plugins.pod_topology_spread.constraints import (
    HARD,
    HOSTNAME,
    LOOKED_UP,
    SOFT,
    SYSTEM_DEFAULTS,
    Constraint,
    default_constraints,
    distinguishable,
    own_constraints,
)
from scheduler.plugins.pod_topology_spread.domains import PATH, Domains, Topology, occurs, sums
from scheduler.plugins.pod_topology_spread.hints import after_node_change, after_pod_change

REASON = "node(s) didn't match pod topology spread constraints"
REASON_LABEL = f"{REASON} (missing required label)"


class PodTopologySpread(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Refuses nodes whose domain would have too many of the Pods that match, and prefers domains with few.

    PreFilter sums the counts of `MatchingPods` by domain, Filter and Score only gather.

    Source: kube-scheduler v1.37 podtopologyspread/{filtering,scoring}.go (behaviour).
    """

    indexes = (MatchingPods,)
    kinds = tuple(kind.__name__ for kind in LOOKED_UP)
    Args = PodTopologySpreadArgs

    def __init__(self, args: PodTopologySpreadArgs | None = None) -> None:
        has_own = args is not None and args.defaulting_type == "List"
        self._defaults = args.default_constraints if args is not None and has_own else SYSTEM_DEFAULTS
        self._has_system_defaults = not has_own

    def prefilter(self, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult | Status:
        """Return the counts by domain as the state; InvalidObjectError for a selector that cannot be read.

        UnsupportedPodError where counting takes more work than there is for one Pod.
        """
        constraints = self._constraints(pod, snapshot, HARD)
        if not constraints:
            return SKIP
        topology = Topology(pod, snapshot, constraints)
        return PreFilterResult(tuple(_Spread.of(one, pod, topology) for one in constraints))

    def filter(self, state: tuple[_Spread, ...], pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[Rejection]:
        """Refuse each node by the first constraint that it does not meet."""
        unlabelled = np.zeros(len(snapshot.nodes.alive[rows]), dtype=np.bool_)
        crowded = unlabelled.copy()
        for spread in state:
            is_absent = spread.domains.codes[rows] == ABSENT
            is_beyond = spread.skews(rows) > spread.constraint.max_skew
            unlabelled |= is_absent & ~crowded
            crowded |= is_beyond & ~unlabelled
        return (
            Rejection(unlabelled, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, REASON_LABEL),
            Rejection(crowded, Code.UNSCHEDULABLE, REASON),
        )

    def add_pod(self, state: tuple[_Spread, ...], pod: PodInfo, row: int, snapshot: Snapshot) -> tuple[_Spread, ...]:
        return tuple(spread.changed(pod, row, 1) for spread in state)

    def remove_pod(self, state: tuple[_Spread, ...], pod: PodInfo, row: int, snapshot: Snapshot) -> tuple[_Spread, ...]:
        return tuple(spread.changed(pod, row, -1) for spread in state)

    def tally(
        self, state: tuple[_Spread, ...], pod: PodInfo, snapshot: Snapshot, pods: Sequence[PodInfo]
    ) -> Tally | None:
        """Count per constraint the Pods that it means."""
        wanted = [(at, PodMatch((spread.clause,)), 1) for at, spread in enumerate(state)]
        work = None if pod.spreads_by_few else Work(PATH)
        sums = snapshot.index(MatchingPods).added_up(wanted, len(wanted), work)
        return Tally(
            sums.held_by(pods),
            sums.below(pod.priority, snapshot.nodes.n_rows),
            lambda gone: tuple(replace(spread, gone=here) for spread, here in zip(state, gone, strict=True)),
        )

    def prescore(self, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> _Scored | Status:
        """Return the raw score of each node, given the feasible ones; InvalidObjectError as PreFilter."""
        constraints = self._constraints(pod, snapshot, SOFT)
        if not constraints:
            return SKIP
        topology = Topology(pod, snapshot, constraints)
        feasible = np.zeros(snapshot.nodes.n_rows, dtype=np.bool_)
        feasible[rows] = snapshot.nodes.alive[rows]
        countable = snapshot.nodes.alive
        if self._needs_all_labels(pod):
            countable = topology.keyed
        ignored = feasible & ~countable
        scored = feasible & countable
        total: FloatArray = np.zeros(snapshot.nodes.n_rows, dtype=np.float64)
        for one in constraints:
            total += _credits(one, topology, scored, countable)
        total[ignored] = 0.0
        return _Scored(_rounded(total), ignored)

    def score(self, state: _Scored, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[ScoreTerm]:
        return (_SpreadTerm(self.name, state.raw[rows], ignored=state.ignored[rows]),)

    def normalize(self, term: ScoreTerm) -> IntArray:
        """Return 100 for the node with the smallest raw score, 0 for ignored ones, by integer division."""
        raw = term.values.astype(np.int64, copy=False)
        ignored = term.ignored if isinstance(term, _SpreadTerm) else np.zeros(len(raw), dtype=np.bool_)
        counting = raw[~ignored] if ignored.any() else raw
        least, most = int(counting.min(initial=np.iinfo(np.int64).max)), int(counting.max(initial=0))
        if most == 0:
            return np.where(ignored, 0, MAX_NODE_SCORE)
        scores: IntArray = MAX_NODE_SCORE * (most + least - raw) // most
        scores[ignored] = 0
        return scores

    def events(self) -> Sequence[EventInterest]:
        pods, own = Action.ADD | Action.DELETE | Action.UPDATE_POD_LABEL, Action.UPDATE_POD_LABEL
        nodes = Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT
        return (
            EventInterest(Resource.ASSIGNED_POD, pods, self._after_pod_change),
            EventInterest(Resource.TARGET_POD, own | Action.UPDATE_POD_TOLERATION, self._after_pod_change),
            EventInterest(Resource.NODE, nodes, self._after_node_change),
        )

    def _after_pod_change(self, pod: PodInfo, event: ClusterEvent) -> QueueingHint:
        if not pod.spreads_by_few:
            # To find out would take as long as to try.
            return QueueingHint.QUEUE
        return after_pod_change(pod, event, self._hard_at_most(pod))

    def _after_node_change(self, pod: PodInfo, event: ClusterEvent) -> QueueingHint:
        if not pod.spreads_by_few:
            return QueueingHint.QUEUE
        return after_node_change(event, self._hard_at_most(pod))

    def _hard_at_most(self, pod: PodInfo) -> tuple[Constraint, ...]:
        """Return the hard constraints, defaults with an empty selector: a hint has no catalog to look up theirs."""
        own = pod.pod.spec.topology_spread_constraints
        if own:
            return own_constraints(own, pod.labels, HARD)
        return tuple(replace(one, selector=EVERYTHING) for one in own_constraints(self._defaults, pod.labels, HARD))

    def _constraints(self, pod: PodInfo, snapshot: Snapshot, action: str) -> tuple[Constraint, ...]:
        own = pod.pod.spec.topology_spread_constraints
        if own:
            constraints = own_constraints(own, pod.labels, action)
            return constraints if pod.spreads_by_few else distinguishable(constraints, snapshot.nodes)
        return default_constraints(self._defaults, pod, snapshot, action)

    def _needs_all_labels(self, pod: PodInfo) -> bool:
        """Return whether a node that lacks a label is ignored; with the system's defaults it only gets no credit."""
        return bool(pod.pod.spec.topology_spread_constraints) or not self._has_system_defaults


@dataclass(frozen=True, slots=True)
class _Spread:
    """One hard constraint.

    `changes` is by how much Pods placed or removed on trial have changed a domain's count. `gone`, int64 (n_rows,), is
    how many matching Pods each row misses that no other row does.
    """

    constraint: Constraint
    clause: Clause
    matches_itself: bool
    domains: Domains
    changes: Mapping[int, int] = field(default_factory=dict)
    gone: IntArray | None = None

    @classmethod
    def of(cls, constraint: Constraint, pod: PodInfo, topology: Topology) -> _Spread:
        matches_itself = constraint.selector.matches(pod.labels)
        clause = Clause(frozenset({pod.namespace}), constraint.selector)
        return cls(constraint, clause, matches_itself, Domains(topology, constraint))

    def skews(self, rows: Rows) -> IntArray:
        """Return int64 (len(rows),): the skew of each node's domain once the Pod is there; of no meaning if ABSENT."""
        codes = self.domains.codes[rows]
        counts = self.domains.counts[codes]
        for code, change in self.changes.items():
            counts[codes == code] += change
        if self.gone is not None:
            counts -= np.where(self.domains.counted[rows], self.gone[rows], 0)
        fewest: IntArray | int = 0
        if self.domains.n >= max(self.constraint.min_domains, 1):
            fewest = self.domains.fewest(self.changes)
            if self.gone is not None:
                fewest = self.domains.fewest_apart(codes, counts, self.changes)
        skews: IntArray = counts + (int(self.matches_itself) - fewest)
        return skews

    def changed(self, pod: PodInfo, row: int, n: int) -> _Spread:
        """Return it with one Pod more or less, counted even where it is being deleted or the selector is empty."""
        if not self.domains.counted[row] or not self.clause.holds(pod):
            return self
        code = int(self.domains.codes[row])
        return replace(self, changes={**self.changes, code: self.changes.get(code, 0) + n})


@dataclass(frozen=True, slots=True)
class _Scored:
    """int64 and bool (n_rows,)."""

    raw: IntArray
    ignored: BoolArray


@dataclass(frozen=True, slots=True)
class _SpreadTerm(ScoreTerm):
    """A term that knows which of its nodes lack a label."""

    ignored: BoolArray = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))


def _credits(constraint: Constraint, topology: Topology, scored: BoolArray, countable: BoolArray) -> FloatArray:
    """Return float64 (n_rows,): the weighted count of each node's domain; 0 where the node has none.

    The weight is the logarithm of the number of domains. A host's count ignores the policies of the constraint. Without
    system defaults no node in `countable` lacks the label; with them, nodes without it are one more domain, the one
    that an empty value names.
    """
    codes, amounts = topology.codes(constraint), topology.matching(constraint)
    if constraint.topology_key == HOSTNAME:
        n_domains, counts = int(np.count_nonzero(scored)), amounts
    else:
        nameless = topology.code_of(constraint, "")
        named = codes if nameless == ABSENT else np.where(codes == ABSENT, np.int32(nameless), codes)
        n_domains = int(np.count_nonzero(occurs(named, scored)))
        counts = sums(named, amounts, topology.counted(constraint, countable))[named]
    credits: FloatArray = counts.astype(np.float64) * math.log(n_domains + 2) + (constraint.max_skew - 1)
    credits[codes == ABSENT] = 0.0
    return credits


def _rounded(values: FloatArray) -> IntArray:
    """Return int64, halves away from zero."""
    sizes = np.abs(values)
    whole = np.floor(sizes)
    whole += sizes - whole >= 0.5
    return np.copysign(whole, values).astype(np.int64)
