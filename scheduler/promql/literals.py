"""Numbers, durations and strings, to the character as Prometheus reads them."""

from __future__ import annotations

import re
from typing import Final

LONGEST_S: Final = 2**63 / 1e9
"""What 64 bits of nanoseconds hold."""

_DIGITS: Final = frozenset("0123456789")
_HEX: Final = frozenset("0123456789abcdefABCDEF")
_ALPHANUMERIC: Final = frozenset("0123456789_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_MOST_DIGITS: Final = 22
"""Of a number of 63 bits, to any base."""
_UNITS: Final = {"y": 31_536_000, "w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_DURATION: Final = re.compile("".join(rf"(?:(?P<{unit}>[0-9]+){unit})?" for unit in _UNITS) + r"(?:(?P<ms>[0-9]+)ms)?")
_INTEGER: Final = re.compile(r"0[xX](?:_?[0-9a-fA-F])+|0(?:_?[0-7])*|[1-9](?:_?[0-9])*")
_FLOAT: Final = re.compile(
    r"(?:[0-9](?:_?[0-9])*\.?(?:[0-9](?:_?[0-9])*)?|\.[0-9](?:_?[0-9])*)(?:[eE][+-]?[0-9](?:_?[0-9])*)?"
)
_ESCAPE: Final = re.compile(rb"\\(?:([abfnrtv\\'\"])|([0-7]{3})|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))")
_SIMPLE: Final = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}


def number_end(text: str, pos: int) -> tuple[int, bool]:
    """Return where a number that starts at `pos` ends, and whether it is one; else it may be a duration.

    What this lets pass need not be a number yet: `read_number` says so.
    """
    start, digits = pos, _DIGITS
    if text[pos : pos + 1] == "0":
        pos += 1
        if text[pos : pos + 1] in ("x", "X"):
            pos, digits = pos + 1, _HEX
            pos += text[pos : pos + 1] == "_"
    pos += text[pos : pos + 1] == "."
    pos += text[pos : pos + 1] in digits
    seen_dot = seen_exponent = False
    while (char := text[pos : pos + 1]) and (char in digits or char in "._eE"):
        if (char == "." and seen_dot) or (char in "eE" and seen_exponent):
            return pos + 1, False
        if char in digits and char not in "eE":
            while text[pos : pos + 1] in digits:
                pos += 1
            continue
        pos += 1
        if char == "." and digits is _HEX:
            return pos, False
        refused = "_." if char == "." else "._eE"
        if char in "eE":
            pos += text[pos : pos + 1] in ("+", "-")
        seen_dot, seen_exponent = seen_dot or char == ".", seen_exponent or char in "eE"
        after = text[pos : pos + 1]
        if (after and after in refused) or (not after and char != "."):
            return pos, False
    return pos, pos > start and text[pos : pos + 1] not in _ALPHANUMERIC


def duration_end(text: str, pos: int) -> tuple[int, bool]:
    """Return where a duration ends whose first unit is expected at `pos`, and whether it is one."""
    units = "smhdwy"
    while True:
        if (char := text[pos : pos + 1]) == "" or char not in units:
            return pos, False
        pos += 1
        pos += text[pos : pos + 1] == "s"
        before = pos
        while text[pos : pos + 1] in _DIGITS:
            pos += 1
        if pos == before:
            return pos, text[pos : pos + 1] not in _ALPHANUMERIC
        units = "smhdw"


def read_number(text: str) -> float | None:
    """Return the number that the text is, in any of the ways of Go; None where it is none."""
    if _INTEGER.fullmatch(text):
        plain = text.replace("_", "").lower()
        base = 16 if plain.startswith("0x") else 8 if plain.startswith("0") else 10
        digits = plain.removeprefix("0x").lstrip("0") or "0"
        if len(digits) <= _MOST_DIGITS and (value := int(digits, base)) < 2**63:
            return float(value)
    lowered = text.lower()
    if lowered in ("inf", "nan"):
        return float(lowered)
    if not _FLOAT.fullmatch(text):
        return None
    found = float(text)
    # Written digits that overflow are no number to Go.
    return found if found != float("inf") else None


def read_duration(text: str) -> float | None:
    """Return the seconds of a duration as `1h30m`; None where it is none, or beyond 292 years."""
    found = _DURATION.fullmatch(text)
    if found is None or not text:
        return None
    counts = {unit: (count or "").lstrip("0") for unit, count in found.groupdict().items()}
    if any(len(count) > _MOST_DIGITS for count in counts.values()):
        return None
    milliseconds = int(counts.pop("ms") or 0)
    total_ms = milliseconds + sum(int(count or 0) * _UNITS[unit] * 1000 for unit, count in counts.items())
    return total_ms / 1000 if total_ms * 1_000_000 < 2**63 else None


def read_string(literal: str) -> str | None:
    """Return what a literal with its quotes means; None for an escape that Prometheus refuses.

    Bytes that are no UTF-8 become lone surrogates.
    """
    quote, inner = literal[0], literal[1:-1]
    if quote == "`" or "\\" not in inner:
        return inner
    found: list[bytes] = []
    data, pos = inner.encode(), 0
    while (slash := data.find(b"\\", pos)) >= 0:
        escape = _ESCAPE.match(data, slash)
        char = None if escape is None else _unescaped(escape, quote.encode())
        if escape is None or char is None:
            return None
        found += data[pos:slash], char
        pos = escape.end()
    return b"".join([*found, data[pos:]]).decode("utf-8", "surrogateescape")


def _unescaped(escape: re.Match[bytes], quote: bytes) -> bytes | None:
    simple, octal, byte, short, long = escape.groups()
    if simple is not None:
        if simple in (b"'", b'"') and simple != quote:
            return None
        return _SIMPLE.get(simple, simple)
    if octal is not None or byte is not None:
        value = int(octal, 8) if octal is not None else int(byte, 16)
        return bytes([value]) if value < 256 else None
    value = int(short or long, 16)
    return None if value > 0x10FFFF or 0xD800 <= value < 0xE000 else chr(value).encode()
