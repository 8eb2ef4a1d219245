"""YAML text as a tree of nodes that know their place. Nothing is converted, merged or repaired.

Only one document of plain mappings, lists and scalars is let through; what else YAML can do (aliases, tags,
several documents, keys that are not text) becomes a Fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import yaml
import yaml.resolver

MAX_DEPTH: Final = 20
STRING_TAG: Final = "tag:yaml.org,2002:str"

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_RESOLVER: Final = yaml.resolver.Resolver()
# Besides control characters, the three rare line breaks: YAML counts them as line ends, editors do not.
_UNPRINTABLE: Final = re.compile(
    r"[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
# Numbers of YAML 1.2 that YAML 1.1 takes for text.
_NUMBER: Final = re.compile(r"[-+]?(\d[\d_]*\.?\d*|\.\d+)([eE][-+]?\d+)?|0o[0-7]+")


@dataclass(frozen=True, slots=True)
class Fault:
    """What the text itself gets wrong, before any field is looked at; `line` and `column` count from 1."""

    line: int
    column: int
    message: str


@dataclass(frozen=True, slots=True)
class Node:
    """`start` and `end` are offsets into the text."""

    line: int
    column: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Scalar(Node):
    """`style` is the character that opens it: a quote, `|`, `>`, or empty for a plain scalar."""

    value: str
    style: str

    @property
    def is_text(self) -> bool:
        """Whether every reader of YAML takes it for text, not for a number, truth value, date or null."""
        if self.style:
            return True
        tag = _RESOLVER.resolve(yaml.ScalarNode, self.value, (True, False))  # type: ignore[no-untyped-call]  # PyYAML's
        return tag == STRING_TAG and not _NUMBER.fullmatch(self.value)


@dataclass(frozen=True, slots=True)
class Sequence(Node):
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Mapping(Node):
    """`entries` keep the order of the file; a key that stands twice is there once."""

    entries: tuple[tuple[Scalar, Node], ...]


@dataclass(frozen=True, slots=True)
class Broken(Node):
    """Stands where a Fault has been reported already; readers pass over it."""


@dataclass(slots=True)
class _Open:
    """A mapping or list whose end has not come yet."""

    event: Any
    items: list[Node] = field(default_factory=list)


def compose(data: bytes, kind: str = "Rules") -> tuple[str, Node | None, list[Fault]]:
    """Return the text, its root (None where it cannot be had) and every fault found on the way.

    `kind` is what an empty file is told to begin with.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line, column = position(data[: error.start].decode("utf-8", "replace"), error.start)
        byte = data[error.start]
        return "", None, [Fault(line, column, f"the file is not UTF-8, got byte 0x{byte:02x}. Save it as UTF-8")]
    text = text.removeprefix("\ufeff")
    if unprintable := _UNPRINTABLE.search(text):
        what = f"a control character, got U+{ord(unprintable.group()):04X}. Remove it"
        return text, None, [Fault(*position(text, unprintable.start()), what)]
    composer = _Composer()
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            if not composer.feed(event):
                return text, None, composer.faults
    except yaml.YAMLError as error:
        return text, None, [*composer.faults, _syntax(error, text)]
    if composer.root is None and not composer.faults:
        composer.faults.append(Fault(1, 1, f"the file is empty. Write `apiVersion: vane.dev/v1` and `kind: {kind}`"))
    return text, composer.root, composer.faults


def position(text: str, offset: int) -> tuple[int, int]:
    """Return line and column, counted from 1, of an offset into `text`."""
    before = text[:offset].replace("\r\n", "\n").replace("\r", "\n")
    return before.count("\n") + 1, len(before) - before.rfind("\n")


def offset_in_source(text: str, scalar: Scalar, offset: int) -> int:
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


