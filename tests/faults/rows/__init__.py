"""The rows that are built, by what they break."""

from __future__ import annotations

from tests.faults.row import Row
from tests.faults.rows import (
    clocks,
    credentials,
    leaders,
    own_limits,
    prometheus,
    receivers,
    rule_files,
    samples,
    tenants,
)

ROWS: tuple[Row, ...] = (
    *leaders.ROWS,
    *clocks.ROWS,
    *credentials.ROWS,
    *prometheus.ROWS,
    *samples.ROWS,
    *rule_files.ROWS,
    *own_limits.ROWS,
    *tenants.ROWS,
    *receivers.ROWS,
)
