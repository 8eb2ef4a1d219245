"""Which events may help a Pod that InterPodAffinity refused.

As in kube-scheduler, a term's namespace selector is not resolved here and sees a namespace without labels: In and
Exists never match, NotIn and DoesNotExist match every namespace.

Source: kube-scheduler v1.37 interpodaffinity/plugin.go (behaviour).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from scheduler.framework.events import ClusterEvent, QueueingHint
from scheduler.model.affinity_terms import REQUIRED, REQUIRED_ANTI, AffinityTerm
from scheduler.model.objects import Node
from scheduler.model.pods import PodInfo

_QUEUE, _SKIP = QueueingHint.QUEUE, QueueingHint.SKIP
_NO_LABELS: Mapping[str, str] = {}


def own_labels_may_help(_pod: PodInfo, _event: ClusterEvent) -> QueueingHint:
    """The Pod's own labels changed: the anti-affinity of a placed Pod may no longer match it."""
    return _QUEUE


def pod_may_help(pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    """A placed Pod came, went or changed its labels."""
    old = event.old if isinstance(event.old, PodInfo) else None
    new = event.new if isinstance(event.new, PodInfo) else None
    if any(one is not None and not _has_place(one) for one in (old, new)):
        return _SKIP
    terms = pod.affinity_terms
    if REQUIRED in terms.faults or REQUIRED_ANTI in terms.faults:
        return _QUEUE
    if not terms.are_few:
        # To find out would take as long as to try.
        return _QUEUE
    if new is not None:
        comes_near = not _is_all(terms.required, old) and _is_all(terms.required, new)
        goes_away = _is_any(terms.required_anti, old) and not _is_any(terms.required_anti, new)
        return _QUEUE if comes_near or goes_away else _SKIP
    if old is None:
        return _SKIP
    theirs = old.affinity_terms
    if not theirs.are_few:
        return _QUEUE
    minded = _is_any(terms.required_anti, old) or REQUIRED_ANTI in theirs.faults or _is_any(theirs.required_anti, pod)
    return _QUEUE if minded else _SKIP


def node_may_help(pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    """A node came, or moved to another domain."""
    terms = pod.affinity_terms
    if REQUIRED in terms.faults or REQUIRED_ANTI in terms.faults:
        return _QUEUE
    before, after = _labels(event.old), _labels(event.new)
    joins = _changed(terms.required, before, after, after)
    # A node without the key takes every Pod as far as anti-affinity goes: a new one may be such a node.
    is_new = event.old is None and bool(terms.required_anti)
    leaves = _changed(terms.required_anti, before, after, before)
    return _QUEUE if joins or is_new or leaves else _SKIP


def _changed(
    terms: Iterable[AffinityTerm], before: Mapping[str, str], after: Mapping[str, str], needed: Mapping[str, str]
) -> bool:
    """Return whether any term's key has another value now, and has one among `needed`."""
    keys = (term.topology_key for term in terms)
    return any(key in needed and before.get(key) != after.get(key) for key in keys)


def _has_place(pod: PodInfo) -> bool:
    return bool(pod.pod.spec.node_name or pod.pod.status.nominated_node_name)


def _labels(node: object) -> Mapping[str, str]:
    return (node.metadata.labels or _NO_LABELS) if isinstance(node, Node) else _NO_LABELS


def _is_all(terms: Sequence[AffinityTerm], pod: PodInfo | None) -> bool:
    return pod is not None and bool(terms) and all(_means(term, pod) for term in terms)


def _is_any(terms: Sequence[AffinityTerm], pod: PodInfo | None) -> bool:
    return pod is not None and any(_means(term, pod) for term in terms)


def _means(term: AffinityTerm, pod: PodInfo) -> bool:
    return term.matches(pod.namespace, pod.labels, _NO_LABELS)
