"""A node as plain data, for those who check types by a model of their own, with the place of every value in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scheduler.strict_yaml.nodes import YamlMapping, YamlNode, YamlScalar, YamlSequence, is_broken
from scheduler.strict_yaml.report import Scope, got

Location = tuple[str | int, ...]
"""The way to a value: names of fields and numbers of items."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where the values of a document stand.

    `values` has them as `file:line:column`, `names` the names of fields; `root` is the path of the whole in its file.
    """

    root: str = ""
    values: Mapping[Location, str] = field(default_factory=dict)
    names: Mapping[Location, str] = field(default_factory=dict)

    def of(self, location: Location) -> str:
        """Return place and path of a value; of what is missing, the place of what it should stand in."""
        return f"{self._nearest(location)}: {self.path(location)}"

    def of_name(self, location: Location) -> str:
        """Return the place of a field's name, and the path of what it stands in, where there is one."""
        path = self.path(location[:-1])
        return f"{self.names[location]}: {path}" if path else self.names[location]

    def path(self, location: Location) -> str:
        return dotted((self.root, *location) if self.root else location)

    def _nearest(self, location: Location) -> str:
        known = (self.values.get(location[:length]) for length in range(len(location), -1, -1))
        return next(place for place in known if place is not None)


@dataclass(frozen=True, slots=True)
class Document:
    """Plain data: dicts, lists and scalars as YAML 1.1 types them."""

    value: Any
    places: Places


def read_plain(node: YamlNode, scope: Scope) -> Document:
    """Return a node as plain data; a scalar that has no value is reported, and becomes text.

    What has been reported already is left out of a mapping, and None in a list.
    """
    walk = _Walk(scope)
    value = walk.plain(node, scope, ())
    return Document(value, Places(scope.label, walk.values, walk.names))


def dotted(location: Location) -> str:
    """Return a location as people write it: `prometheus.url`, `rules[0]`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).removeprefix(".")


class _Walk:
    """One walk over the nodes of a document."""

    def __init__(self, scope: Scope) -> None:
        self.values: dict[Location, str] = {}
        self.names: dict[Location, str] = {}

    def plain(self, node: YamlNode, scope: Scope, at: Location) -> Any:
        self.values[at] = scope.where(node)
        if isinstance(node, YamlSequence):
            return [self.plain(item, scope.item(i), (*at, i)) for i, item in enumerate(node.items)]
        if isinstance(node, YamlMapping):
            return {
                key.value: self._field(key, value, scope, at) for key, value in node.entries if not is_broken(value)
            }
        return _scalar(node, scope)

    def _field(self, key: YamlScalar, value: YamlNode, scope: Scope, at: Location) -> Any:
        self.names[*at, key.value] = scope.where(key)
        return self.plain(value, scope.inner(key.value), (*at, key.value))


def _scalar(node: YamlNode, scope: Scope) -> Any:
    if not isinstance(node, YamlScalar):
        return None
    try:
        return node.plain
    except ValueError:
        scope.problem(node, f"not a valid value, {got(node)}. Write another, or put it in quotes if it is text")
        return node.value
