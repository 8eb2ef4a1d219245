"""Wall clocks that are stepped: those of Prometheus, and that of a replica."""

from __future__ import annotations

import time

from tests.e2e.outage_rows import clocks_off
from tests.faults.bench import wall_clock
from tests.faults.bench.answers import (
    INTERVAL_S,
    MAX_AGE_S,
    NODE_CPU,
    break_with,
    looks,
    mend,
    oldest_s,
    until_told,
    until_well,
)
from tests.faults.bench.bench import Bench, Setting
from tests.faults.bench.placing import Placing, measure_all_placed
from tests.faults.bench.replicas import LEASE_PATH
from tests.faults.bench.told import signal
from tests.faults.row import Row
from tests.support.fault_proxy import Asked

_HOUR_S = 3600
_OLDEST_S = 3.5 * INTERVAL_S
"""An answer is doubted once where a clock steps, and one that is overdue is asked for after 2.5 intervals."""


def _n_terms(bench: Bench) -> int:
    return int(bench.api.get(LEASE_PATH)["spec"].get("leaseTransitions") or 0)


def prometheus_steps(bench: Bench) -> None:
    """The clock of Prometheus, or that of a proxy before it, is an hour off; then its answers end."""
    vane, n_terms, placing = bench.leader().vane, _n_terms(bench), Placing(bench)
    found, told_s = [], []
    for samples_s, date_s in ((_HOUR_S, _HOUR_S), (-_HOUR_S, -_HOUR_S), (0, _HOUR_S), (0, -_HOUR_S)):
        break_with(bench, clocks_off(samples_s, date_s))
        told_s.append(until_told(bench, vane, NODE_CPU, {"clock_skew"}))
        found += looks(bench, vane, NODE_CPU, bench.seconds(15, 3))
    break_with(bench, clocks_off(_HOUR_S, _HOUR_S))
    until_told(bench, vane, NODE_CPU, {"clock_skew"})
    silent_s = time.monotonic()
    break_with(bench, Asked.hang)
    bench.until(lambda: signal(vane, NODE_CPU).get("state") == "absent", 30.0, "the end of the last samples")
    in_use_s = time.monotonic() - silent_s
    mend(bench)
    bench.figure("told as clock_skew after, longest, s", max(told_s), at_most=2 * INTERVAL_S + 1)
    bench.figure("age of samples in use, oldest, s", oldest_s(found), at_most=_OLDEST_S)
    bench.figure("samples of an hour ahead in use after the last answer, s", in_use_s, at_most=MAX_AGE_S + INTERVAL_S)
    bench.figure("well again after, s", until_well(bench, vane, NODE_CPU))
    bench.figure("leader changes", _n_terms(bench) - n_terms, at_most=0)
    measure_all_placed(bench, placing.names())


def replica_steps(bench: Bench) -> None:
    """The leader's clock steps an hour ahead, back by two, and is set right; then that of the standby."""
    n_terms, placing = _n_terms(bench), Placing(bench)
    found, told_s = [], []
    for replica in (bench.leader(), bench.standby()):
        for ahead_s in (_HOUR_S, -_HOUR_S):
            wall_clock.step(bench.folder, replica.name, ahead_s)
            told_s.append(until_told(bench, replica.vane, NODE_CPU, {"clock_skew"}))
            found += looks(bench, replica.vane, NODE_CPU, bench.seconds(20, 5))
        wall_clock.step(bench.folder, replica.name, 0)
        until_well(bench, replica.vane, NODE_CPU)
    bench.measure_recovery()
    bench.figure("told as clock_skew after, longest, s", max(told_s), at_most=1 + 3.5 * INTERVAL_S + 1)
    bench.figure("age of samples in use, oldest, s", oldest_s(found), at_most=_OLDEST_S)
    bench.figure("leader changes", _n_terms(bench) - n_terms, at_most=0)
    measure_all_placed(bench, placing.names())


ROWS = (
    Row("F11-prometheus", "Prometheus' clock, or a proxy's before it, is an hour off", prometheus_steps),
    Row(
        "F11-replica",
        "a replica's wall clock steps by hours, its monotonic clock runs on (libfaketime)",
        replica_steps,
        Setting(own_env=wall_clock.environ),
    ),
)
