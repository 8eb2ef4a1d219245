"""What all API objects are made of.

Structs are `gc=False`: they hold no cycles, and a full collection over 50,000 Pods must not stall a
decision. Field names are the API's, in snake case; a field that is absent or null has the API's zero value.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec

from scheduler.errors import InvalidObjectError

MALFORMED_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for bytes that are not the JSON asked for, not UTF-8 or nested too deep."""


class Struct(msgspec.Struct, rename="camel", gc=False, frozen=True, kw_only=True, omit_defaults=True):
    """Base of all API structs: camelCase on the wire, immutable here."""


S = TypeVar("S")

Labels = dict[str, str]
ResourceList = dict[str, str | int | float]


class OwnerReference(Struct, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class ObjectMeta(Struct, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: Labels | None = None
    annotations: Labels | None = None
    owner_references: list[OwnerReference] | None = None
    deletion_timestamp: str | None = None


class Requirement(Struct, frozen=True):
    """One expression of a node selector term or of a label selector."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class LabelSelector(Struct, frozen=True):
    """As an API object holds it; `model.selectors` reads it. None and an empty one are not the same."""

    match_labels: Labels | None = None
    match_expressions: list[Requirement] | None = None


def what_can_be_read(raw: bytes | msgspec.Raw) -> tuple[ObjectMeta, dict[str, Any]]:
    """Return the metadata and, as far as it is a mapping, the spec as it stands."""
    try:
        loose: dict[str, Any] = msgspec.json.decode(raw, type=dict[str, Any])
    except MALFORMED_JSON as error:
        raise InvalidObjectError(f"metadata: {error}") from error
    metadata = _fitted(loose.get("metadata"), ObjectMeta)
    if metadata is None:
        raise InvalidObjectError(f"metadata: got {str(loose.get('metadata'))[:100]}")
    spec = loose.get("spec")
    return metadata, spec if isinstance(spec, dict) else {}


_PLACE = re.compile(r" - at `\$((?:\.\w+|\[\d+\]|\[\.\.\.\])+)`$")
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]|(\[\.\.\.\])")
_MOST_LEFT_OUT = 16


def fitting(raw: bytes | msgspec.Raw, kind: type[S]) -> S | None:
    """Return an object without the fields that do not fit its schema, None if too many do not."""
    try:
        loose: object = msgspec.json.decode(raw)
    except MALFORMED_JSON:
        return None
    return _fitted(loose, kind)


def _fitted(loose: object, kind: type[S]) -> S | None:
    for _ in range(_MOST_LEFT_OUT):
        try:
            return msgspec.convert(loose, kind)
        except msgspec.ValidationError as error:
            place = _PLACE.search(str(error))
            if place is None or not _leave_out(loose, place[1]):
                return None
    return None


def _leave_out(loose: Any, place: str) -> bool:
    """Take out what stands at a place as msgspec writes it, the whole mapping where it does not say which entry."""
    steps: list[str | int] = []
    for name, number, entry in _STEP.findall(place):
        if entry:
            break
        steps.append(name or int(number))
    if not steps:
        return False
    for step in steps[:-1]:
        loose = loose[step]
    del loose[steps[-1]]
    return True
