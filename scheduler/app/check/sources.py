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
_KIND: Final = re.compile(r"^kind:[ \t]*(\w+)", re.MULTILINE)
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
        found = list(_within(name, data, problems))
        for part, content, locate in found:
            rule_files[part] = content
            places[part] = locate
        if not found:
            write = f"Write a document of kind {KIND}, or a ConfigMap with a key *.yaml that holds one"
            problems.append(Problem(name, 1, 1, f"no rule file is in it. {write}"))
    return Sources(rule_files, tuple(problems), places)


def _within(name: str, data: bytes, problems: list[Problem]) -> Iterator[tuple[str, bytes, Locate]]:
    """Yield the rule files of a file; what is wrong with a ConfigMap as YAML goes to `problems`."""
    documents = _documents(data)
    for number, document in enumerate(documents, 1):
        report = Report(name)
        root = compose(document, report, KIND)
        kind = _text(root, "kind") if root is not None else _kind_in(document)
        maps = _config_maps(root) if kind == "ConfigMap" or kind in _LISTS else []
        if maps:
            problems += report.problems
            text = document.decode().removeprefix("\ufeff")
            for one in maps:
                yield from _in_config_map(name, text, one)
        elif _is_rules(root, kind, is_alone=len(documents) == 1):
            part = name if len(documents) == 1 else f"{name}#{number}"
            yield part, document, _in_file(name)


def _is_rules(root: YamlNode | None, kind: str, *, is_alone: bool) -> bool:
    """Whether a document is to be read as rules: one alone is, whatever it says, and what may be ours and is broken."""
    if root is not None and kind in _LISTS:
        return False
    if is_alone or not kind:
        return True
    if root is None:
        return kind in (KIND, "ConfigMap", *_LISTS)
    return kind == KIND or (_text(root, "apiVersion") == API_VERSION and kind not in _OTHERS)


def _kind_in(document: bytes) -> str:
    """Return the kind that a document names which cannot be read as YAML; empty for none."""
    named = _KIND.search(document.decode(errors="replace"))
    return named[1] if named else ""


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
    data = _field(config_map, "data")
    for key, value in data.entries if isinstance(data, YamlMapping) else ():
        if not key.value.endswith(SUFFIXES) or not isinstance(value, YamlScalar):
            continue
        content = value.value.encode("utf-8", "surrogatepass")  # of an escape: told as what is not UTF-8
        if _text(compose(content, Report(name), KIND), "kind") not in _OTHERS:
            yield f"{name}:{key.line}#{key.value}", content, _in_scalar(name, text, value)


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
