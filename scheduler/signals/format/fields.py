"""Mappings of a rule file: which fields there may be, which are for later, and which one a typo meant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from scheduler.signals.format.report import Scope, got, is_broken, nearest
from scheduler.strict_yaml import yaml_nodes
from scheduler.strict_yaml.yaml_nodes import Node, Scalar


@dataclass(frozen=True, slots=True)
class Shape:
    """The fields of one kind of mapping.

    `later` maps a planned field to what it is in words, `refused` one that has its place elsewhere to why, and what
    to write.
    """

    fields: tuple[str, ...]
    required: tuple[str, ...] = ()
    later: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fields:
    """A mapping whose fields are all known; absent ones are None."""

    node: yaml_nodes.Mapping
    scope: Scope
    found: Mapping[str, tuple[Scalar, Node]]

    def __contains__(self, name: str) -> bool:
        return name in self.found

    def get(self, name: str) -> Node | None:
        return self.found[name][1] if name in self.found else None

    def at(self, name: str) -> Node:
        """Return the key of a field, else the whole mapping: where to say something about it."""
        return self.found[name][0] if name in self.found else self.node


def read_fields(node: Node | None, scope: Scope, shape: Shape) -> Fields | None:
    """Return the fields of `node`, after reporting every one that does not belong and every one missing."""
    mapping = read_mapping(node, scope, f"Write fields: {', '.join(shape.fields)}")
    if mapping is None:
        return None
    found: dict[str, tuple[Scalar, Node]] = {}
    for key, value in mapping.entries:
        if key.value in shape.fields:
            found[key.value] = (key, value)
        else:
            _refuse(key, scope, shape)
    for name in shape.required:
        if name not in found:
            scope.problem(mapping, f"`{name}` is missing. Write `{name}: …`")
    return Fields(mapping, scope, found)


def expect(fields: Fields, name: str, wanted: str) -> None:
    """Report a field that holds anything but the one text that is known there."""
    node = fields.get(name)
    if node is None or is_broken(node) or (isinstance(node, Scalar) and node.value == wanted):
        return
    word = node.value if isinstance(node, Scalar) else ""
    fields.scope.inner(name).problem(node, f"not known, {got(node)}{nearest(word, [wanted])}. Write `{name}: {wanted}`")


def read_mapping(node: Node | None, scope: Scope, advice: str) -> yaml_nodes.Mapping | None:
    if node is None or is_broken(node):
        return None
    if not isinstance(node, yaml_nodes.Mapping):
        scope.problem(node, f"must be a mapping, {got(node)}. {advice}")
        return None
    if not node.entries:
        scope.problem(node, f"must be a mapping, got an empty one. {advice}")
        return None
    return node


def read_list(node: Node | None, scope: Scope, advice: str) -> Sequence[Node] | None:
    """Return the items of a list that is not empty."""
    if node is None or is_broken(node):
        return None
    if not isinstance(node, yaml_nodes.Sequence):
        scope.problem(node, f"must be a list, {got(node)}. {advice}")
        return None
    if not node.items:
        scope.problem(node, f"must be a list, got an empty one. {advice}")
        return None
    return node.items


def _refuse(key: Scalar, scope: Scope, shape: Shape) -> None:
    if scope.report.is_full:
        return
    if key.value in shape.later:
        scope.problem(key, f"not built yet: {shape.later[key.value]}, got '{key.value}'. Drop the field")
        return
    if key.value in shape.refused:
        scope.inner(key.value).problem(key, shape.refused[key.value])
        return
    known = f"Write one of: {', '.join(shape.fields)}"
    scope.problem(key, f"unknown field, {got(key)}{nearest(key.value, shape.fields)}. {known}")
