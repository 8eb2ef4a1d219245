"""Where a mistake is said: problems and warnings of one file, each with its place and its field."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from scheduler.errors import Problem
from scheduler.strict_yaml.nodes import YamlMapping, YamlNode, YamlScalar, YamlSequence

MAX_PROBLEMS: Final = 200
"""Of one file; beyond, the file is broken as a whole and a longer list helps nobody."""
MAX_CANDIDATES: Final = 300
_MAX_WORD: Final = 80


@dataclass(slots=True)
class Report:
    """Everything found in one file; `text` is what has been read of it."""

    file: str
    text: str = ""
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)

    @property
    def is_full(self) -> bool:
        return len(self.problems) >= MAX_PROBLEMS

    def problem(self, line: int, column: int, message: str) -> None:
        if self.is_full:
            return
        if len(self.problems) == MAX_PROBLEMS - 1:
            message = f"more than {MAX_PROBLEMS - 1} problems; checking stopped here. Fix those above first"
        self.problems.append(Problem(self.file, line, column, message))


@dataclass(frozen=True, slots=True)
class Scope:
    """A field of a file, as messages name it; `label` is empty for the file itself.

    `is_path`: fields are named by the way to them, as `profiles[0].plugins`, else in words, as `rule 'hot', filter`.
    """

    report: Report
    label: str = ""
    is_path: bool = False

    def inner(self, name: str) -> Scope:
        separator = "." if self.is_path else ", "
        return replace(self, label=f"{self.label}{separator}{name}" if self.label else name)

    def item(self, number: int) -> Scope:
        """Return the scope of one item of a list, counted from 0."""
        return replace(self, label=f"{self.label}[{number}]")

    def problem(self, node: YamlNode, message: str) -> None:
        """Report `message` at `node`, with the field named before it."""
        self.report.problem(node.line, node.column, self._said(message))

    def problem_within(self, scalar: YamlScalar, offset: int, message: str) -> None:
        """Report `message` at the character `offset` of the scalar's value."""
        place = offset_in_source(self.report.text, scalar, offset)
        self.report.problem(*position(self.report.text, place), self._said(message))

    def warning(self, node: YamlNode, message: str) -> None:
        self.report.warnings.append(Problem(self.report.file, node.line, node.column, self._said(message)))

    def where(self, node: YamlNode) -> str:
        return f"{self.report.file}:{node.line}:{node.column}"

    def _said(self, message: str) -> str:
        return f"{self.label}: {message}" if self.label else message


def problem_at(where: str, message: str) -> Problem:
    """Return a problem at a place that `Scope.where` has written down."""
    file, line, column = where.rsplit(":", 2)
    return Problem(file, int(line), int(column), message)


def got(node: YamlNode) -> str:
    """Return what stands in the file, short, for the end of a sentence; a number as it is, words in quotes."""
    if isinstance(node, YamlMapping):
        return "got a mapping"
    if isinstance(node, YamlSequence):
        return "got a list"
    if not isinstance(node, YamlScalar):
        return "got something unreadable"
    if node.value == "" and not node.style:
        return "got nothing"
    is_word = node.is_text or node.value.isalpha()
    return f"got {clip(node.value)!r}" if is_word else f"got {clip(node.value)}"


def unknown_field(name: str, known: Iterable[str]) -> str:
    """Return what is said of a field that does not belong where it stands."""
    names = list(known)
    return f"unknown field, got {clip(name)!r}{did_you_mean(name, names)}. Write one of: {', '.join(names)}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ` (did you mean "x"?)` where a known word is close, else nothing."""
    close = closest(word, known)
    return f' (did you mean "{close}"?)' if close else ""


def closest(word: str, known: Iterable[str], least: float = 0.6) -> str:
    """Return the known word that is most like `word`, as it is or in small letters; empty where none is.

    `least` is the likeness that is enough: 1 for equal words, as difflib measures it.
    """
    candidates = list(itertools.islice(known, MAX_CANDIDATES))
    for spelling in (word[:_MAX_WORD], word[:_MAX_WORD].lower()):
        close = difflib.get_close_matches(spelling, candidates, n=1, cutoff=least)
        if close:
            return close[0]
    return ""


def clip(text: str, length: int = 60) -> str:
    """Return `text` short enough to be shown in a message."""
    return text if len(text) <= length else text[: length - 1] + "…"


def position(text: str, offset: int) -> tuple[int, int]:
    """Return line and column, counted from 1, of an offset into `text`."""
    before = text[:offset].replace("\r\n", "\n").replace("\r", "\n")
    return before.count("\n") + 1, len(before) - before.rfind("\n")


def offset_in_source(text: str, scalar: YamlScalar, offset: int) -> int:
    """Return where in `text` the character `offset` of the scalar's value stands.

    Folding and indentation change white space only, so characters are matched without it. Where an escape
    changes more than that, the answer is the start of the scalar.
    """
    source = text[scalar.start : scalar.end]
    skip = 0
    if scalar.style in ("'", '"'):
        skip = 1
        source = source[:-1]
    elif scalar.style:
        skip = source.find("\n") + 1
    places = [scalar.start + skip + i for i, char in enumerate(source[skip:]) if not char.isspace()]
    if [text[place] for place in places] != [char for char in scalar.value if not char.isspace()]:
        return scalar.start
    wanted = sum(not char.isspace() for char in scalar.value[:offset])
    return places[wanted] if wanted < len(places) else scalar.end
