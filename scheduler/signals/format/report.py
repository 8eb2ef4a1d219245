"""Where a mistake is said: problems and warnings of one file, each with its place and its field."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterable, Set
from dataclasses import dataclass, field, replace
from typing import Final

from scheduler.errors import Problem
from scheduler.model.rules import Dialect
from scheduler.strict_yaml.yaml_nodes import (
    Broken,
    Fault,
    Mapping,
    Node,
    Scalar,
    Sequence,
    clip,
    offset_in_source,
    position,
)

MAX_PROBLEMS: Final = 200
"""Of one file; beyond, the file is broken as a whole and a longer list helps nobody."""
MAX_CANDIDATES: Final = 300


@dataclass(slots=True)
class Report:
    """Everything found in one file, and what its signals are read by.

    dialect
        The language of its expressions.
    servers
        The names of the Prometheus servers that there are; None where nobody knows.
    """

    file: str
    text: str = ""
    servers: Set[str] | None = None
    dialect: Dialect = Dialect.PROMETHEUS
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)

    @property
    def is_full(self) -> bool:
        return len(self.problems) >= MAX_PROBLEMS

    def fault(self, fault: Fault) -> None:
        if self.is_full:
            return
        message = fault.message
        if len(self.problems) == MAX_PROBLEMS - 1:
            message = f"more than {MAX_PROBLEMS - 1} problems, the rest is not looked for. Mend those above first"
        self.problems.append(Problem(self.file, fault.line, fault.column, message))


@dataclass(frozen=True, slots=True)
class Scope:
    """A field of a file, as messages name it; `label` is empty for the file itself."""

    report: Report
    label: str = ""

    def inner(self, name: str) -> Scope:
        return replace(self, label=f"{self.label}, {name}" if self.label else name)

    def problem(self, node: Node, message: str) -> None:
        """Report `message` at `node`, with the field named before it."""
        self.report.fault(Fault(node.line, node.column, self._said(message)))

    def problem_within(self, scalar: Scalar, offset: int, message: str) -> None:
        """Report `message` at the character `offset` of the scalar's value."""
        place = offset_in_source(self.report.text, scalar, offset)
        self.report.fault(Fault(*position(self.report.text, place), self._said(message)))

    def warning(self, node: Node, message: str) -> None:
        self.report.warnings.append(Problem(self.report.file, node.line, node.column, self._said(message)))

    def where(self, node: Node) -> str:
        return f"{self.report.file}:{node.line}:{node.column}"

    def _said(self, message: str) -> str:
        return f"{self.label}: {message}" if self.label else message


def problem_at(where: str, message: str) -> Problem:
    """Return a problem at a place that `Scope.where` has written down."""
    file, line, column = where.rsplit(":", 2)
    return Problem(file, int(line), int(column), message)


def got(node: Node) -> str:
    """Return what stands in the file, short, for the end of a sentence."""
    if isinstance(node, Mapping):
        return "got a mapping"
    if isinstance(node, Sequence):
        return "got a list"
    if isinstance(node, Scalar) and node.value == "" and not node.style:
        return "got nothing"
    return f"got {clip(node.value)!r}" if isinstance(node, Scalar) else "got something unreadable"


def nearest(word: str, known: Iterable[str]) -> str:
    """Return ` (did you mean "x"?)` where a known word is close, else nothing."""
    candidates = list(itertools.islice(known, MAX_CANDIDATES))
    close = difflib.get_close_matches(word[:80].lower(), candidates, n=1, cutoff=0.6)
    return f' (did you mean "{close[0]}"?)' if close else ""


def is_broken(node: Node | None) -> bool:
    """Whether there is nothing to read: absent, or reported already."""
    return node is None or isinstance(node, Broken)
