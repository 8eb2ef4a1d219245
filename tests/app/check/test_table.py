from __future__ import annotations

import pytest

from scheduler.app.check.table import table

HEAD = ("NAME", "WHAT IT SAYS", "EMPTY")
ROWS = [("node-cpu-use", "max 80% clear 75%, missing reject", "-"), ("b", "-", "-")]


def test_without_a_width_each_row_is_one_line_without_columns_that_say_nothing() -> None:
    assert table(HEAD, ROWS) == [
        "NAME          WHAT IT SAYS",
        "node-cpu-use  max 80% clear 75%, missing reject",
        "b             -",
        "",
    ]
    assert table(HEAD, []) == []


@pytest.mark.parametrize("width", [47, 40, 30, 24])
def test_cells_go_on_in_further_lines_where_the_width_is_small(width: int) -> None:
    lines = table(HEAD, ROWS, width)
    assert max(map(len, lines)) <= width
    rows = lines[1:] if lines[0].endswith("SAYS") else lines[2:]
    assert " ".join(line[12:].strip() for line in rows[:-2]) == ROWS[0][1]


def test_a_name_is_never_cut() -> None:
    assert any(line.startswith("node-cpu-use ") for line in table(HEAD, ROWS, 5))
