"""Tables as wide as the terminal at most: cells of the widest columns go on in further lines."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import zip_longest
from typing import Final

NOTHING: Final = "-"

_GAP: Final = "  "


def table(head: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None) -> list[str]:
    """Return lines, the last one empty; nothing without rows. Columns that say nothing in any row are left out.

    Without a `width`, in characters, each row is one line, however long.
    """
    if not rows:
        return []
    kept = [i for i in range(len(head)) if i == 0 or any(row[i] != NOTHING for row in rows)]
    cells = [[row[i] for i in kept] for row in (head, *rows)]
    columns = list(zip(*cells, strict=True))
    widths = [max(map(len, column)) for column in columns]
    if width is not None:
        # A name that is cut cannot be copied: where names alone are too wide, so is the table.
        _shrink(widths, [max(len(word) for cell in column for word in cell.split()) for column in columns], width)
    lines = [line for row in cells for line in _lines(row, widths)]
    return [*lines, ""]


def _shrink(widths: list[int], least: Sequence[int], width: int) -> None:
    """Take from the widest column that has anything to spare, again and again, until all fit."""
    while sum(widths) + len(_GAP) * (len(widths) - 1) > width:
        spare = [i for i in range(len(widths)) if widths[i] > least[i]]
        if not spare:
            return
        widths[max(spare, key=lambda i: widths[i])] -= 1


def _lines(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    parts = [
        textwrap.wrap(cell, size, break_on_hyphens=False, break_long_words=False) or [""]
        for cell, size in zip(row, widths, strict=True)
    ]
    return [
        _GAP.join(part.ljust(size) for part, size in zip(line, widths, strict=True)).rstrip()
        for line in zip_longest(*parts, fillvalue="")
    ]
