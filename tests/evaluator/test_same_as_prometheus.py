"""The evaluator answers what a real Prometheus answers on the same samples."""

from __future__ import annotations

import pytest

from tests.evaluator import expressions
from tests.evaluator.comparing import asked, difference, evaluated
from tests.evaluator.conftest import Twins
from tests.evaluator.samples import N_STEPS, STEP_MS, T0_S

LAST_S = T0_S + (N_STEPS - 1) * STEP_MS / 1000
TIMES_S = (
    T0_S,
    T0_S + 301.5,
    T0_S + 765.0,
    LAST_S,
    # Just near enough to the last sample to be extrapolated to, and just too far.
    LAST_S + 15.75,
    LAST_S + 17,
    # The last sample is as old as the lookback, and a little older.
    LAST_S + 300,
    LAST_S + 305.137,
)
GROUPS = {
    name: table
    for name, table in vars(expressions).items()
    if name.isupper() and isinstance(table, tuple) and name != "ALL"
}


# What hangs on where samples lie is asked at every time, the rest where all samples are and where the last are old.
SOME_TIMES_S = (LAST_S, LAST_S + 17)
BY_SAMPLES = ("SELECTORS", "RANGES", "OTHER_RANGES", "FUNCTIONS")


@pytest.mark.parametrize("group", GROUPS)
def test_every_expression(twins: Twins, group: str) -> None:
    wrong = []
    for expr in GROUPS[group]:
        for at_s in TIMES_S if group in BY_SAMPLES else SOME_TIMES_S:
            differs = difference(evaluated(twins.store, expr, at_s), asked(twins.url, expr, at_s))
            if differs:
                wrong.append(f"{expr} at +{at_s - T0_S}: {differs}")
    assert not wrong, "\n".join(wrong)
