"""The nodes that a Pod's own spec lets it go to: what it requires of them, in columns, and which taints it tolerates.

Source: k8s.io/component-helpers v0.37 scheduling/corev1/nodeaffinity and k8s.io/api core/v1/toleration.go (behaviour).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from scheduler.model.arrays import BoolArray
from scheduler.model.objects import NodeSelectorTerm, PodSpec, Taint, Toleration
from scheduler.model.selectors import is_empty_term, is_readable_term
from scheduler.model.structs import Requirement
from scheduler.model.views import NodeView

NAME_FIELD = "metadata.name"

REFUSING_EFFECTS = ("NoSchedule", "NoExecute")
"""The effects of taints that keep Pods away; others only ask them to avoid the node."""


def required_terms(spec: PodSpec) -> Sequence[NodeSelectorTerm] | None:
    """Return the required terms; None where the Pod has no required affinity at all."""
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    if affinity is None or affinity.required is None:
        return None
    return affinity.required.node_selector_terms or ()


def matching_terms(terms: Sequence[NodeSelectorTerm]) -> list[NodeSelectorTerm]:
    """Return the required terms that can match a node: not empty, and readable."""
    return [term for term in terms if not is_empty_term(term) and is_readable_term(term)]


def required_matches(
    selector: Mapping[str, str], terms: Sequence[NodeSelectorTerm] | None, nodes: NodeView
) -> BoolArray:
    """Return bool (n_rows,): every label of the selector, and any of the terms."""
    matches = np.ones(nodes.n_rows, dtype=np.bool_)
    for key, value in selector.items():
        matches &= nodes.label_matches(Requirement(key=key, operator="In", values=[value]))
    if terms is None:
        return matches
    any_term = np.zeros(nodes.n_rows, dtype=np.bool_)
    for term in matching_terms(terms):
        any_term |= term_matches(term, nodes)
    return matches & any_term


def term_matches(term: NodeSelectorTerm, nodes: NodeView) -> BoolArray:
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
    if field.key != NAME_FIELD:
        # A node has no other field, and what it lacks reads as the empty string.
        equal[:] = wanted == ""
    else:
        row = nodes.row_of(wanted)
        if row is not None:
            equal[row] = True
    return equal if field.operator == "In" else ~equal


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Return whether any toleration covers the taint; Lt and Gt never do (their gate is off in 1.37)."""
    return any(_covers(toleration, taint) for toleration in tolerations)


def _covers(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        # Also without a key: kube-scheduler compares the value even then.
        return toleration.value == taint.value
    return toleration.operator == "Exists"
