"""Quantities as Kubernetes writes them ("250m", "1Gi", "1e3") and durations as Go does ("10m", "1m30s", "500ms").

Source: k8s.io/apimachinery/pkg/api/resource, the grammar of Quantity; Go's time.ParseDuration.
"""

from __future__ import annotations

import functools
import re
from fractions import Fraction

from scheduler.errors import InvalidObjectError

QUANTITY = re.compile(r"([+-]?)([0-9]+\.?[0-9]*|\.[0-9]+)(?:([eE][+-]?[0-9]{1,3})|([numkMGTPE]|[KMGTPE]i)?)")

_MAX_DIGITS = 1_000
"""Python refuses to convert some thousands of digits, with an error of its own."""

_LONGEST_SHOWN = 100

_SUFFIX: dict[str, Fraction] = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    **{letter: Fraction(1000**power) for power, letter in enumerate("kMGTPE", start=1)},
    **{letter + "i": Fraction(1024**power) for power, letter in enumerate("KMGTPE", start=1)},
}

_DURATION_PART = re.compile(r"([0-9]{1,15}(?:\.[0-9]{0,15})?|\.[0-9]{1,15})(ns|us|µs|μs|ms|s|m|h)")
_SECONDS = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),
    "μs": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "m": Fraction(60),
    "h": Fraction(3600),
}


@functools.lru_cache(maxsize=65_536)
def parse_quantity(text: str) -> Fraction:
    """Return the exact value of `text`; raise InvalidObjectError where it is no quantity."""
    match = QUANTITY.fullmatch(text)
    if match is None:
        shown = repr(text) if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]!r} and more"
        raise InvalidObjectError(f"quantity: got {shown}. Write a number with an optional suffix, as 250m or 1Gi")
    sign, number, exponent, suffix = match.groups()
    if len(number) > _MAX_DIGITS:
        raise InvalidObjectError(f"quantity: got {len(number)} digits. Write at most {_MAX_DIGITS}")
    value = Fraction(number + (exponent or "")) * _SUFFIX.get(suffix or "", Fraction(1))
    return -value if sign == "-" else value


def parse_duration(text: str) -> float:
    """Return the seconds of a Go duration that is not negative.

    Raises
    ------
    ValueError
        It is none; a number needs its unit, `0` apart.
    """
    if text == "0":
        return 0.0
    seconds, end = Fraction(0), 0
    while (part := _DURATION_PART.match(text, end)) is not None:
        seconds += Fraction(part[1]) * _SECONDS[part[2]]
        end = part.end()
    if not text or end < len(text):
        raise ValueError(f"must be a duration, got {text!r}. Write for example 10m, 1m30s or 500ms")
    return float(seconds)
