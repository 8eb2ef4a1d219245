"""Single values: texts, words of a list, truth values, durations, numbers.

Every reader returns None after it has reported a problem; no value is repaired, rounded or clamped.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Final

from scheduler.strict_yaml.nodes import YamlNode, YamlScalar, is_broken
from scheduler.strict_yaml.report import Scope, clip, did_you_mean, got

# No exponent of four digits: an exact fraction of 1e999999999 does not fit into memory.
DIGITS: Final = r"[-+]?(?:0|[1-9][0-9]{0,30}|(?=\.[0-9]))(?:\.[0-9]{0,30})?(?:[eE][-+]?[0-9]{1,3})?"
_NUMBER: Final = re.compile(rf"({DIGITS}) ?([A-Za-zµ°%]*)")
DURATION: Final = re.compile(
    r"(?:([0-9]{1,9})d)?(?:([0-9]{1,9})h)?(?:([0-9]{1,9})m)?(?:([0-9]{1,9})s)?(?:([0-9]{1,9})ms)?"
)
_DURATION_PARTS: Final = (86_400.0, 3_600.0, 60.0, 1.0, 0.001)

FactorOf = Callable[[YamlScalar, str], Fraction | None]
"""What a number is multiplied by for the suffix behind it; None where the suffix has been refused."""


def read_text(node: YamlNode | None, scope: Scope) -> str | None:
    """Return text that is not empty, and that no reader of YAML takes for a number or a truth value."""
    text = read_any_text(node, scope)
    if text == "" and node is not None:
        scope.problem(node, "an empty text, got ''. Write a value, or drop the line")
        return None
    return text


def read_any_text(node: YamlNode | None, scope: Scope) -> str | None:
    if node is None or is_broken(node):
        return None
    if not isinstance(node, YamlScalar) or (node.value == "" and not node.style):
        scope.problem(node, f"must be a text, {got(node)}. Write one value")
        return None
    if not node.is_text:
        scope.problem(node, f'must be a text, {got(node)} without quotes. Write "{clip(node.value)}"')
        return None
    return node.value


def read_word(node: YamlNode | None, scope: Scope, known: Sequence[str]) -> str | None:
    """Return one of the `known` words."""
    if node is None or is_broken(node):
        return None
    if isinstance(node, YamlScalar) and node.value in known:
        return node.value
    word = node.value if isinstance(node, YamlScalar) else ""
    scope.problem(node, f"unknown value, {got(node)}{did_you_mean(word, known)}. Write one of: {', '.join(known)}")
    return None


def read_duration(node: YamlNode | None, scope: Scope) -> float | None:
    """Return seconds from a text as `15s` or `1m30s`."""
    if node is None or is_broken(node):
        return None
    text = node.value if isinstance(node, YamlScalar) else ""
    match = DURATION.fullmatch(text)
    if not text or match is None:
        hint = f"{text}s" if text.isascii() and text.isdigit() and len(text) < 6 else "15s"
        scope.problem(node, f"must be a duration, {got(node)}. Write a number and a unit, as `{hint}` or `1m30s`")
        return None
    return sum(int(part) * factor for part, factor in zip(match.groups(), _DURATION_PARTS, strict=True) if part)


def read_truth(node: YamlNode | None, scope: Scope) -> bool | None:
    if node is None or is_broken(node):
        return None
    if isinstance(node, YamlScalar) and not node.style and node.value in ("true", "false"):
        return node.value == "true"
    scope.problem(node, f"must be true or false, {got(node)}. Write one of the two")
    return None


def read_plain_number(node: YamlNode | None, scope: Scope, lowest: float, highest: float) -> float | None:
    """Return a number without suffix within the two bounds."""
    value = read_number(node, scope)
    if value is None or node is None:
        return None
    if not lowest <= value <= highest:
        scope.problem(
            node, f"must be a number from {lowest:g} to {highest:g}, {got(node)}. Write a number within these"
        )
        return None
    return value


def read_number(node: YamlNode | None, scope: Scope, factor_of: FactorOf | None = None) -> float | None:
    """Return a finite number, multiplied by what its suffix says; without `factor_of` there may be none."""
    if node is None or is_broken(node):
        return None
    match = _NUMBER.fullmatch(node.value) if isinstance(node, YamlScalar) else None
    if match is None or not isinstance(node, YamlScalar):
        scope.problem(node, f"must be a number, {got(node)}. {_number_advice(node)}")
        return None
    digits, suffix = match.groups()
    if node.style and not suffix:
        scope.problem(node, f"must be a number, got the text {node.value!r}. Write {digits} without quotes")
        return None
    if suffix and factor_of is None:
        write = f"Write {node.value[: -len(suffix)].strip()}"
        scope.problem(node, f"must be a number without a suffix, {got(node)}. {write}")
        return None
    factor = factor_of(node, suffix) if suffix and factor_of is not None else Fraction(1)
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


def _number_advice(node: YamlNode) -> str:
    text = node.value.lower() if isinstance(node, YamlScalar) else ""
    if "nan" in text or "inf" in text:
        return "Write a finite number"
    if re.fullmatch(r"[-+]?0[0-9_]+", text):
        return "Write it without a leading zero, which some readers take for octal"
    if re.fullmatch(r"[-+]?[0-9][0-9_,]+", text):
        return "Write it without separators between digits"
    return "Write digits, as 0.8"
