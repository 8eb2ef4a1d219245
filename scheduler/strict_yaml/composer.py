"""YAML text in, one tree of nodes out, and every fault of the text on the way.

Only one document of plain mappings, lists and scalars is let through; what else YAML can do (aliases, tags,
several documents, keys that are not text) is a problem.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from scheduler.strict_yaml.nodes import BrokenNode, YamlMapping, YamlNode, YamlScalar, YamlSequence
from scheduler.strict_yaml.report import Report, clip, position

MAX_BYTES: Final = 1 << 20
MAX_DEPTH: Final = 20

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# Besides control characters, the three rare line breaks: YAML counts them as line ends, editors do not.
_UNPRINTABLE: Final = re.compile(
    r"[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)


@dataclass(slots=True)
class _Open:
    """A mapping or list whose end has not come yet."""

    event: Any
    items: list[YamlNode] = field(default_factory=list)


def compose(data: bytes, report: Report, kind: str) -> YamlNode | None:
    """Return the root of a file, None where it cannot be had; what is wrong with the text goes to `report`.

    Parameters
    ----------
    data
        The file. One over 1 MiB is refused, so that it may come cut, one byte longer than that.
    kind
        What an empty file is told to begin with.
    """
    if len(data) > MAX_BYTES:
        report.problem(1, 1, "a file may have 1 MiB, got more. Split it, or write less")
        return None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line, column = position(data[: error.start].decode("utf-8", "replace"), error.start)
        byte = data[error.start]
        report.problem(line, column, f"the file is not UTF-8, got byte 0x{byte:02x}. Save it as UTF-8")
        return None
    report.text = text = text.removeprefix("\ufeff")
    if unprintable := _UNPRINTABLE.search(text):
        what = f"a control character, got U+{ord(unprintable.group()):04X}. Remove it"
        report.problem(*position(text, unprintable.start()), what)
        return None
    composer = _Composer(report)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            if not composer.feed(event):
                return None
    except yaml.YAMLError as error:
        _report_syntax(error, report)
        return None
    if composer.root is None and not report.problems:
        report.problem(1, 1, f"the file is empty. Write `apiVersion: vane.dev/v1` and `kind: {kind}`")
    return composer.root


class _Composer:
    """Events in, nodes out. It keeps its own stack, so that depth is a limit and not a crash."""

    def __init__(self, report: Report) -> None:
        self.root: YamlNode | None = None
        self._report = report
        self._stack: list[_Open] = []
        self._documents = 0

    def feed(self, event: Any) -> bool:
        """Take one event; False where the rest of the file is not worth reading."""
        if isinstance(event, yaml.DocumentStartEvent):
            return self._start_document(event)
        if isinstance(event, yaml.AliasEvent):
            self._fault(event, f"an alias, got '*{event.anchor}'. Write the value itself here")
            self._place(BrokenNode(*_span(event)))
        elif isinstance(event, yaml.ScalarEvent):
            self._refuse_tricks(event)
            self._place(YamlScalar(*_span(event), value=event.value, style=event.style or ""))
        elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            return self._open(event)
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            self._close(event)
        return True

    def _start_document(self, event: Any) -> bool:
        self._documents += 1
        if self._documents > 1:
            self._fault(event, "a second document, got '---'. Write one document per file")
        return self._documents == 1

    def _open(self, event: Any) -> bool:
        self._refuse_tricks(event)
        if len(self._stack) >= MAX_DEPTH:
            self._fault(event, f"nested more than {MAX_DEPTH} deep. No field needs that; check the brackets")
            return False
        self._stack.append(_Open(event))
        return True

    def _close(self, event: Any) -> None:
        opened = self._stack.pop()
        span = _span(opened.event, event)
        if isinstance(event, yaml.SequenceEndEvent):
            self._place(YamlSequence(*span, items=tuple(opened.items)))
        else:
            self._place(YamlMapping(*span, entries=tuple(self._entries(opened.items))))

    def _entries(self, items: list[YamlNode]) -> Iterator[tuple[YamlScalar, YamlNode]]:
        seen: dict[str, int] = {}
        for key, value in zip(items[0::2], items[1::2], strict=True):
            if isinstance(key, YamlScalar) and key.value not in seen:
                seen[key.value] = key.line
                yield key, value
            elif isinstance(key, YamlScalar):
                what = f"'{clip(key.value)}' is given twice, first in line {seen[key.value]}. Keep one of the two"
                self._report.problem(key.line, key.column, what)
            elif not isinstance(key, BrokenNode):
                what = "a key that is not text, got a list or mapping. Write a field's name"
                self._report.problem(key.line, key.column, what)

    def _place(self, node: YamlNode) -> None:
        if self._stack:
            self._stack[-1].items.append(node)
        else:
            self.root = node

    def _refuse_tricks(self, event: Any) -> None:
        if event.anchor is not None:
            self._fault(event, f"an anchor, got '&{event.anchor}'. Remove it, and write the value in each place")
        if event.tag is not None:
            self._fault(event, f"a tag, got {clip(event.tag)!r}. Remove it, and quote the value if it is text")

    def _fault(self, event: Any, message: str) -> None:
        self._report.problem(event.start_mark.line + 1, event.start_mark.column + 1, message)


def _span(first: Any, last: Any = None) -> tuple[int, int, int, int]:
    """Return line, column, start and end of what reaches from one event to another, or of one event alone."""
    start, end = first.start_mark, (last or first).end_mark
    return start.line + 1, start.column + 1, start.index, end.index


def _report_syntax(error: yaml.YAMLError, report: Report) -> None:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is None:
        report.problem(1, 1, f"the file is not valid YAML, got {clip(str(error))!r}. Fix the syntax")
        return
    problem = str(getattr(error, "problem", None) or "a syntax error")
    context = str(getattr(error, "context", None) or "")
    begin = getattr(error, "context_mark", None)
    where = f" {context} that begins in line {begin.line + 1}" if context and begin else ""
    advice = _advice(problem + where, report.text, mark)
    report.problem(mark.line + 1, mark.column + 1, f"YAML: {problem}{where}. {advice}")


def _advice(problem: str, text: str, mark: Any) -> str:
    lines = text.split("\n")
    line = lines[mark.line] if mark.line < len(lines) else ""
    if "\t" in line[: mark.column + 1]:
        return "Write spaces, not a tab, for indentation"
    if "mapping values are not allowed" in problem:
        return "Put a value that holds ': ' in quotes, and indent fields of one mapping alike"
    if "cannot start any token" in problem:
        return "Put a value that begins with this character in quotes"
    if "flow" in problem:
        return "Close what is open, and put a value that holds brackets, braces or commas in quotes"
    return "Close what is open, and indent fields of one mapping alike"
