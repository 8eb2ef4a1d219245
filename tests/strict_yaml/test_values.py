from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from scheduler.strict_yaml.composer import compose
from scheduler.strict_yaml.nodes import BrokenNode, YamlNode
from scheduler.strict_yaml.report import Report, Scope
from scheduler.strict_yaml.values import (
    read_any_text,
    read_duration,
    read_number,
    read_plain_number,
    read_text,
    read_truth,
    read_word,
)

Reader = Callable[[YamlNode | None, Scope], Any]


def word(node: YamlNode | None, scope: Scope) -> str | None:
    return read_word(node, scope, ("allow", "reject"))


def from_1_to_9(node: YamlNode | None, scope: Scope) -> float | None:
    return read_plain_number(node, scope, 1.0, 9.0)


def percent(node: YamlNode | None, scope: Scope) -> float | None:
    return read_number(node, scope, lambda _, suffix: Fraction(1, 100) if suffix == "%" else None)


def read(reader: Reader, text: str) -> tuple[Any, list[str]]:
    report = Report("a.yaml")
    value = reader(compose(text.encode(), report, "Rules"), Scope(report))
    return value, [problem.message for problem in report.problems]


@pytest.mark.parametrize(
    ("reader", "text", "value"),
    [
        (read_text, "web", "web"),
        (read_any_text, "''", ""),
        (word, "allow", "allow"),
        (read_truth, "true", True),
        (read_truth, "false", False),
        (read_duration, "1h30m", 5400.0),
        (read_duration, "1d1ms", 86_400.001),
        (read_number, "0.5", 0.5),
        (read_number, "1e3", 1000.0),
        (read_number, ".5", 0.5),
        (percent, "50%", 0.5),
        (percent, "50 %", 0.5),
        (percent, "2", 2.0),
        (from_1_to_9, "9", 9.0),
    ],
)
def test_a_value_is_read(reader: Reader, text: str, value: object) -> None:
    assert read(reader, text) == (value, [])


@pytest.mark.parametrize(
    ("reader", "text", "expected"),
    [
        (read_text, "''", "an empty text, got ''. Write a value, or drop the line"),
        (read_text, "5", 'must be a text, got 5 without quotes. Write "5"'),
        (read_text, "[a]", "must be a text, got a list. Write one value"),
        (word, "reject!", "unknown value, got 'reject!' (did you mean \"reject\"?). Write one of: allow, reject"),
        (read_truth, "yes", "must be true or false, got 'yes'. Write one of the two"),
        (read_truth, "'true'", "must be true or false, got 'true'. Write one of the two"),
        (read_duration, "15", "must be a duration, got 15. Write a number and a unit, as `15s` or `1m30s`"),
        (read_duration, "1.5h", "must be a duration, got '1.5h'. Write a number and a unit, as `15s` or `1m30s`"),
        (read_number, "10m", "must be a number without a suffix, got '10m'. Write 10"),
        (read_number, "'5'", "must be a number, got the text '5'. Write 5 without quotes"),
        (read_number, "010", "must be a number, got 010. Write it without a leading zero, which some readers take"),
        (read_number, "1,000", "must be a number, got '1,000'. Write it without separators between digits"),
        (read_number, ".nan", "must be a number, got .nan. Write a finite number"),
        (read_number, "1e999", "must be a finite number, got 1e999. Write a number below 1e308"),
        (read_number, "high", "must be a number, got 'high'. Write digits, as 0.8"),
        (from_1_to_9, "10", "must be a number from 1 to 9, got 10. Write a number within these"),
    ],
)
def test_what_is_no_such_value_is_told(reader: Reader, text: str, expected: str) -> None:
    value, problems = read(reader, text)
    assert value is None
    assert len(problems) == 1
    assert problems[0].startswith(expected)


def test_a_suffix_that_has_been_refused_leaves_no_number() -> None:
    assert read(percent, "5ms") == (None, [])


@pytest.mark.parametrize("reader", [read_text, word, read_truth, read_duration, read_number, from_1_to_9])
@pytest.mark.parametrize("node", [None, BrokenNode(1, 1, 0, 0)])
def test_of_what_is_absent_or_broken_nothing_is_said_again(reader: Reader, node: YamlNode | None) -> None:
    report = Report("a.yaml")
    assert reader(node, Scope(report)) is None
    assert not report.problems
