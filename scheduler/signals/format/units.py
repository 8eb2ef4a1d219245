"""Numbers of a rule file with a suffix for their unit, as `50ms` or `80%`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from scheduler.model.rules import Unit
from scheduler.strict_yaml.nodes import YamlNode, YamlScalar
from scheduler.strict_yaml.report import Scope, did_you_mean, got
from scheduler.strict_yaml.values import read_number

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


_LARGE_RATIO: Final = 10.0
_LONG_S: Final = 3_600.0
_PER_SECOND: Final = {Unit.SECONDS: 1.0, Unit.MILLISECONDS: 1_000.0}
_LONGEST: Final = 1e9
"""From here on a number is shown with an exponent."""
_SHOWN: Final[Mapping[Unit, tuple[str, ...]]] = {
    Unit.SECONDS: ("ms", "s"),
    Unit.MILLISECONDS: ("ms", "s"),
    Unit.BYTES: ("B", "Ki", "Mi", "Gi", "Ti"),
    Unit.RATIO: ("%",),
    Unit.PERCENT: ("%",),
    Unit.WATT: ("W", "kW"),
    Unit.CELSIUS: ("°C",),
}
"""With which suffixes amounts are shown, the smallest first."""


@dataclass(frozen=True, slots=True)
class Measure:
    """Whose numbers are read: a signal and its unit; the unit is None where the signal itself is broken."""

    signal: str
    unit: Unit | None


def read_amount(node: YamlNode | None, scope: Scope, measure: Measure) -> float | None:
    """Return a finite number, converted to the unit of `measure`; one of an unlikely size is warned of."""
    value = read_number(node, scope, lambda number, suffix: _factor(number, suffix, scope, measure))
    doubt = "" if value is None or not isinstance(node, YamlScalar) else _doubt(node.value, value, measure.unit)
    if doubt and node is not None:
        scope.warning(node, doubt)
    return value


def _doubt(text: str, value: float, unit: Unit | None) -> str:
    """Return what to ask about an amount that may have been meant in another unit, empty for nothing."""
    has_suffix = not text[-1:].isdigit() and not text.endswith(".")
    if unit is Unit.RATIO and not has_suffix and abs(value) >= _LARGE_RATIO:
        return f"{text} of a ratio is {100.0 * value:g}%. Write `{text}%`, if that is meant"
    if unit is Unit.PERCENT and not has_suffix and 0.0 < abs(value) < 1.0:
        return f"{text} of a percentage is {text}%. Write `{100.0 * value:g}%`, if that is meant"
    if unit in (Unit.SECONDS, Unit.MILLISECONDS) and text.endswith("m") and value >= _LONG_S * _PER_SECOND[unit]:
        return f"{text} is {text[:-1].strip()} minutes. Write `{text}s`, if milliseconds are meant"
    return ""


def read_share(node: YamlNode | None, scope: Scope, whole: str) -> float | None:
    """Return a share of `whole`, above 0 and at most 1; `50%` is as good as 0.5."""
    is_percent = isinstance(node, YamlScalar) and node.value.endswith("%")
    value = read_amount(node, scope, Measure("", Unit.RATIO)) if is_percent else read_number(node, scope)
    if value is not None and node is not None and not 0.0 < value <= 1.0:
        scope.problem(
            node, f"must be above 0 and at most 1, {got(node)}. Write a share of {whole}, as 0.5, or drop the line"
        )
    return value


def _factor(node: YamlScalar, suffix: str, scope: Scope, measure: Measure) -> Fraction | None:
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
    scope.problem(node, f"{what}{did_you_mean(suffix, known)}. {advice}")
    return None


def _unit_advice(suffix: str, signal: str) -> str:
    for unit in _SUGGESTED:
        if suffix in SUFFIXES[unit]:
            return f"Write `unit: {unit.value}` in signal '{signal}', or the number without {suffix!r}"
    return f"Write the number without {suffix!r}; suffixes are known for units {', '.join(_SUGGESTED)}"


def amount_text(amount: float, unit: Unit, digits: int = 6) -> str:
    """Return an amount, in its unit, as one would write it into a rule file: 0.8 as `80%`, 2**31 as `2Gi`.

    It has so many digits, or as many as stand before its point.
    """
    shown = [(name, float(SUFFIXES[unit][name])) for name in _SHOWN.get(unit, ())]
    if not shown:
        return _digits(amount, digits)
    fitting = [one for one in shown if abs(amount) >= one[1]]
    suffix, factor = fitting[-1] if fitting else shown[0]
    if amount == 0.0:
        suffix, factor = next((one for one in shown if one[1] == 1.0), shown[0])
    return f"{_digits(amount / factor, digits)}{suffix}"


def duration_text(seconds: float) -> str:
    """Return seconds as Prometheus writes them, as `1m30s`, to the millisecond."""
    rest_ms = round(seconds * 1000)
    parts = []
    for unit, length_ms in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        count, rest_ms = divmod(rest_ms, length_ms)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def _digits(number: float, digits: int) -> str:
    is_long = 10.0**digits <= abs(number) < _LONGEST
    return f"{number:.0f}" if is_long else f"{number:.{digits}g}"
