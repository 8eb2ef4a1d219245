"""What a Prometheus reads only with a feature is a warning, until its server is said to have it."""

from __future__ import annotations

import pytest

from scheduler.signals.format.rule_files import lint_rule_files

FILE = b"""apiVersion: vane.dev/v1
kind: Rules
signals:
  near: {expr: 'max by (node) (mad_over_time(x[5m]))'}
  far: {expr: 'max by (node) (mad_over_time(x[5m]))', server: far}
  late: {expr: max by (node) (x), lag: max by (node) (x offset step()), server: far}
"""
FUNCTIONS, DURATIONS = "promql-experimental-functions", "promql-duration-expr"


@pytest.mark.parametrize(
    ("features", "lines"),
    [
        ({}, [4, 5, 6]),
        ({"": {FUNCTIONS}}, [5, 6]),
        ({"far": {FUNCTIONS}}, [4, 6]),
        ({"far": {FUNCTIONS, DURATIONS}}, [4]),
        ({"": {FUNCTIONS}, "far": {FUNCTIONS, DURATIONS}}, []),
    ],
)
def test_each_server_has_its_own(features: dict[str, set[str]], lines: list[int]) -> None:
    result = lint_rule_files({"a.yaml": FILE}, features=features)
    assert result.problems == ()
    assert [warning.line for warning in result.warnings] == lines
    assert all("--enable-feature=" in warning.message for warning in result.warnings)


def test_a_warning_stands_at_its_expression() -> None:
    warning = lint_rule_files({"a.yaml": FILE}).warnings[2]
    assert (warning.line, warning.column) == (6, 40)
    assert warning.message.startswith("signal 'late', lag: a range or an offset is computed")
