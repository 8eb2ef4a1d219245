"""That no tenant gets beyond its bound, in a few hundred of the runs; and that one who did would be found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from scheduler.framework.status import Code, Rejection
from scheduler.model.arrays import Rows
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from scheduler.plugins.tenant_overcommit import TenantOvercommit
from tests.contracts import tenancy
from tests.contracts.tenancy import EXPECTED, TenantError, run


class Lax(TenantOvercommit):
    """Refuses a node only where the bounds of the tenant are not why."""

    def filter(self, state: Any, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[Rejection]:
        found = super().filter(state, pod, snapshot, rows)
        return [one for one in found if not one.reason.endswith("did not hold")]


class Strict(TenantOvercommit):
    """Refuses every node."""

    def filter(self, state: Any, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[Rejection]:
        return [Rejection(np.ones(len(snapshot.nodes.alive[rows]), dtype=np.bool_), Code.UNSCHEDULABLE, "no")]


def test_nobody_gets_beyond_its_bound_in_hundreds_of_runs() -> None:
    seen = run(range(300))

    assert {name for name in EXPECTED if not seen[name]} == set()


@pytest.mark.parametrize("plugin", [Lax(), Strict()], ids=lambda plugin: plugin.name)
def test_a_refusal_too_few_or_too_many_is_found_and_named(plugin: TenantOvercommit) -> None:
    with pytest.raises(TenantError) as failure:
        run(range(60), plugin)

    assert failure.value.__notes__[0].startswith("python -m tests.contracts.tenancy --number 1 --seed ")


def test_the_command_reports_what_happened() -> None:
    lines: list[str] = []

    assert tenancy.main(["--number", "40", "--seed", "3"], lines.append) == 0
    assert lines[-1].startswith("40 runs in ")
