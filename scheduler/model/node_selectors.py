"""Node selector terms: which can be read, and which say nothing.

Source: k8s.io/component-helpers v0.37 scheduling/corev1/nodeaffinity (behaviour).
"""

from __future__ import annotations

from scheduler.errors import InvalidObjectError
from scheduler.model.labels import check_requirement
from scheduler.model.objects import NodeSelectorTerm


def is_empty(term: NodeSelectorTerm) -> bool:
    return not term.match_expressions and not term.match_fields


def check_term(term: NodeSelectorTerm) -> None:
    """Raise InvalidObjectError where component-helpers would not parse the term."""
    for requirement in term.match_expressions or ():
        check_requirement(requirement)
    for field in term.match_fields or ():
        values = field.values or []
        if field.operator not in ("In", "NotIn") or len(values) != 1:
            found = f"{field.operator} {values!r}"
            raise InvalidObjectError(f"matchFields of {field.key!r}: got {found}. Write In or NotIn with one value")


def is_readable(term: NodeSelectorTerm) -> bool:
    try:
        check_term(term)
    except InvalidObjectError:
        return False
    return True
