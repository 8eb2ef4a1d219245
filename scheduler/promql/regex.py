"""Regular expressions as Prometheus takes them (Go's RE2): whether one is valid, and whether it matches the empty text.

What a character class holds does not matter for either.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field
from typing import Final, NamedTuple, NoReturn

from scheduler.promql.regex_classes import CLASS_LETTERS, POSIX_CLASSES, UNICODE_CLASSES

MAX_REPEATS: Final = 1000
_MAX_HEIGHT: Final = 1000
_MAX_SIZE: Final = (128 << 20) // 40
"""Of the compiled expression, in instructions."""

_LITERALS: Final = re.compile(r"[^\\.+*?()\[\]{}^$]*")
_BROKEN: Final = re.compile("[\ud800-\udfff]")
_REPEAT: Final = re.compile(r"\{(0|[1-9][0-9]*)(,)?((?<=,)(?:0|[1-9][0-9]*))?\}")
_NAMED_GROUP: Final = re.compile(r"\(\?P?<([A-Za-z0-9_]+)>")
_FLAGS: Final = re.compile(r"\(\?[imsU]*(?:-[imsU]+)?([:)])")
_UNICODE: Final = re.compile(r"\\[pP](?:\{\^?([^}]*)\}|([^{]))", re.DOTALL)
_POSIX: Final = re.compile(r"\[:(.*?):\]", re.DOTALL)
_ESCAPE: Final = re.compile(
    r"\\(?:(?P<octal>0[0-7]{0,2}|[1-7][0-7]{1,2})|x(?P<hex>[0-9a-fA-F]{2})|x\{(?P<long>[0-9a-fA-F]+)\}"
    r"|(?P<sign>[afnrtv]|[\x00-/:-@\[-`{-\x7f]))",
    re.DOTALL,
)
_SIGNS: Final = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}


class RegexFault(NamedTuple):
    problem: str
    advice: str


class _RegexError(ValueError):
    def __init__(self, problem: str, advice: str) -> None:
        self.fault = RegexFault(problem, advice)
        super().__init__(problem)


class _Part(NamedTuple):
    """A piece of a regular expression.

    repeats
        How often the innermost piece is copied at most.
    """

    kind: str
    matches_empty: bool
    height: int = 1
    size: int = 1
    repeats: int = 1


_LITERAL: Final = _Part("literal", False)
_CLASS: Final = _Part("class", False)
_EMPTY: Final = _Part("empty", True)


@dataclass(slots=True)
class _Group:
    """An open parenthesis, or the whole."""

    is_capture: bool = False
    alternatives: list[_Part] = field(default_factory=list)
    parts: list[_Part] = field(default_factory=list)


def regex_fault(pattern: str) -> RegexFault | None:
    """Return why Prometheus refuses a pattern; None where it takes it."""
    found = _read(pattern)
    return found if isinstance(found, RegexFault) else None


def matches_empty(pattern: str) -> bool:
    """Whether a valid pattern, anchored at both ends, matches the empty text."""
    found = _read(pattern)
    return not isinstance(found, RegexFault) and found


@functools.lru_cache(maxsize=1024)
def _read(pattern: str) -> bool | RegexFault:
    if _LITERALS.fullmatch(pattern):
        return "" in pattern.split("|")
    try:
        return _Reader(pattern).run().matches_empty
    except _RegexError as error:
        return error.fault


class _Reader:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._pos = 0
        self._groups = [_Group()]
        self._n_parts = 0
        self._product = 1
        """Of all repeats: with few of them, the size need not be looked at."""

    def run(self) -> _Part:
        pattern, was_repeat = self._pattern, False
        if _BROKEN.search(pattern):
            self._fail("it is no valid UTF-8", "Remove the escapes of single bytes")
        while self._pos < len(pattern):
            char = pattern[self._pos]
            if char in "*+?":
                self._repeat(char, 1, was_repeat=was_repeat)
                was_repeat = True
            elif char == "{" and (repeat := _REPEAT.match(pattern, self._pos)):
                self._repeat(repeat.group(), len(repeat.group()), was_repeat=was_repeat)
                was_repeat = True
            else:
                self._plain(char)
                was_repeat = False
        if len(self._groups) > 1:
            self._fail("missing `)`", "Close the parenthesis, or write `\\\\(` for the sign")
        return self._closed(self._groups[0])

    def _plain(self, char: str) -> None:
        if char == "\\":
            self._escape()
        elif char == "[":
            self._pos = self._class_end()
            self._push(_CLASS)
        elif char == "(":
            self._open()
        else:
            self._pos += 1
            self._sign(char)

    def _sign(self, char: str) -> None:
        if char == "|":
            group = self._groups[-1]
            group.alternatives.append(self._sequence(group.parts))
            group.parts = []
        elif char == ")":
            self._close()
        elif char in "^$":
            self._push(_EMPTY)
        else:
            self._push(_CLASS if char == "." else _LITERAL)

    def _push(self, part: _Part) -> None:
        self._n_parts += 1
        self._groups[-1].parts.append(part)
        if part.height > _MAX_HEIGHT:
            self._fail("it nests too deeply", "Write it with fewer parentheses")
        if self._n_parts >= _MAX_SIZE // self._product and part.size > _MAX_SIZE:
            self._fail("it is too large", "Repeat less")

    def _open(self) -> None:
        pattern = self._pattern
        if not pattern.startswith("(?", self._pos):
            self._groups.append(_Group(is_capture=True))
            self._pos += 1
        elif named := _NAMED_GROUP.match(pattern, self._pos):
            self._groups.append(_Group(is_capture=True))
            self._pos = named.end()
        elif flags := _FLAGS.match(pattern, self._pos):
            if flags[1] == ":":
                self._groups.append(_Group())
            self._pos = flags.end()
        else:
            shown = pattern[self._pos : self._pos + 4]
            self._fail(f"`{shown}` is not known", "Write `(?:…)`, `(?i)…` or `(?P<name>…)`; there is no looking around")

    def _close(self) -> None:
        if len(self._groups) == 1:
            self._fail("unexpected `)`", "Remove it, or write `\\\\)` for the sign")
        group = self._groups.pop()
        part = self._closed(group)
        if group.is_capture:
            part = _Part("capture", part.matches_empty, part.height + 1, part.size + 2, part.repeats)
        self._push(part)

    def _closed(self, group: _Group) -> _Part:
        parts = [*group.alternatives, self._sequence(group.parts)]
        if len(parts) == 1:
            return parts[0]
        return _Part(
            "alternatives",
            any(part.matches_empty for part in parts),
            1 + max(part.height - (part.kind == "alternatives") for part in parts),
            sum(part.size for part in parts) + len(parts) - 1,
            max(part.repeats for part in parts),
        )

    def _sequence(self, parts: list[_Part]) -> _Part:
        if len(parts) == 1:
            return parts[0]
        if all(part.kind == "literal" for part in parts):
            return _Part("literal", False, size=len(parts)) if parts else _EMPTY
        return _Part(
            "sequence",
            all(part.matches_empty for part in parts),
            1 + max(part.height - (part.kind == "sequence") for part in parts),
            sum(part.size for part in parts),
            max(part.repeats for part in parts),
        )

    def _repeat(self, sign: str, width: int, *, was_repeat: bool) -> None:
        self._pos += width
        self._pos += self._pattern[self._pos : self._pos + 1] == "?"
        if was_repeat:
            self._fail(f"a repetition is repeated by `{sign}`", "Put parentheses around the first repetition")
        parts = self._groups[-1].parts
        if not parts:
            self._fail(f"there is nothing for `{sign}` to repeat", f"Write `\\\\{sign}` for the sign itself")
        inner = parts.pop()
        self._push(self._counted(inner, sign) if sign[0] == "{" else _starred(inner, sign))

    def _counted(self, inner: _Part, sign: str) -> _Part:
        least, comma, most = _REPEAT.fullmatch(sign).groups()  # type: ignore[union-attr]
        n_least = int(least)
        n_most = n_least if not comma else int(most) if most else -1
        # Without an upper end, and with none that is 0, it counts as what it is copied.
        copies = n_most if n_most >= 0 else n_least
        repeats = 1 if n_most == 0 else max(copies, 1) * inner.repeats
        too_many = max(n_least, n_most) > MAX_REPEATS or (max(n_least, n_most) >= 2 and repeats > MAX_REPEATS)
        if too_many or 0 <= n_most < n_least:
            write = f"Repeat at most {MAX_REPEATS} times in all, the smaller number first"
            self._fail(f"invalid repeat count `{sign}`", write)
        self._product = min(self._product * max(copies, 1), _MAX_SIZE)
        size = n_most * inner.size + n_most - n_least if n_most >= 0 else 1 + max(n_least, 1) * inner.size
        return _Part("repeat", n_least == 0 or inner.matches_empty, inner.height + 1, max(size, 1), repeats)

    def _escape(self) -> None:
        pattern, pos = self._pattern, self._pos
        letter = pattern[pos + 1 : pos + 2]
        if letter in ("A", "z", "B", "b"):
            self._pos += 2
            self._push(_Part("boundary", letter != "b"))
        elif letter == "Q":
            literal, _, rest = pattern[pos + 2 :].partition("\\E")
            for _ in literal:
                self._push(_LITERAL)
            self._pos = len(pattern) - len(rest)
        elif (end := self._class_escape_end(pos)) is not None:
            self._pos = end
            self._push(_CLASS)
        else:
            self._pos, _ = self._char(pos)
            self._push(_LITERAL)

    def _class_escape_end(self, pos: int) -> int | None:
        """Return where an escape of a class, as that of all digits, ends; None where there is none."""
        letter = self._pattern[pos + 1 : pos + 2] if self._pattern[pos] == "\\" else ""
        if letter and letter in CLASS_LETTERS:
            return pos + 2
        if letter in ("p", "P"):
            found = _UNICODE.match(self._pattern, pos)
            if found is None or (found[1] if found[1] is not None else found[2]) not in UNICODE_CLASSES:
                shown = found.group() if found else self._pattern[pos : pos + 8]
                self._fail(f"unknown class `{shown}`", "Write a category or a script, as `\\\\pL` or `\\\\p{Greek}`")
            return found.end()
        return None

    def _char(self, pos: int) -> tuple[int, int]:
        """Return the place behind a character, which may be escaped, and its number."""
        if self._pattern[pos] != "\\":
            return pos + 1, ord(self._pattern[pos])
        found = _ESCAPE.match(self._pattern, pos)
        if found is None or (found["long"] and int(found["long"], 16) > 0x10FFFF):
            shown = self._pattern[pos : pos + 2]
            self._fail(f"unknown escape `{shown}`", "Write `\\\\\\\\` for a backslash, and signs as `\\\\.`")
        if found["octal"]:
            return found.end(), int(found["octal"], 8)
        digits = found["hex"] or found["long"]
        return found.end(), int(digits, 16) if digits else _SIGNS.get(found["sign"]) or ord(found["sign"])

    def _class_end(self) -> int:
        """Return where the class in brackets ends that starts here."""
        pattern, pos = self._pattern, self._pos + 1
        pos += pattern[pos : pos + 1] == "^"
        is_first = True
        while is_first or pattern[pos : pos + 1] != "]":
            is_first = False
            if pos >= len(pattern):
                self._fail("missing `]`", "Close the bracket, or write `\\\\[` for the sign")
            pos = self._class_item_end(pos)
        return pos + 1

    def _class_item_end(self, pos: int) -> int:
        pattern = self._pattern
        if posix := _POSIX.match(pattern, pos):
            if posix[1].removeprefix("^") not in POSIX_CLASSES:
                self._fail(f"unknown class `{posix.group()}`", "Write one as `[:alpha:]`")
            return posix.end()
        if (end := self._class_escape_end(pos)) is not None:
            return end
        end, low = self._char(pos)
        if pattern[end : end + 1] != "-" or pattern[end + 1 : end + 2] in ("", "]"):
            return end
        end, high = self._char(end + 1)
        if high < low:
            self._fail(f"the range `{pattern[pos:end]}` is the wrong way round", "Write the smaller character first")
        return end

    def _fail(self, problem: str, advice: str) -> NoReturn:
        raise _RegexError(problem, advice)


def _starred(inner: _Part, sign: str) -> _Part:
    size = inner.size + (2 if sign == "*" else 1)
    return _Part("repeat", sign != "+" or inner.matches_empty, inner.height + 1, size, inner.repeats)
