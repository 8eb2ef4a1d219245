"""Kubernetes quantities ("250m", "1Gi", "1e3") as exact numbers.

Source: k8s.io/apimachinery/pkg/api/resource, the grammar of Quantity.
"""

from __future__ import annotations

import functools
import re
from fractions import Fraction

from scheduler.errors import InvalidObjectError

_PATTERN = re.compile(r"([+-]?)([0-9]+\.?[0-9]*|\.[0-9]+)(?:([eE][+-]?[0-9]{1,3})|([numkMGTPE]|[KMGTPE]i)?)")

_MAX_DIGITS = 1_000
"""Python refuses to convert some thousands of digits, with an error of its own."""

_SUFFIX: dict[str, Fraction] = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    **{letter: Fraction(1000**power) for power, letter in enumerate("kMGTPE", start=1)},
    **{letter + "i": Fraction(1024**power) for power, letter in enumerate("KMGTPE", start=1)},
}


@functools.lru_cache(maxsize=65_536)
def parse_quantity(text: str) -> Fraction:
    """Return the exact value of `text`; raise InvalidObjectError where it is no quantity."""
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise InvalidObjectError(f"quantity: got {text!r}. Write a number with an optional suffix, as 250m or 1Gi")
    sign, number, exponent, suffix = match.groups()
    if len(number) > _MAX_DIGITS:
        raise InvalidObjectError(f"quantity: got {len(number)} digits. Write at most {_MAX_DIGITS}")
    value = Fraction(number + (exponent or "")) * _SUFFIX.get(suffix or "", Fraction(1))
    return -value if sign == "-" else value
