"""From text to tokens. What a word or a sign is hangs on the brackets around it."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from scheduler.promql.functions import AGGREGATIONS
from scheduler.promql.literals import duration_end, number_end, read_string

END: Final = "<end>"
ERROR: Final = "<error>"
WORD, METRIC, NUMBER, DURATION, STRING = "word", "metric", "number", "duration", "string"

DURATION_WORDS: Final = frozenset({"step", "range", "max_of", "min_of"})
_FILL: Final = frozenset({"fill", "fill_left", "fill_right"})
_KEYWORDS: Final = frozenset(
    {
        *AGGREGATIONS,
        *("and", "or", "unless", "atan2", "offset", "smoothed", "anchored", "by", "without", "on", "ignoring"),
        *("group_left", "group_right", *_FILL, "bool", "start", "end", *DURATION_WORDS),
    }
)
_BLANK: Final = re.compile(r"(?:[ \t\n\r]+|#[^\n\r]*)*")
_SPACES: Final = re.compile(r"[ \t\n\r]*")
_NAME: Final = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]*")
_LABEL: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LETTERS: Final = re.compile(r"[A-Za-z_]+")
_SIGN: Final = re.compile(r"==|!=|<=|>=|</|>/|=(?!~)|[-+*/%^<>,()@{}\[\]]")
_MATCH_SIGN: Final = re.compile(r"=~|!~|!=|=|,|\}")
_DURATION_SIGN: Final = re.compile(r"[-+*/%^,:()\]]")
_PLAIN_NUMBER: Final = re.compile(r"(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?![0-9A-Za-z_.])")
_PLAIN_DURATION: Final = re.compile(r"[0-9]+(?:ms|[smhdwy])(?![0-9A-Za-z_])")
_QUOTED: Final = {
    '"': re.compile(r'"(?:[^"\\\n\ufffd\ud800-\udfff]|\\[ -~])*"'),
    "'": re.compile(r"'(?:[^'\\\n\ufffd\ud800-\udfff]|\\[ -~])*'"),
    "`": re.compile(r"`[^`\ufffd\ud800-\udfff]*`"),
}


class Token(NamedTuple):
    """`kind` is the word or sign itself where it has a meaning of its own; of ERROR, `text` says what is wrong."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def tokens_of(text: str) -> list[Token]:
    """Return all tokens; the last is END, or ERROR where no token can be read."""
    return _Lexer(text).run()


class _Lexer:
    def __init__(self, text: str) -> None:
        self._text = text
        self._pos = 0
        self._found: list[Token] = []
        self._is_bracket = False
        """Between `[` and `]`."""
        self._has_range = False
        """Whether a number has stood in any brackets so far; a colon may not stand before."""

    def run(self) -> list[Token]:
        read = self._statement
        while not self._found or self._found[-1].kind not in (END, ERROR):
            read()
            last = self._found[-1].kind if self._found else ""
            if last == "{":
                read = self._matchers
            elif last == "}":
                read = self._statement
            elif last == "[" and not self._is_bracket:
                self._is_bracket, read = True, self._duration
            elif self._is_bracket and last in (NUMBER, DURATION, "]"):
                # After the first number comments are read too, before it they are not.
                self._is_bracket, read = last != "]", self._statement
        return self._found

    def _add(self, kind: str, end: int) -> None:
        self._found.append(Token(kind, self._text[self._pos : end], self._pos))
        self._pos = end

    def _fail(self, problem: str) -> None:
        self._found.append(Token(ERROR, problem, self._pos))

    def _statement(self) -> None:
        text = self._text
        self._pos = pos = _BLANK.match(text, self._pos).end()  # type: ignore[union-attr]
        if pos == len(text):
            self._found.append(Token(END, "", pos))
            return
        char = text[pos]
        if char in "0123456789" or (char == "." and text[pos + 1 : pos + 2].isdecimal() and text[pos + 1].isascii()):
            self._number()
        elif char in _QUOTED:
            self._string()
        elif name := _NAME.match(text, pos):
            self._duration_word() if self._is_bracket else self._word(name.end())
        elif sign := _SIGN.match(text, pos):
            self._add(sign.group(), sign.end())
        else:
            self._fail(f"unexpected character {char!r}")

    def _matchers(self) -> None:
        text = self._text
        self._pos = pos = _BLANK.match(text, self._pos).end()  # type: ignore[union-attr]
        if pos == len(text):
            self._fail("unclosed brace")
        elif name := _LABEL.match(text, pos):
            self._add(WORD, name.end())
        elif sign := _MATCH_SIGN.match(text, pos):
            self._add(sign.group(), sign.end())
        elif text[pos] in _QUOTED:
            self._string()
        else:
            self._fail(f"unexpected character {text[pos]!r} inside braces")

    def _duration(self) -> None:
        text = self._text
        self._pos = pos = _SPACES.match(text, self._pos).end()  # type: ignore[union-attr]
        char = text[pos : pos + 1]
        if char == ":" and not self._has_range:
            self._fail("unexpected colon before a duration")
        elif sign := _DURATION_SIGN.match(text, pos):
            self._add(sign.group(), sign.end())
        elif char and (char in "0123456789" or (char == "." and text[pos + 1 : pos + 2] in tuple("0123456789"))):
            self._has_range = True
            self._number()
        elif char:
            self._duration_word()
        else:
            self._fail("unclosed left bracket")

    def _duration_word(self) -> None:
        text, pos = self._text, self._pos
        if text[pos] == ":":
            self._add(":", pos + 1)
            return
        letters = _LETTERS.match(text, pos)
        if letters and letters.group().lower() in DURATION_WORDS:
            self._add(letters.group().lower(), letters.end())
        else:
            self._fail(f"unexpected character {text[pos]!r} in a range")

    def _number(self) -> None:
        text, pos = self._text, self._pos
        for kind, pattern in ((NUMBER, _PLAIN_NUMBER), (DURATION, _PLAIN_DURATION)):
            if plain := pattern.match(text, pos):
                self._add(kind, plain.end())
                return
        end, is_number = number_end(text, pos)
        if is_number:
            self._add(NUMBER, end)
            return
        end, is_duration = duration_end(text, end)
        if is_duration:
            self._add(DURATION, end)
            return
        shown = text[pos : max(end, pos + 1)] + text[end : end + 1].strip()
        self._fail(f"bad number or duration {shown!r}")

    def _string(self) -> None:
        quote = self._text[self._pos]
        found = _QUOTED[quote].match(self._text, self._pos)
        if found is None:
            self._fail("unterminated string")
        elif read_string(found.group()) is None:
            self._fail("unknown escape sequence in a string")
        else:
            self._add(STRING, found.end())

    def _word(self, end: int) -> None:
        text = self._text
        word = text[self._pos : end].lower()
        if word in ("inf", "nan"):
            self._add(NUMBER, end)
        elif word in _FILL and text[_SPACES.match(text, end).end() :][:1] != "(":  # type: ignore[union-attr]
            # Metrics may be called so.
            self._add(WORD, end)
        elif word in _KEYWORDS:
            self._add(word, end)
        else:
            self._add(METRIC if ":" in word else WORD, end)
