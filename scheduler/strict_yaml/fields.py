"""Mappings and lists: which fields there may be, which are for later, and which one a typo meant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from scheduler.strict_yaml.composer import compose
from scheduler.strict_yaml.nodes import YamlMapping, YamlNode, YamlScalar, YamlSequence, is_broken
from scheduler.strict_yaml.report import Report, Scope, did_you_mean, got, unknown_field


@dataclass(frozen=True, slots=True)
class Shape:
    """The fields of one kind of mapping.

    `later` maps a planned field to what it is in words, `refused` one that has its place elsewhere to why, and what
    to write. `is_go`: null is what is not there, and an empty mapping may stand, as Go reads it.
    """

    fields: tuple[str, ...]
    required: tuple[str, ...] = ()
    later: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    is_go: bool = False


@dataclass(frozen=True, slots=True)
class Fields:
    """A mapping whose fields are all known; absent ones are None."""

    node: YamlNode
    scope: Scope
    found: Mapping[str, tuple[YamlScalar, YamlNode]]

    def __contains__(self, name: str) -> bool:
        return name in self.found

    def get(self, name: str) -> YamlNode | None:
        return self.found[name][1] if name in self.found else None

    def at(self, name: str) -> YamlNode:
        """Return the key of a field, else the whole mapping: where to say something about it."""
        return self.found[name][0] if name in self.found else self.node


def read_fields(node: YamlNode | None, scope: Scope, shape: Shape) -> Fields | None:
    """Return the fields of `node`, after reporting every one that does not belong and every one missing."""
    if node is not None and shape.is_go and is_null(node):
        return Fields(node, scope, {})
    mapping = read_mapping(node, scope, f"Write fields: {', '.join(shape.fields)}", may_be_empty=shape.is_go)
    if mapping is None:
        return None
    found: dict[str, tuple[YamlScalar, YamlNode]] = {}
    for key, value in mapping.entries:
        if key.value not in shape.fields:
            _refuse(key, scope, shape)
        elif not (shape.is_go and is_null(value)):
            found[key.value] = (key, value)
    for name in shape.required:
        if name not in found:
            scope.problem(mapping, f"`{name}` is missing. Write `{name}: …`")
    return Fields(mapping, scope, found)


def read_document(data: bytes, report: Report, shape: Shape, api_version: str, kind: str) -> Fields | None:
    """Return the top fields of a file of one kind, None where nothing in it can be read."""
    fields = read_fields(compose(data, report, kind), Scope(report), shape)
    if fields is not None:
        expect(fields, "apiVersion", api_version)
        expect(fields, "kind", kind)
    return fields


def expect(fields: Fields, name: str, wanted: str) -> None:
    """Report a field that holds anything but the one text that is known there."""
    node = fields.get(name)
    if node is None or is_broken(node) or (isinstance(node, YamlScalar) and node.value == wanted):
        return
    word = node.value if isinstance(node, YamlScalar) else ""
    what = f"not known, {got(node)}{did_you_mean(word, [wanted])}. Write `{name}: {wanted}`"
    fields.scope.inner(name).problem(node, what)


def read_mapping(node: YamlNode | None, scope: Scope, advice: str, *, may_be_empty: bool = False) -> YamlMapping | None:
    if node is None or is_broken(node):
        return None
    if not isinstance(node, YamlMapping):
        scope.problem(node, f"must be a mapping, {got(node)}. {advice}")
        return None
    if not node.entries and not may_be_empty:
        scope.problem(node, f"must be a mapping, got an empty one. {advice}")
        return None
    return node


def read_list(
    node: YamlNode | None, scope: Scope, advice: str, *, may_be_empty: bool = False
) -> Sequence[YamlNode] | None:
    if node is None or is_broken(node):
        return None
    if not isinstance(node, YamlSequence):
        scope.problem(node, f"must be a list, {got(node)}. {advice}")
        return None
    if not node.items and not may_be_empty:
        scope.problem(node, f"must be a list, got an empty one. {advice}")
        return None
    return node.items


def is_null(node: YamlNode) -> bool:
    return isinstance(node, YamlScalar) and node.is_null


def _refuse(key: YamlScalar, scope: Scope, shape: Shape) -> None:
    if scope.report.is_full:
        return
    if key.value in shape.later:
        scope.problem(key, f"not built yet: {shape.later[key.value]}, got '{key.value}'. Drop the field")
    elif key.value in shape.refused:
        scope.inner(key.value).problem(key, shape.refused[key.value])
    else:
        scope.problem(key, unknown_field(key.value, shape.fields))
