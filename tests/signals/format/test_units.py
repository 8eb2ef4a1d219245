"""Amounts as `vane check` shows them: as one would write them, and read back as they were."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.model.rules import Unit
from scheduler.signals.format.rule_files import lint_rule_files
from scheduler.signals.format.units import SUFFIXES, amount_text


@pytest.mark.parametrize(
    ("amount", "unit", "text"),
    [
        (0.8, Unit.RATIO, "80%"),
        (80.0, Unit.PERCENT, "80%"),
        (0.05, Unit.SECONDS, "50ms"),
        (1.5, Unit.SECONDS, "1.5s"),
        (500.0, Unit.MILLISECONDS, "500ms"),
        (3_600_000.0, Unit.MILLISECONDS, "3600s"),
        (2.0**31, Unit.BYTES, "2Gi"),
        (0.0, Unit.BYTES, "0B"),
        (0.0, Unit.WATT, "0W"),
        (0.0, Unit.RATIO, "0%"),
        (-1500.0, Unit.WATT, "-1.5kW"),
        (40.0, Unit.CELSIUS, "40°C"),
        (3.25, Unit.NONE, "3.25"),
    ],
)
def test_an_amount_is_shown_as_one_would_write_it(amount: float, unit: Unit, text: str) -> None:
    assert amount_text(amount, unit) == text


@given(st.floats(-1e12, 1e12), st.sampled_from(list(Unit)))
def test_what_is_shown_means_the_same(amount: float, unit: Unit) -> None:
    shown = re.fullmatch(r"(-?[\d.]+(?:e[-+]\d+)?)(\D*)", amount_text(amount, unit))
    assert shown is not None
    factor = float(SUFFIXES[unit][shown[2]]) if shown[2] else 1.0
    assert float(shown[1]) * factor == pytest.approx(amount, rel=1e-5)


@pytest.mark.parametrize(
    ("unit", "text", "said"),
    [
        ("ratio", "80", "80 of a ratio is 8000%. Write `80%`, if that is meant"),
        ("ratio", "80%", ""),
        ("ratio", "2.5", ""),
        ("percent", "0.8", "0.8 of a percentage is 0.8%. Write `80%`, if that is meant"),
        ("percent", "0.8%", ""),
        ("percent", "1", ""),
        ("s", "500m", "500m is 500 minutes. Write `500ms`, if milliseconds are meant"),
        ("ms", "250m", "250m is 250 minutes. Write `250ms`, if milliseconds are meant"),
        ("s", "5m", ""),
        ("s", "500ms", ""),
        ("bytes", "500", ""),
    ],
)
def test_an_amount_of_an_unlikely_size_is_asked_about(unit: str, text: str, said: str) -> None:
    rules = f"""apiVersion: vane.dev/v1
kind: Rules
signals: {{s: {{expr: max by (node) (x), unit: {unit}}}}}
rules: [{{name: a, signal: s, filter: {{max: {text}}}}}]
"""
    reading = lint_rule_files({"a.yaml": rules.encode()})
    assert not reading.problems
    assert [problem.message for problem in reading.warnings] == ([f"rule 'a', filter, max: {said}"] if said else [])
