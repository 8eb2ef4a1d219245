"""NodeAffinity: nodes chosen by their labels, by `nodeSelector` and `affinity.nodeAffinity`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from scheduler.errors import InvalidObjectError
from scheduler.framework.events import Action, ClusterEvent, EventInterest, QueueingHint, Resource
from scheduler.framework.plugin import FilterPlugin, PreFilterPlugin, PreScorePlugin, ScorePlugin
from scheduler.framework.status import SKIP, Code, PreFilterResult, Rejection, ScoreTerm, Status
from scheduler.model.arrays import BoolArray, IntArray, Rows
from scheduler.model.labels import check_requirement, requirement_holds
from scheduler.model.objects import Node, NodeSelectorTerm, PodSpec
from scheduler.model.objects import NodeAffinity as NodeAffinitySpec
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from scheduler.model.structs import Requirement
from scheduler.model.views import NodeView
from scheduler.plugins.normalize import scale_to_max

REASON = "node(s) didn't match Pod's node affinity/selector"
REASON_CONFLICT = "pod affinity terms conflict"

_NAME_FIELD = "metadata.name"


class NodeAffinity(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Refuses nodes that `nodeSelector` or the required terms leave out; scores the preferred terms.

    Labels do not change within a cycle, so PreFilter decides for all rows at once and Filter only gathers.

    Source: kube-scheduler v1.37 nodeaffinity/node_affinity.go and k8s.io/component-helpers
    scheduling/corev1/nodeaffinity (behaviour).
    """

    def prefilter(self, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult | Status:
        """Return bool (n_rows,), True where the node is left out, as the state."""
        spec = pod.pod.spec
        terms = _required_terms(spec)
        if terms is None and spec.node_selector is None:
            return SKIP
        names = _named_nodes(terms or ())
        if names is not None and not names:
            return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (REASON_CONFLICT,))
        return PreFilterResult(~_required_matches(spec.node_selector or {}, terms, snapshot.nodes), names)

    def filter(self, state: BoolArray, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[Rejection]:
        return (Rejection(state[rows], Code.UNSCHEDULABLE_AND_UNRESOLVABLE, REASON),)

    def prescore(self, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> tuple[_Preference, ...] | Status:
        """Return the preferred terms, checked; InvalidObjectError for one that cannot be read fails the attempt."""
        affinity = _node_affinity(pod.pod.spec)
        if affinity is None or affinity.preferred is None:
            return SKIP
        wanted = [one for one in affinity.preferred if one.weight and not _is_empty(one.preference)]
        for one in wanted:
            _check_term(one.preference)
        return tuple(_Preference(one.weight, one.preference) for one in wanted)

    def score(
        self, state: tuple[_Preference, ...], pod: PodInfo, snapshot: Snapshot, rows: Rows
    ) -> Sequence[ScoreTerm]:
        """Return the sum of the weights of the preferred terms that each node matches."""
        raw = np.zeros(len(snapshot.nodes.alive[rows]), dtype=np.int64)
        for preference in state:
            raw += preference.weight * _term_matches(preference.term, snapshot.nodes)[rows].astype(np.int64)
        return (ScoreTerm(self.name, raw),)

    def normalize(self, term: ScoreTerm) -> IntArray:
        return scale_to_max(term.values.astype(np.int64, copy=False))

    def events(self) -> Sequence[EventInterest]:
        return (EventInterest(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, _node_began_to_match),)


@dataclass(frozen=True, slots=True)
class _Preference:
    weight: int
    term: NodeSelectorTerm


def _node_affinity(spec: PodSpec) -> NodeAffinitySpec | None:
    return spec.affinity.node_affinity if spec.affinity is not None else None


def _required_terms(spec: PodSpec) -> Sequence[NodeSelectorTerm] | None:
    """Return the required terms; None where the Pod has no required affinity at all."""
    affinity = _node_affinity(spec)
    if affinity is None or affinity.required is None:
        return None
    return affinity.required.node_selector_terms or ()


def _named_nodes(terms: Sequence[NodeSelectorTerm]) -> frozenset[str] | None:
    """Return the only nodes that the terms can mean; None unless every term names its nodes."""
    names: set[str] = set()
    for term in terms:
        named = [
            set(field.values or ())
            for field in term.match_fields or ()
            if field.key == _NAME_FIELD and field.operator == "In"
        ]
        if not named:
            return None
        names |= set.intersection(*named)
    return frozenset(names) if terms else None


def _is_empty(term: NodeSelectorTerm) -> bool:
    return not term.match_expressions and not term.match_fields


def _check_term(term: NodeSelectorTerm) -> None:
    """Raise InvalidObjectError where component-helpers would not parse the term."""
    for requirement in term.match_expressions or ():
        check_requirement(requirement)
    for field in term.match_fields or ():
        values = field.values or []
        if field.operator not in ("In", "NotIn") or len(values) != 1:
            found = f"{field.operator} {values!r}"
            raise InvalidObjectError(f"matchFields of {field.key!r}: got {found}. Write In or NotIn with one value")


def _is_readable(term: NodeSelectorTerm) -> bool:
    try:
        _check_term(term)
    except InvalidObjectError:
        return False
    return True


def _matching_terms(terms: Sequence[NodeSelectorTerm]) -> list[NodeSelectorTerm]:
    """Return the required terms that can match a node: not empty, and readable."""
    return [term for term in terms if not _is_empty(term) and _is_readable(term)]


def _required_matches(
    selector: Mapping[str, str], terms: Sequence[NodeSelectorTerm] | None, nodes: NodeView
) -> BoolArray:
    """Return bool (n_rows,): every label of the selector, and any of the terms."""
    matches = np.ones(nodes.n_rows, dtype=np.bool_)
    for key, value in selector.items():
        matches &= nodes.label_matches(Requirement(key=key, operator="In", values=[value]))
    if terms is None:
        return matches
    any_term = np.zeros(nodes.n_rows, dtype=np.bool_)
    for term in _matching_terms(terms):
        any_term |= _term_matches(term, nodes)
    return matches & any_term


def _term_matches(term: NodeSelectorTerm, nodes: NodeView) -> BoolArray:
    """Return bool (n_rows,): every expression and every field of a readable term that is not empty."""
    matches = np.ones(nodes.n_rows, dtype=np.bool_)
    for requirement in term.match_expressions or ():
        matches &= nodes.label_matches(requirement)
    for field in term.match_fields or ():
        matches &= _field_matches(field, nodes)
    return matches


def _field_matches(field: Requirement, nodes: NodeView) -> BoolArray:
    wanted = (field.values or [""])[0]
    equal = np.zeros(nodes.n_rows, dtype=np.bool_)
    if field.key != _NAME_FIELD:
        # A node has no other field, and what it lacks reads as the empty string.
        equal[:] = wanted == ""
    else:
        row = nodes.row_of(wanted)
        if row is not None:
            equal[row] = True
    return equal if field.operator == "In" else ~equal


def _node_began_to_match(pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    matched = isinstance(event.old, Node) and _node_matches(pod.pod.spec, event.old)
    matches = isinstance(event.new, Node) and _node_matches(pod.pod.spec, event.new)
    return QueueingHint.QUEUE if matches and not matched else QueueingHint.SKIP


def _node_matches(spec: PodSpec, node: Node) -> bool:
    labels = node.metadata.labels or {}
    if any(labels.get(key) != value for key, value in (spec.node_selector or {}).items()):
        return False
    terms = _required_terms(spec)
    if terms is None:
        return True
    fields = {_NAME_FIELD: node.metadata.name}
    return any(
        all(requirement_holds(one, labels) for one in term.match_expressions or ())
        and all(
            (fields.get(one.key, "") == (one.values or [""])[0]) == (one.operator == "In")
            for one in term.match_fields or ()
        )
        for term in _matching_terms(terms)
    )
