"""The configuration file as plain data, with the place of every key, so that each message can say where."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml

from scheduler.errors import ConfigError

MAX_BYTES: Final = 1 << 20

Location = tuple[str | int, ...]
"""The way to a value: names of fields and numbers of items."""


def read_document(path: Path, places: dict[Location, str], problems: list[str]) -> Any:
    """Return the one document of a YAML file; notes where every key and item stands, and keys written twice.

    Raises
    ------
    ConfigError
        Where the file cannot be read, is over 1 MiB, or is no YAML; aliases count as none, since they can make a
        small file enormous.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be read, got {error.strerror!r}. Allow reading it, or fix --config"
        ) from error
    if len(content) > MAX_BYTES:
        raise ConfigError(f"{path}: must be at most {MAX_BYTES} bytes. Write a smaller file")
    try:
        loader = _Loader(content)
        try:
            node = loader.get_single_node()
            return None if node is None else _Reading(path, loader, places, problems).plain(node, ())
        finally:
            loader.dispose()
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None) or str(error)
        raise ConfigError(
            f"{_spot(path, mark) if mark else path}: must be YAML, got {problem}. Fix the file"
        ) from error


def dotted(location: Location) -> str:
    """Return a location as people write it: `prometheus.url`, `rules[0]`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).removeprefix(".")


class _Loader(yaml.SafeLoader):
    """Composes without aliases."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.MarkedYAMLError(problem="an alias, to be written out", problem_mark=self.peek_event().start_mark)  # type: ignore[no-untyped-call]  # types-PyYAML
        return super().compose_node(parent, index)


class _Reading:
    """One walk over the nodes of one file."""

    def __init__(self, path: Path, loader: _Loader, places: dict[Location, str], problems: list[str]) -> None:
        self._path = path
        self._loader = loader
        self._places = places
        self._problems = problems

    def plain(self, node: yaml.Node, at: Location) -> Any:
        if isinstance(node, yaml.SequenceNode):
            for i, item in enumerate(node.value):
                self._places[(*at, i)] = _spot(self._path, item.start_mark)
            return [self.plain(item, (*at, i)) for i, item in enumerate(node.value)]
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, at)
        return self._loader.construct_object(node, deep=True)

    def _mapping(self, node: yaml.MappingNode, at: Location) -> dict[str, Any]:
        plain: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else "?"
            place = _spot(self._path, key_node.start_mark)
            if key in plain:
                self._problems.append(f"{place}: {dotted((*at, key))}: written twice. Drop one")
            self._places[(*at, key)] = place
            plain[key] = self.plain(value_node, (*at, key))
        return plain


def _spot(path: Path, mark: Any) -> str:
    return f"{path}:{mark.line + 1}:{mark.column + 1}"
