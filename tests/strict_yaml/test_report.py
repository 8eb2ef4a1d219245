from __future__ import annotations

import pytest

from scheduler.strict_yaml.composer import compose
from scheduler.strict_yaml.nodes import BrokenNode, YamlMapping, YamlScalar
from scheduler.strict_yaml.report import (
    MAX_PROBLEMS,
    Report,
    Scope,
    closest,
    did_you_mean,
    got,
    offset_in_source,
    position,
    problem_at,
    unknown_field,
)

NODE = YamlScalar(3, 7, 20, 21, "x", "")


def test_a_field_is_named_in_words_or_by_the_way_to_it() -> None:
    report = Report("a.yaml")
    Scope(report, "rule 'hot'").inner("filter").problem(NODE, "bad. Fix it")
    Scope(report, is_path=True).inner("profiles").item(2).inner("plugins").problem(NODE, "bad. Fix it")
    Scope(report).problem(NODE, "bad. Fix it")
    Scope(report, is_path=True).inner("qps").warning(NODE, "has no effect")
    assert [str(problem) for problem in report.problems] == [
        "a.yaml:3:7: rule 'hot', filter: bad. Fix it",
        "a.yaml:3:7: profiles[2].plugins: bad. Fix it",
        "a.yaml:3:7: bad. Fix it",
    ]
    assert [str(warning) for warning in report.warnings] == ["a.yaml:3:7: qps: has no effect"]
    assert problem_at(Scope(report).where(NODE), "bad. Fix it") == report.problems[2]


def test_a_hopeless_file_gives_a_bounded_list() -> None:
    report = Report("a.yaml")
    for line in range(1, 1000):
        report.problem(line, 1, "bad")
    assert report.is_full
    assert len(report.problems) == MAX_PROBLEMS
    assert "Fix those above first" in report.problems[-1].message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5", "got 5"),
        (".nan", "got .nan"),
        ("'5'", "got '5'"),
        ("web", "got 'web'"),
        ("yes", "got 'yes'"),
        ("~", "got ~"),
        ("[1]", "got a list"),
        ("{a: 1}", "got a mapping"),
        ("x" * 100, f"got '{'x' * 59}…'"),
    ],
)
def test_what_was_found_is_shown_short(text: str, expected: str) -> None:
    root = compose(text.encode(), Report("a.yaml"), "Rules")
    assert root is not None
    assert got(root) == expected


def test_nothing_and_what_is_broken_are_shown_too() -> None:
    assert got(YamlScalar(1, 1, 0, 0, "", "")) == "got nothing"
    assert got(BrokenNode(1, 1, 0, 0)) == "got something unreadable"


def test_the_closest_word_is_found_in_capitals_too() -> None:
    known = ("leaseDuration", "renewDeadline", "retryPeriod")
    assert closest("LEASEDURATION", known) == "leaseDuration"
    assert did_you_mean("renew_deadline", known) == ' (did you mean "renewDeadline"?)'
    assert did_you_mean("qps", known) == ""
    assert closest("VANE_RULE", ("VANE_RULES",)) == "VANE_RULES"
    assert closest("ms", ("M", "MB", "k")) == ""
    assert closest("lease", known, 0.8) == ""
    assert closest("x" * 100_000, (f"x{i}" for i in range(100_000))) == ""


def test_an_unknown_field_is_told_with_those_that_there_are() -> None:
    assert unknown_field("wieght", ["name", "weight"]) == (
        "unknown field, got 'wieght' (did you mean \"weight\"?). Write one of: name, weight"
    )


def test_line_ends_of_all_systems_count_alike() -> None:
    assert position("a\r\nb\rc\nd", 7) == (4, 1)


@pytest.mark.parametrize(
    "text",
    [
        "k: sum (x) zz",
        "k: 'sum (x) zz'",
        'k: "sum (x) zz"',
        "k: |\n  sum\n    (x)\n  zz\n",
        "k: >-\n\n  sum (x)\n\n  zz",
        "k: sum\n  (x)  zz",
    ],
)
def test_a_place_in_a_value_is_found_in_the_source(text: str) -> None:
    report = Report("a.yaml")
    root = compose(text.encode(), report, "Rules")
    assert not report.problems
    assert isinstance(root, YamlMapping)
    scalar = root.entries[0][1]
    assert isinstance(scalar, YamlScalar)
    assert offset_in_source(text, scalar, scalar.value.index("zz")) == text.index("zz")
