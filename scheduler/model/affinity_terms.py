"""The terms of a Pod about other Pods, read once: who is meant, and within which kind of domain.

Source: kube-scheduler v1.37 framework AffinityTerm, GetAffinityTerms and PodInfo (behaviour).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from scheduler.errors import InvalidObjectError
from scheduler.model.objects import Pod, PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm
from scheduler.model.selector_sizes import affinity_size
from scheduler.model.selectors import Selector, joined, selector_fault, selector_of
from scheduler.model.unsupported import is_vast


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """Pods that `selector` matches, in `namespaces` or in those whose labels `namespace_selector` matches.

    `topology_key` is the node label whose values are the domains.
    """

    topology_key: str
    namespaces: frozenset[str]
    namespace_selector: Selector
    selector: Selector

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]) -> bool:
        """Return whether a Pod of this namespace, which has `namespace_labels`, is meant."""
        is_inside = namespace in self.namespaces or self.namespace_selector.matches(namespace_labels)
        return is_inside and self.selector.matches(labels)


@dataclass(frozen=True, slots=True)
class WeightedTerm:
    """`weight` is negative for anti-affinity."""

    weight: int
    term: AffinityTerm


@dataclass(frozen=True, slots=True)
class PodTerms:
    """All terms of a Pod. A list with one term that cannot be read is empty, and `faults` has its name and why.

    Names are kube-scheduler's: requiredAffinityTerms, requiredAntiAffinityTerms and the same with `preferred`.
    `are_few` where they are as few as nearly every Pod has.
    """

    required: tuple[AffinityTerm, ...] = ()
    required_anti: tuple[AffinityTerm, ...] = ()
    preferred: tuple[WeightedTerm, ...] = ()
    faults: Mapping[str, str] = field(default_factory=dict)
    are_few: bool = True

    @property
    def problem(self) -> str:
        """What kube-scheduler says of all faults, "" if there is none."""
        return joined(f"{name}: {text}" for name, text in self.faults.items())


REQUIRED = "requiredAffinityTerms"
REQUIRED_ANTI = "requiredAntiAffinityTerms"
_NOBODY = PodAffinity()
_NO_TERMS = PodTerms()


def terms_of(pod: Pod) -> PodTerms:
    """Return the terms of a Pod; what cannot be read is reported, never raised.

    None of a Pod that has more than can be read: to be placed by Vane it is refused (see `unsupported`).
    """
    affinity = pod.spec.affinity
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return _NO_TERMS
    size = affinity_size(pod)
    if is_vast(size):
        return _NO_TERMS
    near, far = affinity.pod_affinity or _NOBODY, affinity.pod_anti_affinity or _NOBODY
    faults: dict[str, str] = {}
    return PodTerms(
        _read(REQUIRED, near.required, pod, faults),
        _read(REQUIRED_ANTI, far.required, pod, faults),
        _weighted("preferredAffinityTerms", near.preferred, pod, faults, 1)
        + _weighted("preferredAntiAffinityTerms", far.preferred, pod, faults, -1),
        faults,
        size.is_small,
    )


def _weighted(
    name: str, terms: Sequence[WeightedPodAffinityTerm], pod: Pod, faults: dict[str, str], sign: int
) -> tuple[WeightedTerm, ...]:
    found = _read(name, [one.pod_affinity_term for one in terms], pod, faults)
    return tuple(WeightedTerm(sign * one.weight, term) for one, term in zip(terms, found, strict=False))


def _read(name: str, terms: Sequence[PodAffinityTerm], pod: Pod, faults: dict[str, str]) -> tuple[AffinityTerm, ...]:
    found = []
    for term in terms:
        try:
            selector, namespace_selector = selector_of(term.label_selector), selector_of(term.namespace_selector)
        except InvalidObjectError as error:
            selectors = (one for one in (term.label_selector, term.namespace_selector) if one is not None)
            faults[name] = next(filter(None, map(selector_fault, selectors)), str(error))
            return ()
        is_own_only = not term.namespaces and term.namespace_selector is None
        namespaces = frozenset((pod.metadata.namespace,) if is_own_only else term.namespaces or ())
        found.append(AffinityTerm(term.topology_key, namespaces, namespace_selector, selector))
    return tuple(found)
