"""Rule files as they are deployed: several documents in a file, ConfigMaps that hold rule files, lists of ConfigMaps.

`vane run` reads files that a ConfigMap has been mounted as. Here the same rules are found in manifests, and mistakes
are told with their place there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from scheduler.errors import Problem
from scheduler.signals.files import SUFFIXES
from scheduler.signals.format.rule_files import API_VERSION, KIND
from scheduler.strict_yaml.composer import MAX_BYTES, compose
from scheduler.strict_yaml.nodes import YamlMapping, YamlNode, YamlScalar, YamlSequence
from scheduler.strict_yaml.report import Report, offset_in_source, position

_MARK: Final = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_OTHERS: Final = frozenset({"VaneConfiguration", "RuleTests"})
_LISTS: Final = frozenset({"List", "ConfigMapList"})

Locate = Callable[[Problem], Problem]


@dataclass(frozen=True, slots=True)
class Sources:
    """Rule files by name; `problems` are of the manifests themselves."""

    rule_files: Mapping[str, bytes]
    problems: tuple[Problem, ...]
    places: Mapping[str, Locate]

    def located(self, problems: Sequence[Problem]) -> list[Problem]:
        """Return problems of the rule files at their places in what was given."""
        return [self.places[one.file](one) if one.file in self.places else one for one in problems]


def sources_of(files: Mapping[str, bytes]) -> Sources:
    """Return the rule files within files, content by name; what is no manifest is a rule file itself."""
    rule_files: dict[str, bytes] = {}
    places: dict[str, Locate] = {}
    problems: list[Problem] = []
    for name, data in files.items():
        found = list(_within(name, data))
        for part, content, locate in found:
            rule_files[part] = content
            places[part] = locate
        if not found:
            write = f"Write a document of kind {KIND}, or a ConfigMap with a key *.yaml that holds one"
            problems.append(Problem(name, 1, 1, f"no rule file is in it. {write}"))
    return Sources(rule_files, tuple(problems), places)


def _within(name: str, data: bytes) -> Iterator[tuple[str, bytes, Locate]]:
    documents = _documents(data)
    for number, document in enumerate(documents, 1):
        root = compose(document, Report(name), KIND)
        kind = _text(root, "kind")
        maps = _config_maps(root) if kind == "ConfigMap" or kind in _LISTS else []
        if maps:
            text = document.decode().removeprefix("\ufeff")
            for one in maps:
                yield from _in_config_map(name, text, one)
        elif kind not in _LISTS and _is_rules(root, kind, is_alone=len(documents) == 1):
            part = name if len(documents) == 1 else f"{name}#{number}"
            yield part, document, _in_file(name)


def _is_rules(root: YamlNode | None, kind: str, *, is_alone: bool) -> bool:
    """Whether a document is meant to have rules; one alone is, whatever it says."""
    if is_alone or (isinstance(root, YamlMapping) and not kind):
        return True
    return kind == KIND or (_text(root, "apiVersion") == API_VERSION and kind not in _OTHERS)


def _documents(data: bytes) -> list[bytes]:
    """Return the documents of a file, each at its place: what stands before is left out but for its lines."""
    if len(data) > MAX_BYTES:
        return [data]
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return [data]
    starts = [0, *(match.start() for match in _MARK.finditer(text)), len(text)]
    parts = []
    for start, end in pairwise(starts):
        inside = text[start:end].removeprefix("---")
        if all(not line.strip() or line.lstrip().startswith("#") for line in inside.split("\n")):
            continue
        parts.append("\n" * text.count("\n", 0, start) + text[start:end])
    return [part.encode() for part in parts] if len(parts) > 1 else [data]


def _config_maps(root: YamlNode | None) -> list[YamlMapping]:
    if _text(root, "kind") == "ConfigMap" and isinstance(root, YamlMapping):
        return [root]
    items = _field(root, "items")
    listed = items.items if isinstance(items, YamlSequence) else ()
    return [one for one in listed if isinstance(one, YamlMapping) and _text(one, "kind") == "ConfigMap"]


def _in_config_map(name: str, text: str, config_map: YamlMapping) -> Iterator[tuple[str, bytes, Locate]]:
    data, map_name = _field(config_map, "data"), _text(_field(config_map, "metadata"), "name")
    for key, value in data.entries if isinstance(data, YamlMapping) else ():
        if not key.value.endswith(SUFFIXES) or not isinstance(value, YamlScalar):
            continue
        content = value.value.encode()
        if _text(compose(content, Report(name), KIND), "kind") not in _OTHERS:
            yield f"{name}#{map_name}/{key.value}", content, _in_scalar(name, text, value)


def _in_file(name: str) -> Locate:
    return lambda problem: replace(problem, file=name)


def _in_scalar(name: str, text: str, scalar: YamlScalar) -> Locate:
    def locate(problem: Problem) -> Problem:
        lines = scalar.value.split("\n")
        offset = sum(len(line) + 1 for line in lines[: problem.line - 1]) + problem.column - 1
        line, column = position(text, offset_in_source(text, scalar, offset))
        return Problem(name, line, column, problem.message)

    return locate


def _field(node: YamlNode | None, name: str) -> YamlNode | None:
    entries = node.entries if isinstance(node, YamlMapping) else ()
    return next((value for key, value in entries if key.value == name), None)


def _text(node: YamlNode | None, name: str) -> str:
    found = _field(node, name)
    return found.value if isinstance(found, YamlScalar) else ""
