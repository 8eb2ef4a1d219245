"""Regular expressions as Prometheus means them (RE2, anchored), on Python's engine.

The two agree on what they have in common. What they write differently is translated or refused by name: a pattern
that silently meant something else would select other series. They differ in time: Python's engine backtracks, so
a pattern such as `(a+)+b` may take very long on a long label.
"""

from __future__ import annotations

import functools
import re
from typing import Final

from scheduler.evaluator.values import ExecutionError, UnsupportedPromQLError
from scheduler.promql.regex import regex_fault

_TOKEN: Final = re.compile(
    r"(?P<escape>\\.)|(?P<set>\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\])|(?P<group>\(\?(?:P?<\w+>|[a-zA-Z]*-?[a-zA-Z]*[:)]|.?))"
    r"|(?P<repeat>[*+?}](?=[*+]))|(?P<end>\$)|(?P<other>.)",
    re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\[aftnrvdDwWsSbBAz\W]|\\x(?=[0-9A-Fa-f]{2})", re.DOTALL)
# To Python they are of all alphabets.
_OF_ASCII: Final = {
    **{rf"\{letter}": rf"(?a:\{letter})" for letter in "dDwWbB"},
    r"\s": r"[\t\n\f\r ]",
    r"\S": r"[^\t\n\f\r ]",
    r"\z": r"\Z",
}
_OF_ASCII_IN_SET: Final = {"d": "0-9", "w": "0-9A-Za-z_", "s": r"\t\n\f\r "}
# Python reads these otherwise, or not at all.
_ODD_SET: Final = re.compile(r"\[:|&&|--|~~|\|\||(?<!^)(?<!\\)\[|\\(?:[^aftnrvdwsx\W]|x(?![0-9A-Fa-f]{2}))")
_GROUP: Final = re.compile(r"\(\?(?:P?<\w+>|[ims]*(?:-[ims]+)?:|[ims]+\))")


@functools.lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Return the pattern, to be used with `fullmatch`.

    Raises
    ------
    UnsupportedPromQLError
        For what Python would read differently, or not at all.
    """
    translated = "".join(_translated(token, pattern) for token in _TOKEN.finditer(pattern))
    try:
        return re.compile(translated, re.DOTALL)
    except re.error as error:
        raise _refused(pattern, str(error)) from error


def check_pattern(pattern: str, function: str) -> None:
    """Refuse a pattern that is none.

    Raises
    ------
    ExecutionError
        In the words in which Prometheus says it of an argument.
    """
    if regex_fault(pattern):
        raise ExecutionError(f"invalid regular expression in {function}(): {pattern}")


def expand(template: str, match: re.Match[str]) -> str:
    """Return the replacement with `$1`, `${1}`, `$name` and `$$` filled in; an unknown group is empty."""

    def fill(reference: re.Match[str]) -> str:
        name = reference[1] or reference[2]
        if name is None:
            return "$"
        try:
            return match[int(name) if name.isdecimal() else name] or ""
        except IndexError:
            return ""

    return re.sub(r"\$(?:\{(\w+)\}|(\w+)|\$)", fill, template)


def _translated(token: re.Match[str], pattern: str) -> str:
    text = token.group()
    if token.lastgroup == "end":
        # Python's own `$` also stands before a line feed at the end.
        return r"\Z"
    if token.lastgroup == "escape":
        if not _ESCAPE.match(pattern, token.start()):
            raise _refused(pattern, text)
        return _OF_ASCII.get(text, text)
    if token.lastgroup == "set":
        return _translated_set(text, pattern)
    if token.lastgroup == "group":
        if not _GROUP.fullmatch(text):
            raise _refused(pattern, text)
        return text.replace("(?<", "(?P<")
    if token.lastgroup == "repeat":
        raise _refused(pattern, pattern[token.start() : token.start() + 2])
    return text


def _translated_set(text: str, pattern: str) -> str:
    refused = _ODD_SET.search(text[1:-1])
    if refused:
        raise _refused(pattern, f"{refused.group()} in {text}")
    return re.sub(r"\\(.)", lambda escape: _OF_ASCII_IN_SET.get(escape[1], escape[0]), text, flags=re.DOTALL)


def _refused(pattern: str, what: str) -> UnsupportedPromQLError:
    return UnsupportedPromQLError("regular expression", f"{what} in {pattern!r}")
