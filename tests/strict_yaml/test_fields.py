from __future__ import annotations

import pytest

from scheduler.strict_yaml.composer import compose
from scheduler.strict_yaml.fields import Fields, Shape, read_document, read_fields, read_list
from scheduler.strict_yaml.nodes import YamlScalar
from scheduler.strict_yaml.report import Report, Scope

FIELDS = ("name", "weight", "items")
STRICT = Shape(
    fields=FIELDS,
    required=("name",),
    later={"curve": "named curves (curve)"},
    refused={"hold": "a hold time belongs to the filter. Write `filter: {hold: 60s}`"},
)
GO = Shape(fields=FIELDS, refused={"hold": "belongs to filter. Write filter"}, is_go=True)


def read(text: str, shape: Shape, *, is_path: bool = False) -> tuple[Fields | None, list[str]]:
    report = Report("a.yaml")
    fields = read_fields(compose(text.encode(), report, "Rules"), Scope(report, "top", is_path=is_path), shape)
    return fields, [str(problem).removeprefix("a.yaml:") for problem in report.problems]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{name: a, wieght: 1}", ["1:11: top: unknown field, got 'wieght' (did you mean \"weight\"?). Write one of:"]),
        ("{weight: 1}", ["1:1: top: `name` is missing. Write `name: …`"]),
        ("{name: a, curve: 1}", ["1:11: top: not built yet: named curves (curve), got 'curve'. Drop the field"]),
        ("{name: a, hold: 1}", ["1:11: top, hold: a hold time belongs to the filter. Write `filter: {hold: 60s}`"]),
        ("[name]", ["1:1: top: must be a mapping, got a list. Write fields: name, weight, items"]),
        ("{}", ["1:1: top: must be a mapping, got an empty one. Write fields:"]),
        ("~", ["1:1: top: must be a mapping, got ~. Write fields:"]),
        ("{name: *x}", ["1:8: an alias, got '*x'. Write the value itself here"]),
        ("{x: 1, name: 1, y: 2}", ["1:2: top: unknown field, got 'x'.", "1:17: top: unknown field, got 'y'."]),
    ],
)
def test_what_does_not_belong_is_told_all_at_once(text: str, expected: list[str]) -> None:
    _, problems = read(text, STRICT)
    assert len(problems) == len(expected), problems
    assert all(found.startswith(words) for found, words in zip(problems, expected, strict=True)), problems


def test_null_is_a_value_unless_go_would_read_it() -> None:
    strict, _ = read("{name: ~}", STRICT)
    go, problems = read("{name: ~, weight: 2}", GO)
    assert strict is not None
    assert go is not None
    assert not problems
    assert ("name" in strict, "name" in go, "weight" in go) == (True, False, True)


@pytest.mark.parametrize("text", ["~", "{}", "null"])
def test_for_go_an_empty_mapping_and_null_are_one(text: str) -> None:
    fields, problems = read(text, GO)
    assert fields is not None
    assert not problems
    assert not fields.found


def test_a_path_names_what_is_refused() -> None:
    assert read("{hold: 1}", GO, is_path=True)[1] == ["1:2: top.hold: belongs to filter. Write filter"]


def test_a_problem_of_a_field_is_told_at_its_key_or_else_at_the_mapping() -> None:
    fields, _ = read("{name: a}", STRICT)
    assert fields is not None
    assert isinstance(fields.at("name"), YamlScalar)
    assert fields.at("name").column == 2
    assert fields.at("weight") is fields.node
    assert fields.get("weight") is None


def test_a_list_may_be_empty_only_where_that_is_said() -> None:
    report = Report("a.yaml")
    root = compose(b"[]", report, "Rules")
    assert read_list(root, Scope(report), "Write items", may_be_empty=True) == ()
    assert read_list(root, Scope(report), "Write items") is None
    assert [problem.message for problem in report.problems] == ["must be a list, got an empty one. Write items"]


def test_a_document_says_of_which_kind_it_is() -> None:
    shape = Shape(fields=("apiVersion", "kind", "rules"), required=("apiVersion", "kind"))
    report = Report("a.yaml")
    assert read_document(b"apiVersion: vane.dev/v2\nkind: [Rules]\n", report, shape, "vane.dev/v1", "Rules") is not None
    assert [str(problem) for problem in report.problems] == [
        "a.yaml:1:13: apiVersion: not known, got 'vane.dev/v2' (did you mean \"vane.dev/v1\"?)."
        " Write `apiVersion: vane.dev/v1`",
        "a.yaml:2:7: kind: not known, got a list. Write `kind: Rules`",
    ]
