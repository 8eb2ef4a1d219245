"""The tokens of an expression, one after the other, and what has been found about it so far."""

from __future__ import annotations

from typing import Final, NoReturn

from scheduler.promql.errors import PromQLError, TooLargeError
from scheduler.promql.lexer import DURATION, END, ERROR, NUMBER, STRING, Token, tokens_of
from scheduler.promql.literals import read_duration, read_number, read_string
from scheduler.promql.nodes import Feature

MAX_DEPTH: Final = 120
"""Each level takes four frames of Python, of a thousand that there are."""
MAX_OPERATORS: Final = 400
"""A chain of so many makes a tree as deep, which others walk down."""

_OPERATORS: Final = frozenset(
    {"==", "!=", "<=", ">=", "<", ">", "</", ">/", "+", "-", "*", "/", "%", "^", "(", "and", "or", "unless", "atan2"}
)
_CLOSERS: Final = {"(": ")", "[": "]", "{": "}"}
_SIMPLER: Final = "Record a part of it with a recording rule"


class Cursor:
    def __init__(self, text: str) -> None:
        self._tokens = tokens_of(text)
        self._next = 0
        self._depth = 0
        self.needs: set[Feature] = set()
        n_operators = sum(token.kind in _OPERATORS for token in self._tokens)
        if n_operators > MAX_OPERATORS:
            what = f"more than {MAX_OPERATORS} operators and parentheses, got {n_operators}"
            raise TooLargeError(what, _SIMPLER, self._tokens[0].start)

    @property
    def token(self) -> Token:
        return self._tokens[self._next]

    @property
    def kind(self) -> str:
        return self._tokens[self._next].kind

    @property
    def kind_behind(self) -> str:
        """Of the token after this one; this one's own at the end."""
        return self._tokens[min(self._next + 1, len(self._tokens) - 1)].kind

    @property
    def end(self) -> int:
        """Where the last token taken ends."""
        return self._tokens[self._next - 1].end if self._next else 0

    def take(self) -> Token:
        found = self._tokens[self._next]
        self._next += 1
        return found

    def accept(self, kind: str) -> bool:
        if self._tokens[self._next].kind != kind:
            return False
        self._next += 1
        return True

    def expect(self, kind: str, where: str) -> Token:
        if self.kind != kind:
            self.refuse(where, f"`{kind}`")
        return self.take()

    def refuse(self, where: str, expected: str) -> NoReturn:
        """Refuse the token that comes next."""
        token = self.token
        if token.kind == ERROR:
            raise PromQLError(token.text, _advice_on(token.text), token.start)
        if token.kind == END:
            self._refuse_end(token)
        if token.kind == ")" and not self._open_before("("):
            raise PromQLError("unexpected right parenthesis", "Remove it, or open one before", token.start)
        inside = f" in {where}" if where else ""
        raise PromQLError(f"unexpected token {_shown(token)}{inside}", f"Write {expected} there", token.start)

    def _refuse_end(self, end: Token) -> NoReturn:
        if len(self._tokens) == 1:
            raise PromQLError("no expression", "Write one", end.start)
        for opener, name in (("(", "parenthesis"), ("[", "bracket")):
            if opened := self._open_before(opener):
                raise PromQLError(f"unclosed left {name}", "Close what is open", opened.start)
        # At the last token rather than behind it, where nothing can be shown.
        last = self._tokens[self._next - 1]
        raise PromQLError(f"unexpected end after {_shown(last)}", "Write what belongs behind it", last.start)

    def _open_before(self, opener: str) -> Token | None:
        """Return the innermost bracket of a kind that is open at the next token."""
        opened: list[Token] = []
        for token in self._tokens[: self._next]:
            if token.kind == opener:
                opened.append(token)
            elif token.kind == _CLOSERS[opener] and opened:
                opened.pop()
        return opened[-1] if opened else None

    def enter(self) -> None:
        """Begin a part of an expression; `leave` ends it.

        Raises
        ------
        TooLargeError
            Where parts are nested too deeply.
        """
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise TooLargeError(f"nested more than {MAX_DEPTH} levels deep", _SIMPLER, self.token.start)

    def leave(self) -> None:
        self._depth -= 1

    def number(self) -> float:
        """Take a number or a duration, in seconds."""
        token = self.token
        if token.kind not in (NUMBER, DURATION):
            self.refuse("", "a number or a duration")
        value = read_number(token.text) if token.kind == NUMBER else read_duration(token.text)
        if value is None:
            write = "Write a duration as `1h30m`, of at most 292 years, or a number as `1.5e3`"
            raise PromQLError(f"no {token.kind}, got {token.text!r}", write, token.start)
        self.take()
        return value

    def string(self) -> str:
        token = self.token
        value = read_string(token.text) if token.kind == STRING else None
        if value is None:
            self.refuse("", "a string in quotes")
        self.take()
        return value


def _shown(token: Token) -> str:
    return repr(token.text if len(token.text) <= 40 else f"{token.text[:40]}…")


def _advice_on(problem: str) -> str:
    if "unclosed" in problem or "unterminated" in problem:
        return "Close what is open"
    if "escape" in problem:
        return "Write `\\\\` for a backslash, or put the string in backticks"
    if "number or duration" in problem:
        return "Write a duration as `5m` or `1h30m`, or a number as `1.5e3`"
    return "Remove it, or put it in quotes"
