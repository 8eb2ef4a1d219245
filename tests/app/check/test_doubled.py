"""Two rules that contradict each other, or count the same load twice."""

from __future__ import annotations

import pytest

from scheduler.app.check.rule_files import check

SIGNALS = """apiVersion: vane.dev/v1
kind: Rules
signals:
  use: {expr: max by (node) (use), unit: ratio, inflight: {cpu: request}}
  load: {expr: max by (node) (load), unit: ratio, inflight: {cpu: request}}
  idle: {expr: min by (node) (use), unit: ratio}
  disk: {expr: max by (node) (disk), unit: ratio}
rules:
"""
LOW, HIGH = "score: {best: 0, worst: 1}", "score: {best: 1, worst: 0}"
WEB, DB = "match: {labels: {tier: web}}", "match: {labels: {tier: db}}"


def warnings(*rules: str) -> list[str]:
    text = SIGNALS + "".join(f"  - {{name: r{i}, {rule}}}\n" for i, rule in enumerate(rules))
    used = "".join(
        f"  - {{name: u{name}, signal: {name}, filter: {{max: 1}}, mode: shadow}}\n"
        for name in ("use", "load", "idle", "disk")
    )
    report = check({"a.yaml": (text + used).encode()})
    assert not report.problems
    return [problem.message for problem in report.warnings]


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ((f"signal: use, {LOW}", f"signal: use, {HIGH}"), "it prefers what rule 'r0' at a.yaml:9:5 avoids"),
        (
            ("signal: use, filter: {max: 0.5}", "signal: use, filter: {min: 0.6}"),
            "no value of 'use' passes both this and rule 'r0' at a.yaml:9:5",
        ),
        ((f"signal: use, {LOW}", f"signal: load, {LOW}"), "it and rule 'r0' at a.yaml:9:5 both score the cpu that"),
        ((f"signal: use, {LOW}", f"signal: idle, {LOW}"), "it and rule 'r0' at a.yaml:9:5 both score use, so that"),
        ((f"signal: use, {WEB}, {LOW}", f"signal: use, {HIGH}"), "it prefers what rule 'r0'"),
    ],
)
def test_two_rules_that_do_not_go_together(rules: tuple[str, str], said: str) -> None:
    (warning,) = warnings(*rules)
    assert warning.startswith(f"rule 'r1': {said}")


@pytest.mark.parametrize(
    "rules",
    [
        (f"signal: use, {LOW}", f"signal: disk, {HIGH}"),
        (f"signal: use, {WEB}, {LOW}", f"signal: use, {DB}, {HIGH}"),
        (f"signal: use, {LOW}", f"signal: use, {HIGH}, mode: shadow"),
        ("signal: use, filter: {max: 0.5}", "signal: use, filter: {min: 0.2}"),
        (f"signal: use, {WEB}, {LOW}", f"signal: load, {LOW}"),
        (f"signal: use, {LOW}", "signal: load, filter: {max: 0.8}"),
    ],
)
def test_two_rules_that_do(rules: tuple[str, str]) -> None:
    assert warnings(*rules) == []
