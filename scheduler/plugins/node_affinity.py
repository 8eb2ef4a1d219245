"""NodeAffinity: nodes chosen by their labels, by `nodeSelector` and `affinity.nodeAffinity`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scheduler.framework.events import Action, ClusterEvent, EventInterest, QueueingHint, Resource
from scheduler.framework.intree_args import NodeAffinityArgs
from scheduler.framework.plugin import FilterPlugin, FreedBy, PreFilterPlugin, PreScorePlugin, ScorePlugin
from scheduler.framework.status import SKIP, Code, PreFilterResult, Rejection, ScoreTerm, Status
from scheduler.model.arrays import BoolArray, IntArray, Rows
from scheduler.model.labels import requirement_holds
from scheduler.model.objects import Node, NodeAffinitySpec, NodeSelectorTerm, PodSpec
from scheduler.model.pods import PodInfo
from scheduler.model.selectors import check_term, is_empty_term
from scheduler.model.snapshot import Snapshot
from scheduler.plugins.shared.eligible_nodes import (
    NAME_FIELD,
    matching_terms,
    required_matches,
    required_terms,
    term_matches,
)
from scheduler.plugins.shared.scores import scale_to_max

REASON = "node(s) didn't match Pod's node affinity/selector"
REASON_ENFORCED = "node(s) didn't match scheduler-enforced node affinity"
REASON_CONFLICT = "pod affinity terms conflict"


class NodeAffinity(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Refuses nodes that `nodeSelector` or the required terms leave out; scores the preferred terms.

    What the configuration adds (`addedAffinity`) counts for every Pod, and is refused under a reason of its own.

    Labels do not change within a cycle, so PreFilter decides for all rows at once and Filter only gathers.

    Source: kube-scheduler v1.37 nodeaffinity/node_affinity.go and k8s.io/component-helpers
    scheduling/corev1/nodeaffinity (behaviour).
    """

    freed_by = FreedBy.NOTHING

    Args = NodeAffinityArgs

    def __init__(self, args: NodeAffinityArgs | None = None) -> None:
        added = (args or NodeAffinityArgs()).added_affinity or NodeAffinitySpec()
        self._added_terms = None if added.required is None else added.required.node_selector_terms or ()
        self._added_preferences = _preferences(added)
        self._scores_always = bool(added.preferred)

    def prefilter(self, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult | Status:
        """Return where the node is left out as the state."""
        spec = pod.pod.spec
        terms = required_terms(spec)
        if terms is None and spec.node_selector is None and self._added_terms is None:
            return SKIP
        names = _named_nodes(terms or ())
        if names is not None and not names:
            return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (REASON_CONFLICT,))
        nodes = snapshot.nodes
        by_pod = ~required_matches(spec.node_selector or {}, terms, nodes)
        by_profile = None if self._added_terms is None else ~required_matches({}, self._added_terms, nodes)
        return PreFilterResult(_LeftOut(by_pod, by_profile), names)

    def filter(self, state: _LeftOut, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[Rejection]:
        by_pod = state.by_pod[rows]
        if state.by_profile is None:
            return (Rejection(by_pod, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, REASON),)
        by_profile = state.by_profile[rows]
        return (
            Rejection(by_profile, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, REASON_ENFORCED),
            Rejection(by_pod & ~by_profile, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, REASON),
        )

    def prescore(self, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> tuple[_Preference, ...] | Status:
        """Return the preferred terms, checked; InvalidObjectError for one that cannot be read fails the attempt."""
        affinity = _node_affinity(pod.pod.spec) or NodeAffinitySpec()
        if affinity.preferred is None and not self._scores_always:
            return SKIP
        return self._added_preferences + _preferences(affinity)

    def score(
        self, state: tuple[_Preference, ...], pod: PodInfo, snapshot: Snapshot, rows: Rows
    ) -> Sequence[ScoreTerm]:
        """Return the sum of the weights of the preferred terms that each node matches."""
        raw = np.zeros(len(snapshot.nodes.alive[rows]), dtype=np.int64)
        for preference in state:
            raw += preference.weight * term_matches(preference.term, snapshot.nodes)[rows].astype(np.int64)
        return (ScoreTerm(self.name, raw),)

    def normalize(self, term: ScoreTerm) -> IntArray:
        return scale_to_max(term.values.astype(np.int64, copy=False))

    def events(self) -> Sequence[EventInterest]:
        return (EventInterest(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, self._node_began_to_match),)

    def _node_began_to_match(self, pod: PodInfo, event: ClusterEvent) -> QueueingHint:
        """Skip what did not begin to match the Pod, even where it began to match `addedAffinity`: as upstream."""
        spec, node = pod.pod.spec, event.new
        if not isinstance(node, Node) or not _terms_match(self._added_terms, node) or not _node_matches(spec, node):
            return QueueingHint.SKIP
        matched = isinstance(event.old, Node) and _node_matches(spec, event.old)
        return QueueingHint.SKIP if matched else QueueingHint.QUEUE


@dataclass(frozen=True, slots=True)
class _LeftOut:
    """bool (n_rows,), True where the Pod's own terms leave the node out, or those of the profile; None: it has none."""

    by_pod: BoolArray
    by_profile: BoolArray | None


@dataclass(frozen=True, slots=True)
class _Preference:
    weight: int
    term: NodeSelectorTerm


def _node_affinity(spec: PodSpec) -> NodeAffinitySpec | None:
    return spec.affinity.node_affinity if spec.affinity is not None else None


def _preferences(affinity: NodeAffinitySpec) -> tuple[_Preference, ...]:
    """Return the terms that can add to a score; InvalidObjectError for one that cannot be read."""
    wanted = [one for one in affinity.preferred or () if one.weight and not is_empty_term(one.preference)]
    for one in wanted:
        check_term(one.preference)
    return tuple(_Preference(one.weight, one.preference) for one in wanted)


def _named_nodes(terms: Sequence[NodeSelectorTerm]) -> frozenset[str] | None:
    """Return the only nodes that the terms can mean; None unless every term names its nodes."""
    names: set[str] = set()
    for term in terms:
        named = [
            set(field.values or ())
            for field in term.match_fields or ()
            if field.key == NAME_FIELD and field.operator == "In"
        ]
        if not named:
            return None
        names |= set.intersection(*named)
    return frozenset(names) if terms else None


def _node_matches(spec: PodSpec, node: Node) -> bool:
    labels = node.metadata.labels or {}
    if any(labels.get(key) != value for key, value in (spec.node_selector or {}).items()):
        return False
    return _terms_match(required_terms(spec), node)


def _terms_match(terms: Sequence[NodeSelectorTerm] | None, node: Node) -> bool:
    """Return whether one node satisfies any of the terms; None asks for nothing."""
    if terms is None:
        return True
    labels, fields = node.metadata.labels or {}, {NAME_FIELD: node.metadata.name}
    return any(
        all(requirement_holds(one, labels) for one in term.match_expressions or ())
        and all(
            (fields.get(one.key, "") == (one.values or [""])[0]) == (one.operator == "In")
            for one in term.match_fields or ()
        )
        for term in matching_terms(terms)
    )
