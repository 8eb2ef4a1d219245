"""Single values of a rule file: texts, words of a list, durations, numbers with or without a unit.

Every reader returns None after it has reported a problem; no value is repaired, rounded or clamped.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from scheduler.model.rules import Unit
from scheduler.signals.format.report import Scope, got, is_broken, nearest
from scheduler.strict_yaml.yaml_nodes import Node, Scalar, clip

# No exponent of four digits: an exact fraction of 1e999999999 does not fit into memory.
_NUMBER: Final = re.compile(
    r"([-+]?(?:0|[1-9][0-9]{0,30}|(?=\.[0-9]))(?:\.[0-9]{0,30})?(?:[eE][-+]?[0-9]{1,3})?) ?([A-Za-zµ°%]*)"
)
_DURATION: Final = re.compile(
    r"(?:([0-9]{1,9})d)?(?:([0-9]{1,9})h)?(?:([0-9]{1,9})m)?(?:([0-9]{1,9})s)?(?:([0-9]{1,9})ms)?"
)
_DURATION_PARTS: Final = (86_400.0, 3_600.0, 60.0, 1.0, 0.001)

_TIME: Final = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "m": Fraction(60),
    "h": Fraction(3600),
    "d": Fraction(86_400),
}
_BYTES: Final = {
    "B": Fraction(1),
    "k": Fraction(1000),
    "kB": Fraction(1000),
    "KB": Fraction(1000),
    "Ki": Fraction(1024),
    "KiB": Fraction(1024),
    **{
        letter + tail: Fraction(base**power)
        for power, letter in enumerate("MGTPE", start=2)
        for tail, base in (("", 1000), ("B", 1000), ("i", 1024), ("iB", 1024))
    },
}
SUFFIXES: Final[Mapping[Unit, Mapping[str, Fraction]]] = {
    Unit.NONE: {},
    Unit.SECONDS: _TIME,
    Unit.MILLISECONDS: {suffix: factor * 1000 for suffix, factor in _TIME.items()},
    Unit.BYTES: _BYTES,
    Unit.RATIO: {"%": Fraction(1, 100)},
    Unit.PERCENT: {"%": Fraction(1)},
    Unit.WATT: {"mW": Fraction(1, 1000), "W": Fraction(1), "kW": Fraction(1000)},
    Unit.CELSIUS: {"C": Fraction(1), "°C": Fraction(1)},
}
_SUGGESTED: Final = (Unit.SECONDS, Unit.BYTES, Unit.RATIO, Unit.WATT, Unit.CELSIUS)


@dataclass(frozen=True, slots=True)
class Measure:
    """Whose numbers are read: a signal and its unit; the unit is None where the signal itself is broken."""

    signal: str
    unit: Unit | None


def read_text(node: Node | None, scope: Scope) -> str | None:
    """Return text that is not empty, and that no reader of YAML takes for a number or a truth value."""
    text = read_any_text(node, scope)
    if text == "" and node is not None:
        scope.problem(node, "an empty text, got ''. Write a value, or drop the line")
        return None
    return text


def read_any_text(node: Node | None, scope: Scope) -> str | None:
    if node is None or is_broken(node):
        return None
    if not isinstance(node, Scalar) or (node.value == "" and not node.style):
        scope.problem(node, f"must be a text, {got(node)}. Write one value")
        return None
    if not node.is_text:
        scope.problem(node, f'must be a text, {got(node)} without quotes. Write "{clip(node.value)}"')
        return None
    return node.value


def read_word(node: Node | None, scope: Scope, known: Sequence[str]) -> str | None:
    """Return one of the `known` words."""
    if node is None or is_broken(node):
        return None
    if isinstance(node, Scalar) and node.value in known:
        return node.value
    word = node.value if isinstance(node, Scalar) else ""
    scope.problem(node, f"unknown value, {got(node)}{nearest(word, known)}. Write one of: {', '.join(known)}")
    return None


def read_duration(node: Node | None, scope: Scope) -> float | None:
    """Return seconds from a text as `15s` or `1m30s`."""
    if node is None or is_broken(node):
        return None
    text = node.value if isinstance(node, Scalar) else ""
    match = _DURATION.fullmatch(text)
    if not text or match is None:
        hint = f"{text}s" if text.isascii() and text.isdigit() and len(text) < 6 else "15s"
        scope.problem(node, f"must be a duration, {got(node)}. Write a number and a unit, as `{hint}` or `1m30s`")
        return None
    return sum(int(part) * factor for part, factor in zip(match.groups(), _DURATION_PARTS, strict=True) if part)


def read_plain_number(node: Node | None, scope: Scope, lowest: float, highest: float) -> float | None:
    """Return a number without suffix within the two bounds."""
    value = read_number(node, scope, None)
    if value is None or node is None:
        return None
    if not lowest <= value <= highest:
        scope.problem(
            node, f"must be a number from {lowest:g} to {highest:g}, {got(node)}. Write a number within these"
        )
        return None
    return value


def read_share(node: Node | None, scope: Scope, whole: str) -> float | None:
    """Return a share of `whole`, above 0 and at most 1; `50%` is as good as 0.5."""
    is_percent = isinstance(node, Scalar) and node.value.endswith("%")
    value = read_number(node, scope, Measure("", Unit.RATIO) if is_percent else None)
    if value is not None and node is not None and not 0.0 < value <= 1.0:
        scope.problem(
            node, f"must be above 0 and at most 1, {got(node)}. Write a share of {whole}, as 0.5, or drop the line"
        )
    return value


def read_number(node: Node | None, scope: Scope, measure: Measure | None) -> float | None:
    """Return a finite number, converted to the unit of `measure`; without a measure there may be no suffix."""
    if node is None or is_broken(node):
        return None
    match = _NUMBER.fullmatch(node.value) if isinstance(node, Scalar) else None
    if match is None or not isinstance(node, Scalar):
        scope.problem(node, f"must be a number, {got(node)}. {_number_advice(node)}")
        return None
    digits, suffix = match.groups()
    if node.style and not suffix:
        scope.problem(node, f"must be a number, got the text {node.value!r}. Write {digits} without quotes")
        return None
    factor = _factor(node, suffix, scope, measure)
    if factor is None:
        return None
    exact = Fraction(digits) * factor
    try:
        value = float(exact)
    except OverflowError:
        value = math.inf
    if math.isinf(value):
        scope.problem(node, f"must be a finite number, {got(node)}. Write a number below 1e308")
        return None
    return value


def _factor(node: Scalar, suffix: str, scope: Scope, measure: Measure | None) -> Fraction | None:
    if not suffix:
        return Fraction(1)
    if measure is None:
        scope.problem(
            node, f"must be a number without a suffix, {got(node)}. Write {node.value[: -len(suffix)].strip()}"
        )
        return None
    signal, unit = measure.signal, measure.unit
    if unit is None:
        return Fraction(1)
    known = SUFFIXES[unit]
    if suffix in known:
        return known[suffix]
    if unit is Unit.NONE:
        scope.problem(node, f"a suffix needs a unit, {got(node)}. {_unit_advice(suffix, signal)}")
        return None
    what = f"{suffix!r} does not convert to {unit.value}, the unit of signal '{signal}', {got(node)}"
    advice = f"Write a number in {unit.value}, without a suffix or with one of: {', '.join(known)}"
    scope.problem(node, f"{what}{nearest(suffix, known)}. {advice}")
    return None


def _unit_advice(suffix: str, signal: str) -> str:
    for unit in _SUGGESTED:
        if suffix in SUFFIXES[unit]:
            return f"Write `unit: {unit.value}` in signal '{signal}', or the number without {suffix!r}"
    return f"Write the number without {suffix!r}; suffixes are known for units {', '.join(_SUGGESTED)}"


def _number_advice(node: Node) -> str:
    text = node.value.lower() if isinstance(node, Scalar) else ""
    if "nan" in text or "inf" in text:
        return "Write a finite number"
    if re.fullmatch(r"[-+]?0[0-9_]+", text):
        return "Write it without a leading zero, which some readers take for octal"
    if re.fullmatch(r"[-+]?[0-9][0-9_,]+", text):
        return "Write it without separators between digits"
    return "Write digits, as 0.8"
