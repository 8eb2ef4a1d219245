"""The rows that are built, by what they break."""

from __future__ import annotations

from tests.faults.row import Row
from tests.faults.rows import leaders

ROWS: tuple[Row, ...] = leaders.ROWS
