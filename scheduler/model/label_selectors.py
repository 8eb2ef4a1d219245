"""Label selectors, checked and made comparable: equal selectors are one key in an index.

Source: k8s.io/apimachinery pkg/labels and pkg/apis/meta/v1 LabelSelectorAsSelector (behaviour).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scheduler.errors import InvalidObjectError
from scheduler.model.labels import check_requirement, requirement_holds
from scheduler.model.structs import LabelSelector, Requirement


@dataclass(frozen=True, slots=True)
class Term:
    """One requirement with its values in order, once each."""

    key: str
    operator: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Selector:
    """All terms hold; no terms: everything matches, unless `is_nothing`."""

    terms: tuple[Term, ...] = ()
    is_nothing: bool = False

    @property
    def is_everything(self) -> bool:
        return not self.terms and not self.is_nothing

    def matches(self, labels: Mapping[str, str]) -> bool:
        return not self.is_nothing and all(requirement_holds(term, labels) for term in self.terms)

    def also(self, requirements: Sequence[Requirement]) -> Selector:
        """Return the selector with more requirements, which have been checked."""
        return self if self.is_nothing else Selector(_canonical([*map(_requirement, self.terms), *requirements]))


NOTHING = Selector(is_nothing=True)
EVERYTHING = Selector()


def selector_of(selector: LabelSelector | None) -> Selector:
    """Return what an API object's selector means; None matches nothing, an empty one everything.

    Raises
    ------
    InvalidObjectError
        Where LabelSelectorAsSelector would fail.
    """
    if selector is None:
        return NOTHING
    requirements = [
        Requirement(key=key, operator="In", values=[value]) for key, value in (selector.match_labels or {}).items()
    ]
    for requirement in selector.match_expressions or ():
        if requirement.operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
            found = f"operator of {requirement.key!r}: got {requirement.operator!r}"
            raise InvalidObjectError(f"{found}. Write In, NotIn, Exists or DoesNotExist")
        requirements.append(requirement)
    for requirement in requirements:
        check_requirement(requirement)
    return Selector(_canonical(requirements))


def selector_of_set(labels: Mapping[str, str]) -> Selector:
    """Return the selector of a plain map, as Services and ReplicationControllers have it; unchecked, as upstream."""
    return Selector(_canonical([Requirement(key=key, operator="In", values=[value]) for key, value in labels.items()]))


def _canonical(requirements: Sequence[Requirement]) -> tuple[Term, ...]:
    terms = {Term(one.key, one.operator, tuple(sorted(set(one.values or ())))) for one in requirements}
    return tuple(sorted(terms, key=lambda term: (term.key, term.operator, term.values)))


def _requirement(term: Term) -> Requirement:
    return Requirement(key=term.key, operator=term.operator, values=list(term.values))
