"""Which rows there are, and what is said of those that there are not; `make faults` runs them."""

from __future__ import annotations

import pytest

from tests.faults.__main__ import Form, chosen, main
from tests.faults.bench.bench import Figure
from tests.faults.row import Row
from tests.faults.rows import CI_ROWS, ROWS


def test_a_name_stands_for_its_variants_too() -> None:
    varied = Row("F26-twice", "", ROWS[0].act)
    assert [row.name for row in chosen([*ROWS, varied], ["F26"])] == ["F26", "F26-twice"]
    assert chosen([*ROWS, varied], ["F26-twice"]) == [varied]
    assert chosen(ROWS, []) == list(ROWS)


def test_names_are_unique() -> None:
    names = [row.name for row in ROWS]
    assert len(set(names)) == len(names)


def test_the_rows_of_ci_are_rows() -> None:
    assert {row.name for row in ROWS} >= set(CI_ROWS)


@pytest.mark.parametrize(
    ("form", "short"), [(Form.SHORT, [True, True]), (Form.MIXED, [True, False]), (Form.LONG, [False] * 2)]
)
def test_a_row_of_which_the_length_is_the_point_is_short_only_where_all_are(form: Form, short: list[bool]) -> None:
    rows = [Row("F01", "", ROWS[0].act), Row("F10", "", ROWS[0].act, is_full=True)]
    assert [form.is_short(row) for row in rows] == short


def test_a_row_that_is_not_built_is_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["F99"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("there is no row F99; built are ")
    assert "F26" in said


@pytest.mark.parametrize(
    ("figure", "holds"),
    [
        (Figure("a", 1.0, at_most=1.0), True),
        (Figure("a", 1.1, at_most=1.0), False),
        (Figure("a", 0.9, at_least=1.0), False),
        (Figure("a", 5.0), True),
    ],
)
def test_a_figure_is_held_against_its_bounds(figure: Figure, holds: bool) -> None:
    assert figure.holds is holds
