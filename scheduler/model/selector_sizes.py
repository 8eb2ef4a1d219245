"""How much a Pod asks for in label selectors: what all other Pods have to be compared with."""

from __future__ import annotations

from typing import NamedTuple

from scheduler.model.objects import Pod
from scheduler.model.structs import LabelSelector

_FEW_TERMS = 8
_FEW_WORDS = 128


class SelectorSize(NamedTuple):
    """`n_words` are the labels, requirements, values and namespaces of all terms."""

    n_terms: int
    n_words: int

    @property
    def is_small(self) -> bool:
        """What nearly every Pod asks for: worth keeping the counts of, for the Pods like it that come."""
        return self.n_terms <= _FEW_TERMS and self.n_words <= _FEW_WORDS


_NONE = SelectorSize(0, 0)


def affinity_size(pod: Pod) -> SelectorSize:
    """Return the size of all terms about other Pods."""
    affinity = pod.spec.affinity
    if affinity is None:
        return _NONE
    n_terms = n_words = 0
    for lists in (affinity.pod_affinity, affinity.pod_anti_affinity):
        if lists is None:
            continue
        terms = lists.required
        if lists.preferred:
            terms = [*terms, *[one.pod_affinity_term for one in lists.preferred]]
        n_terms += len(terms)
        for term in terms:
            n_words += _n_words(term.label_selector)
            if term.namespaces:
                n_words += len(term.namespaces)
            if term.namespace_selector is not None:
                n_words += _n_words(term.namespace_selector)
    return SelectorSize(n_terms, n_words)


def spread_size(pod: Pod) -> SelectorSize:
    """Return the size of all topology spread constraints."""
    constraints = pod.spec.topology_spread_constraints
    if not constraints:
        return _NONE
    n_words = sum(_n_words(one.label_selector) + len(one.match_label_keys or ()) for one in constraints)
    return SelectorSize(len(constraints), n_words)


def _n_words(selector: LabelSelector | None) -> int:
    if selector is None:
        return 0
    n_labels = len(selector.match_labels or ())
    if not selector.match_expressions:
        return n_labels
    return n_labels + sum(1 + len(one.values or ()) for one in selector.match_expressions)
