"""Durations as Go writes them, which is how Kubernetes' configuration files do: `10m`, `1m30s`, `500ms`."""

from __future__ import annotations

import re
from fractions import Fraction

_PART = re.compile(r"([0-9]{1,15}(?:\.[0-9]{0,15})?|\.[0-9]{1,15})(ns|us|µs|μs|ms|s|m|h)")
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


def parse_duration(text: str) -> float:
    """Return the seconds of a Go duration that is not negative.

    Raises
    ------
    ValueError
        It is none; a number needs its unit, `0` apart.

    Source: Go's time.ParseDuration.
    """
    if text == "0":
        return 0.0
    seconds, end = Fraction(0), 0
    while (part := _PART.match(text, end)) is not None:
        seconds += Fraction(part[1]) * _SECONDS[part[2]]
        end = part.end()
    if not text or end < len(text):
        raise ValueError(f"must be a duration, got {text!r}. Write for example 10m, 1m30s or 500ms")
    return float(seconds)
