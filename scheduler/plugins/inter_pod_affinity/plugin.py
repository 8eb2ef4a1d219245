"""The plugin itself: what the counts by domain come to at each extension point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from scheduler.errors import InvalidObjectError
from scheduler.framework.events import Action, EventInterest, Resource
from scheduler.framework.intree_args import InterPodAffinityArgs
from scheduler.framework.matching_pods import MatchingPods
from scheduler.framework.plugin import (
    MAX_NODE_SCORE,
    FilterPlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    Tally,
)
from scheduler.framework.status import SKIP, Code, PreFilterResult, Rejection, ScoreTerm, Status
from scheduler.model.arrays import BoolArray, IntArray, Rows
from scheduler.model.labels import ABSENT
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from scheduler.plugins.inter_pod_affinity.carried_terms import CarriedTerms
from scheduler.plugins.inter_pod_affinity.domains import AffinityDomains, Pull
from scheduler.plugins.inter_pod_affinity.hints import node_may_help, own_labels_may_help, pod_may_help
from scheduler.plugins.inter_pod_affinity.own_terms import (
    RequiredTerms,
    namespace_labels,
    preferred_on_rows,
    required_of,
)
from scheduler.plugins.inter_pod_affinity.term_table import Role, Subject

REASON_AFFINITY = "node(s) didn't match pod affinity rules"
REASON_ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
REASON_EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"

_NO_KEYS: Mapping[str, int] = {}


@dataclass(frozen=True, slots=True)
class _AffinityState:
    """What Filter asks, over all nodes: `near` is about Pods that match all required terms, by topology key.

    `away` is about Pods that match required anti-affinity terms, `existing` about Pods whose own anti-affinity means
    this one, by topology key.
    """

    pod: PodInfo
    namespace_labels: Mapping[str, str]
    subject: Subject
    required: RequiredTerms
    is_own_mate: bool
    near: tuple[AffinityDomains, ...]
    away: tuple[AffinityDomains, ...]
    existing: Mapping[str, AffinityDomains]

    def is_first(self, rows: Rows) -> BoolArray:
        """Return bool (len(rows),): no Pod anywhere matches but the one to place.

        It may be the first of a group whose Pods want to be together.
        """
        first: BoolArray = np.full(len(self.near[0].codes[rows]), self.is_own_mate)
        for one in self.near:
            first &= one.is_nowhere(rows)
        return first

    def without(self, gone: IntArray) -> _AffinityState:
        """Return the state in which each row misses Pods, int64 (n_counts, n_rows), in the order of the tally."""
        columns = iter(gone)
        near = next(columns) if self.near else None
        return replace(
            self,
            near=tuple(replace(one, gone=near) for one in self.near),
            away=tuple(replace(one, gone=next(columns)) for one in self.away),
            existing={key: replace(one, gone=next(columns)) for key, one in self.existing.items()},
        )


class InterPodAffinity(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Refuses nodes by required (anti-)affinity, the Pod's own and that of placed Pods; scores the preferred terms.

    A term's domain is all nodes that share a value of its topology key; Pods are counted on rows as they come, and
    summed by domain in the cycle.

    Source: kube-scheduler v1.37 interpodaffinity/{filtering,scoring,plugin}.go (behaviour).
    """

    indexes = (MatchingPods, CarriedTerms)
    kinds = ("Namespace",)

    Args = InterPodAffinityArgs

    def __init__(self, args: InterPodAffinityArgs | None = None) -> None:
        given = args or InterPodAffinityArgs()
        self._hard_weight = given.hard_pod_affinity_weight
        self._ignores_existing = given.ignore_preferred_terms_of_existing_pods

    def prefilter(self, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult | Status:
        terms, nodes = pod.affinity_terms, snapshot.nodes
        if terms.faults:
            return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (f"parsing pod: {terms.problem}",))
        labels = namespace_labels(pod, snapshot)
        subject = Subject.of(pod, labels)
        carried = snapshot.index(CarriedTerms).about(subject, nodes)
        keeping_away = {
            key: AffinityDomains.of(key, counts[0], nodes)
            for (role, key), counts in carried.items()
            if role is Role.KEEPS_AWAY
        }
        existing = {key: domains for key, domains in keeping_away.items() if domains.total}
        if not (existing or terms.required or terms.required_anti):
            return SKIP
        required = required_of(pod, snapshot)
        counts = required.on_rows(snapshot)
        return PreFilterResult(
            _AffinityState(
                pod,
                labels,
                subject,
                required,
                bool(required.near_keys) and required.wanted.holds(pod),
                tuple(AffinityDomains.of(key, counts[0], nodes) for key in required.near_keys),
                tuple(
                    AffinityDomains.of(key, here, nodes)
                    for key, here in zip(required.away_keys, counts[bool(required.near_keys) :], strict=True)
                ),
                existing,
            )
        )

    def filter(self, state: _AffinityState, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[Rejection]:
        """Return at most one refusal of each node: as in kube-scheduler only the first is reported."""
        standing = np.ones(len(snapshot.nodes.alive[rows]), dtype=np.bool_)
        found: list[Rejection] = []
        if state.near:
            near = standing.copy()
            for one in state.near:
                near &= one.codes[rows] != ABSENT
            together = np.logical_and.reduce([one.at(rows) > 0 for one in state.near])
            near &= together | state.is_first(rows)
            found.append(Rejection(~near, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, REASON_AFFINITY))
            standing = near
        for domains, reason in ((state.away, REASON_ANTI_AFFINITY), (state.existing.values(), REASON_EXISTING)):
            if not domains:
                continue
            refused = np.zeros(len(standing), dtype=np.bool_)
            for one in domains:
                refused |= one.at(rows) > 0
            refused &= standing
            found.append(Rejection(refused, Code.UNSCHEDULABLE, reason))
            standing = standing & ~refused
        return found

    def add_pod(self, state: _AffinityState, pod: PodInfo, row: int, snapshot: Snapshot) -> _AffinityState:
        return _moved(state, pod, row, 1, snapshot)

    def remove_pod(self, state: _AffinityState, pod: PodInfo, row: int, snapshot: Snapshot) -> _AffinityState:
        return _moved(state, pod, row, -1, snapshot)

    def tally(self, state: _AffinityState, pod: PodInfo, snapshot: Snapshot, pods: Sequence[PodInfo]) -> Tally | None:
        """Count the Pods that `near`, `away` and `existing` are about, in this order."""
        nodes, required = snapshot.nodes, state.required
        carried = [_keys_about(state, one, snapshot) for one in pods]
        nobody: IntArray = np.zeros(nodes.n_rows, dtype=np.int64)
        new = {
            key: AffinityDomains.of(key, nobody, nodes) for keys in carried for key in keys if key not in state.existing
        }
        state = replace(state, existing={**state.existing, **new})
        about = snapshot.index(CarriedTerms).about(replace(state.subject, below=pod.priority), nodes)
        keeping = (about.get((Role.KEEPS_AWAY, key)) for key in state.existing)
        each, below = required.tally(pods, pod.priority, snapshot)
        theirs = [[keys.get(key, 0) for keys in carried] for key in state.existing]
        return Tally(
            np.concatenate((each, np.array(theirs, dtype=np.int64).reshape(len(theirs), len(pods)))),
            np.stack([*below, *(nobody if counts is None else counts[0] for counts in keeping)]),
            state.without,
        )

    def prescore(self, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> tuple[Pull, ...] | Status:
        """Return the pulls of all topology keys; InvalidObjectError for terms that cannot be read fails the attempt."""
        terms, nodes = pod.affinity_terms, snapshot.nodes
        if terms.faults:
            raise InvalidObjectError(f"failed to parse pod: {terms.problem}")
        if self._ignores_existing and not terms.preferred:
            return SKIP
        pulls: dict[str, IntArray] = {}

        def pull(key: str, counts: IntArray, weights: IntArray) -> None:
            both = pulls.get(key)
            if both is None:
                both = pulls[key] = np.zeros((2, nodes.n_rows), dtype=np.int64)
            both[0] += counts
            both[1] += weights

        for key, counts, weights in preferred_on_rows(pod, snapshot):
            pull(key, counts, weights)
        subject = Subject.of(pod, namespace_labels(pod, snapshot))
        for (role, key), sums in snapshot.index(CarriedTerms).about(subject, nodes).items():
            if role is Role.PREFERS:
                pull(key, sums[0], sums[1])
            elif role is Role.DRAWS and self._hard_weight:
                pull(key, sums[0], sums[1] * self._hard_weight)
        found = (Pull.of(key, both, nodes) for key, both in pulls.items())
        return tuple(one for one in found if one is not None) or SKIP

    def score(self, state: tuple[Pull, ...], pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[ScoreTerm]:
        """Return the sum of the weights in each node's domains; it may be negative."""
        raw = np.zeros(len(snapshot.nodes.alive[rows]), dtype=np.int64)
        for one in state:
            raw += one.sums[one.codes[rows]]
        return (ScoreTerm(self.name, raw),)

    def normalize(self, term: ScoreTerm) -> IntArray:
        """Spread the values over 0..100; in floating point and cut, since kube-scheduler does so."""
        values = term.values
        least, greatest = (int(values.min()), int(values.max())) if len(values) else (0, 0)
        if greatest == least:
            return np.zeros(len(values), dtype=np.int64)
        shares = (values - least).astype(np.float64) / float(greatest - least)
        return (MAX_NODE_SCORE * shares).astype(np.int64)

    def events(self) -> Sequence[EventInterest]:
        placed = Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE
        return (
            EventInterest(Resource.ASSIGNED_POD, placed, pod_may_help),
            EventInterest(Resource.TARGET_POD, Action.UPDATE_POD_LABEL, own_labels_may_help),
            EventInterest(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, node_may_help),
        )


def _keys_about(state: _AffinityState, pod: PodInfo, snapshot: Snapshot) -> Mapping[str, int]:
    """Return by topology key that nodes have how many anti-affinity terms of a Pod mean the Pod to place."""
    terms = pod.affinity_terms
    if not terms.required_anti:
        return _NO_KEYS
    if not terms.are_few:
        known = snapshot.index(CarriedTerms).keeping_away(pod, state.subject, snapshot.nodes)
        if known is not None:
            return known
    me, found = state.pod, dict[str, int]()
    for term in terms.required_anti:
        key = term.topology_key
        if term.matches(me.namespace, me.labels, state.namespace_labels) and snapshot.nodes.has_label_key(key):
            found[key] = found.get(key, 0) + 1
    return found


def _moved(state: _AffinityState, pod: PodInfo, row: int, n: int, snapshot: Snapshot) -> _AffinityState:
    """Return the state after a Pod has come to a row (n 1) or left it (n -1)."""
    near, *away = state.required.held_by(pod)
    keys = _keys_about(state, pod, snapshot)
    if not (near or any(away) or keys):
        return state
    existing, nodes = dict(state.existing), snapshot.nodes
    for key, n_terms in keys.items():
        known = existing.get(key) or AffinityDomains.of(key, np.zeros(nodes.n_rows, dtype=np.int64), nodes)
        existing[key] = known.plus(row, n * n_terms)
    return replace(
        state,
        near=tuple(one.plus(row, n) for one in state.near) if near else state.near,
        away=tuple(one.plus(row, n * hits) if hits else one for one, hits in zip(state.away, away, strict=True)),
        existing=existing,
    )
