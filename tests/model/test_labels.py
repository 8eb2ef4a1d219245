from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.errors import InvalidObjectError
from scheduler.model.labels import LabelColumns, check_requirement, is_label_key, parse_int64, requirement_holds
from scheduler.model.structs import Requirement

VALUES = st.sampled_from(["", "a", "b", "7", "-3", "+7", "007", "9999999999999999999"])
OPERATORS = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])


@st.composite
def requirements(draw: st.DrawFn) -> Requirement:
    operator = draw(OPERATORS)
    if operator in ("Gt", "Lt"):
        values = [str(draw(st.integers(-5, 10)))]
    else:
        values = draw(st.lists(VALUES, min_size=1, max_size=3)) if operator in ("In", "NotIn") else []
    return Requirement(key=draw(st.sampled_from(["zone", "gen", "never"])), operator=operator, values=values)


@settings(max_examples=300, deadline=None)
@given(
    rows=st.lists(st.dictionaries(st.sampled_from(["zone", "gen"]), VALUES), max_size=8),
    later=st.lists(st.tuples(st.integers(0, 7), st.dictionaries(st.sampled_from(["zone", "gen"]), VALUES)), max_size=5),
    requirement=requirements(),
)
def test_columns_answer_as_each_node_would(
    rows: list[dict[str, str]], later: list[tuple[int, dict[str, str]]], requirement: Requirement
) -> None:
    columns = LabelColumns(8)
    for row, labels in enumerate(rows):
        columns.set_row(row, labels)
    for row, labels in later:
        if row < len(rows):
            rows[row] = labels
            columns.set_row(row, labels)

    found = columns.matches(requirement, len(rows))

    assert found.tolist() == [requirement_holds(requirement, labels) for labels in rows]


def test_values_that_no_node_has_any_more_are_forgotten() -> None:
    columns = LabelColumns(2)
    for number in range(1000):
        columns.set_row(0, {"version": str(number)})

    assert len(columns.values("version")) <= 70
    assert columns.matches(Requirement(key="version", operator="In", values=["999"]), 2).tolist() == [True, False]


@pytest.mark.parametrize(
    ("key", "operator", "values", "words"),
    [
        pytest.param("a key", "Exists", [], "qualified", id="a key with a space"),
        pytest.param("zone", "In", [], "at least one", id="In without values"),
        pytest.param("zone", "Exists", ["a"], "must be none", id="Exists with a value"),
        pytest.param("zone", "Gt", ["x"], "one integer", id="Gt with text"),
        pytest.param("zone", "Gt", ["1", "2"], "one integer", id="Gt with two"),
        pytest.param("zone", "Gt", ["-1"], "no label value", id="Gt with a negative number, which is no label value"),
        pytest.param("zone", "Is", ["a"], "Write In", id="an operator that there is not"),
        pytest.param("zone", "In", ["a b"], "no label value", id="a value with a space"),
    ],
)
def test_what_a_selector_may_not_say(key: str, operator: str, values: list[str], words: str) -> None:
    with pytest.raises(InvalidObjectError, match=words):
        check_requirement(Requirement(key=key, operator=operator, values=values))


@pytest.mark.parametrize(
    ("text", "value"),
    [("7", 7), ("-7", -7), ("+7", 7), ("007", 7), ("9223372036854775807", 2**63 - 1), ("9223372036854775808", None),
     ("1_000", None), (" 1", None), ("", None), ("٣", None),
     ("9" * 5_000, None), ("-" + "0" * 5_000 + "7", -7)],
)  # fmt: skip
def test_integers_are_read_as_go_reads_them(text: str, value: int | None) -> None:
    assert parse_int64(text) == value


@pytest.mark.parametrize(
    ("key", "valid"),
    [("zone", True), ("example.com/zone", True), ("Example.com/zone", False), ("/zone", False), ("a/b/c", False),
     ("x" * 63, True), ("x" * 64, False), ("-a", False), ("", False)],
)  # fmt: skip
def test_which_keys_are_label_keys(key: str, valid: bool) -> None:
    assert is_label_key(key) is valid
