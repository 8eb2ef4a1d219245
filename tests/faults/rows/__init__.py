"""The rows that are built, by what they break."""

from __future__ import annotations

from tests.faults.row import Row
from tests.faults.rows import (
    api_server,
    binds,
    clocks,
    credentials,
    leaders,
    other_schedulers,
    own_limits,
    preemption,
    prometheus,
    receivers,
    refusals,
    rule_files,
    samples,
    tenants,
    watches,
)

ROWS: tuple[Row, ...] = (
    *api_server.ROWS,
    *binds.ROWS,
    *clocks.ROWS,
    *credentials.ROWS,
    *leaders.ROWS,
    *other_schedulers.ROWS,
    *own_limits.ROWS,
    *preemption.ROWS,
    *prometheus.ROWS,
    *receivers.ROWS,
    *refusals.ROWS,
    *rule_files.ROWS,
    *samples.ROWS,
    *tenants.ROWS,
    *watches.ROWS,
)

CI_ROWS = ("F01", "F03-nodes", "F10-kills", "F20", "F24", "F26")
"""The rows that CI runs, in short: about two minutes for all."""
