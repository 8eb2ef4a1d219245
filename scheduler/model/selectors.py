"""Selectors: of labels, comparable as keys of an index, and of nodes; what is wrong with one that cannot be read.

Equal label selectors are one key. The texts are kube-scheduler's: a Pod's owner reads them in the Pod's condition.

Source: k8s.io/apimachinery v0.37 pkg/labels, pkg/apis/meta/v1 LabelSelectorAsSelector, pkg/api/validate/content and
pkg/util/validation/field; k8s.io/component-helpers v0.37 scheduling/corev1/nodeaffinity (behaviour and texts).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from scheduler.errors import InvalidObjectError
from scheduler.model.labels import check_requirement, requirement_holds
from scheduler.model.objects import NodeSelectorTerm
from scheduler.model.structs import LabelSelector, Requirement

_MAX_LABEL = 63
_MAX_PREFIX = 253
_EMPTY = "must be non-empty"
_KEY_FORMAT = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_PREFIX_FORMAT = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_CHARACTERS = (
    "consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_KEY = f"must {_CHARACTERS} (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_KEY_FORMAT}')"
_VALUE = (
    f"a valid label must be an empty string or {_CHARACTERS}"
    f" (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '({_KEY_FORMAT})?')"
)
_PREFIX = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and"
    f" end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_PREFIX_FORMAT}')"
)
_WANTED = {
    "In": "for 'in', 'notin' operators, values set can't be empty",
    "NotIn": "for 'in', 'notin' operators, values set can't be empty",
    "Exists": "values set must be empty for exists and does not exist",
    "DoesNotExist": "values set must be empty for exists and does not exist",
}


@dataclass(frozen=True, slots=True)
class SelectorTerm:
    """One requirement with its values in order, once each."""

    key: str
    operator: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Selector:
    """All terms hold; no terms: everything matches, unless `is_nothing`."""

    terms: tuple[SelectorTerm, ...] = ()
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


def _canonical(requirements: Sequence[Requirement]) -> tuple[SelectorTerm, ...]:
    terms = {SelectorTerm(one.key, one.operator, tuple(sorted(set(one.values or ())))) for one in requirements}
    return tuple(sorted(terms, key=lambda term: (term.key, term.operator, term.values)))


def _requirement(term: SelectorTerm) -> Requirement:
    return Requirement(key=term.key, operator=term.operator, values=list(term.values))


def is_empty_term(term: NodeSelectorTerm) -> bool:
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


def is_readable_term(term: NodeSelectorTerm) -> bool:
    try:
        check_term(term)
    except InvalidObjectError:
        return False
    return True


def selector_fault(selector: LabelSelector) -> str:
    """Return the text for the first requirement that cannot be read, "" if there is none; labels come first."""
    for key, value in sorted((selector.match_labels or {}).items()):
        fault = joined(_faults(Requirement(key=key, operator="In", values=[value])))
        if fault:
            return fault
    for requirement in selector.match_expressions or ():
        if requirement.operator not in _WANTED:
            return f"{_json(requirement.operator)} is not a valid label selector operator"
        fault = joined(_faults(requirement))
        if fault:
            return fault
    return ""


def joined(faults: Iterable[str]) -> str:
    """Return several faults as apimachinery's Aggregate writes them, each once."""
    texts = list(dict.fromkeys(faults))
    return f"[{', '.join(texts)}]" if len(texts) > 1 else "".join(texts)


def _faults(requirement: Requirement) -> Iterator[str]:
    key, values = requirement.key, requirement.values or []
    key_faults = "; ".join(_key_faults(key))
    if key_faults:
        yield f"key: Invalid value: {_json(key)}: {key_faults}"
    if bool(values) != (requirement.operator in ("In", "NotIn")):
        yield f"values: Invalid value: {_json(values or None)}: {_WANTED[requirement.operator]}"
    for number, value in enumerate(values):
        value_faults = "; ".join(_part_faults(value, _MAX_LABEL, f"({_KEY_FORMAT})?", _VALUE))
        if value_faults:
            yield f"values[{number}][{key}]: Invalid value: {_json(value)}: {value_faults}"


def _key_faults(key: str) -> Iterator[str]:
    *prefixes, name = key.split("/")
    if len(prefixes) > 1:
        yield f"a valid label key {_KEY} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return
    for prefix in prefixes:
        found = _part_faults(prefix, _MAX_PREFIX, _PREFIX_FORMAT, _PREFIX) if prefix else (_EMPTY,)
        yield from (f"prefix part {text}" for text in found)
    empty = () if name else (_EMPTY,)
    yield from (f"name part {text}" for text in (*empty, *_part_faults(name, _MAX_LABEL, _KEY_FORMAT, _KEY)))


def _part_faults(part: str, limit: int, pattern: str, text: str) -> Iterator[str]:
    if len(part.encode()) > limit:
        yield f"must be no more than {limit} bytes"
    if not re.fullmatch(pattern, part):
        yield text


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
