"""The evaluator answers what a real Prometheus answers on the same samples."""

from __future__ import annotations

import pytest

from tests.sim.prometheus import expressions
from tests.sim.prometheus.comparing import asked, difference, evaluated
from tests.sim.prometheus.conftest import Twins
from tests.sim.prometheus.samples import T0_S

TIMES_S = (T0_S, T0_S + 301.5, T0_S + 765.0, T0_S + 1485.0, T0_S + 1790.137)
GROUPS = {
    name: table
    for name, table in vars(expressions).items()
    if name.isupper() and isinstance(table, tuple) and name != "ALL"
}


@pytest.mark.parametrize("group", GROUPS)
def test_every_expression(twins: Twins, group: str) -> None:
    wrong = []
    for expr in GROUPS[group]:
        for at_s in TIMES_S:
            differs = difference(evaluated(twins.store, expr, at_s), asked(twins.url, expr, at_s))
            if differs:
                wrong.append(f"{expr} at +{at_s - T0_S}: {differs}")
    assert not wrong, "\n".join(wrong)