class _Composer:
    """Events in, nodes out. It keeps its own stack, so that depth is a limit and not a crash."""

    def __init__(self) -> None:
        self.root: Node | None = None
        self.faults: list[Fault] = []
        self._stack: list[_Open] = []
        self._documents = 0

    def feed(self, event: Any) -> bool:
        """Take one event; False where the rest of the file is not worth reading."""
        if isinstance(event, yaml.DocumentStartEvent):
            return self._start_document(event)
        if isinstance(event, yaml.AliasEvent):
            self._fault(event, f"an alias, got '*{event.anchor}'. Write the value itself here")
            self._place(Broken(*_span(event)))
        elif isinstance(event, yaml.ScalarEvent):
            self._refuse_tricks(event)
            self._place(Scalar(*_span(event), value=event.value, style=event.style or ""))
        elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            return self._open(event)
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            self._close(event)
        return True

    def _start_document(self, event: Any) -> bool:
        self._documents += 1
        if self._documents > 1:
            self._fault(event, "a second document, got '---'. Write one document a file")
        return self._documents == 1

    def _open(self, event: Any) -> bool:
        self._refuse_tricks(event)
        if len(self._stack) >= MAX_DEPTH:
            self._fault(
                event, f"nested more than {MAX_DEPTH} deep. No field of a rule file needs that, mend the brackets"
            )
            return False
        self._stack.append(_Open(event))
        return True

    def _close(self, event: Any) -> None:
        opened = self._stack.pop()
        span = _span(opened.event, event)
        if isinstance(event, yaml.SequenceEndEvent):
            self._place(Sequence(*span, items=tuple(opened.items)))
        else:
            self._place(Mapping(*span, entries=tuple(self._entries(opened.items))))

    def _entries(self, items: list[Node]) -> Iterator[tuple[Scalar, Node]]:
        seen: dict[str, int] = {}
        for key, value in zip(items[0::2], items[1::2], strict=True):
            if isinstance(key, Scalar) and key.value not in seen:
                seen[key.value] = key.line
                yield key, value
            elif isinstance(key, Scalar):
                what = f"'{clip(key.value)}' stands twice, first in line {seen[key.value]}. Keep one of the two"
                self.faults.append(Fault(key.line, key.column, what))
            elif not isinstance(key, Broken):
                what = "a key that is no text, got a list or mapping. Write a field's name"
                self.faults.append(Fault(key.line, key.column, what))

    def _place(self, node: Node) -> None:
        if self._stack:
            self._stack[-1].items.append(node)
        else:
            self.root = node

    def _refuse_tricks(self, event: Any) -> None:
        if event.anchor is not None:
            self._fault(event, f"an anchor, got '&{event.anchor}'. Remove it, and write the value wherever it is meant")
        if event.tag is not None:
            self._fault(event, f"a tag, got {clip(event.tag)!r}. Remove it, and quote the value if it is text")

    def _fault(self, event: Any, message: str) -> None:
        self.faults.append(Fault(event.start_mark.line + 1, event.start_mark.column + 1, message))


def clip(text: str, length: int = 60) -> str:
    """Return `text` short enough to be shown in a message."""
    return text if len(text) <= length else text[: length - 1] + "…"


def _span(first: Any, last: Any = None) -> tuple[int, int, int, int]:
    """Return line, column, start and end of what reaches from one event to another, or of one event alone."""
    start, end = first.start_mark, (last or first).end_mark
    return start.line + 1, start.column + 1, start.index, end.index


def _syntax(error: yaml.YAMLError, text: str) -> Fault:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is None:
        return Fault(1, 1, f"the file is no YAML, got {clip(str(error))!r}. Mend the syntax")
    problem = str(getattr(error, "problem", None) or "a syntax error")
    context = str(getattr(error, "context", None) or "")
    begin = getattr(error, "context_mark", None)
    where = f" {context} that begins in line {begin.line + 1}" if context and begin else ""
    return Fault(mark.line + 1, mark.column + 1, f"YAML: {problem}{where}. {_advice(problem + where, text, mark)}")


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
