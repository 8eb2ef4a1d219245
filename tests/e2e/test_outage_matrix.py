"""What is wrong with Prometheus or its data never lifts a node, stops scheduling or goes unnamed, and it passes.

Each row breaks one thing on a real Prometheus, or in a proxy before it, and looks at the real parts from the client to
`decide` while it is broken, until all samples are too old, and until it is healthy. `OUTAGE=full` runs all rows;
without it those are left out that differ from another one only in how the same thing is answered.
"""

from __future__ import annotations

import itertools
import logging
import os
import statistics
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from scheduler.model.signals import Freshness, SignalTable
from scheduler.signals.problems import SignalProblem, words_of
from tests.e2e.outage_parts import BAD, BOUNDS, BUSY, INTERVAL_S, MAX_AGE_S, NODES, SIGNALS, Measured, Parts, unix_clock
from tests.e2e.outage_rows import ROWS, Row
from tests.support.exporter import NodeExporter
from tests.support.prometheus import PrometheusServer
from tests.support.waiting import PATIENCE, wait_until

IS_FULL = os.environ.get("OUTAGE") == "full"
_ALIKE = frozenset(
    {
        "500",
        "401",
        "redirect",
        "+Inf",
        "exporter that repeats old samples",
        "exporter whose clock is set back",
        "server's clock 3 h behind",
        "matrix",
        "string",
        "half a document",
        "a page of a portal",
    }
)
_LATE_S = 1.5
"""For a query to be answered."""
LOOKED_S = MAX_AGE_S + 2 * INTERVAL_S + BOUNDS.deadline_s


@pytest.fixture(scope="module")
def measured(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Measured]:
    exporter = NodeExporter(NODES)
    exporter.start()
    for i, name in enumerate(NODES):
        exporter.set_cpu(name, 0.05 + 0.08 * i)
        for series in ("node_load1", "node_load5", "pushed_load"):
            exporter.set_gauge(name, series, 5.0 + 8.0 * i)
        if name in BAD:
            exporter.stamp(name, "node_load1", unix_clock)
    server = PrometheusServer(programs, tmp_path_factory.mktemp("matrix"), [exporter.scrape_config()])
    server.start()
    measured = Measured(server, exporter)
    measured.push()
    wait_until(lambda: len(server.query(BUSY.expr)) == len(NODES), 20.0, "rates of all nodes")
    yield measured
    server.stop()
    exporter.stop()


@dataclass
class Seen:
    """What was found while it was wrong.

    `missing_s` says of signal and node after how many seconds there was no sample any more.
    """

    named: dict[str, set[str]] = field(default_factory=dict)
    states: dict[str, list[str]] = field(default_factory=dict)
    missing_s: dict[tuple[str, str], float] = field(default_factory=dict)
    n_looks: int = 0
    n_compared: int = 0
    n_above: int = 0
    n_undecided: int = 0
    n_lost: int = 0
    n_delayed: int = 0

    def look(self, parts: Parts, row: Row, begun_s: float, passed_s: float) -> None:
        """Look once more, so many seconds after it went wrong on a machine that does nothing else."""
        self.n_looks += 1
        self.n_undecided += parts.decided() not in NODES
        table = parts.frozen()
        for name in row.signals:
            self.named.setdefault(name, set()).update(parts.named(name))
            states = parts.freshness(name, table)
            for node in row.bad:
                if states[node] is Freshness.ABSENT:
                    self.missing_s.setdefault((name, node), passed_s)
            for state in (table.columns[name].freshness, *(states[node] for node in row.bad)):
                if state not in self.states.setdefault(name, []):
                    self.states[name].append(state)
            self._compare(parts, row, name, table, states, begun_s)
        others = [set(parts.freshness(name, table).values()) for name in SIGNALS.keys() - set(row.signals)]
        self.n_lost += any(Freshness.ABSENT in states for states in others)
        self.n_delayed += any(states != {Freshness.FRESH} for states in others)

    def has_shown(self, row: Row) -> bool:
        """Whether all has come about that is to come about."""
        if row.is_used:
            return self.missing_s.keys() >= {(name, node) for name in row.signals for node in row.bad}
        is_partial = row.problem in (SignalProblem.PARTIAL, SignalProblem.WARNINGS)
        return is_partial or all(Freshness.ABSENT in self.states[name] for name in row.signals)

    def _compare(
        self,
        parts: Parts,
        row: Row,
        signal: str,
        table: SignalTable,
        states: Mapping[str, Freshness],
        begun_s: float,
    ) -> None:
        """Count bad nodes that have more points than the median of those with the newest samples, if these are fresh.

        A machine that is held up scrapes healthy nodes late, too: their samples lag, and are no measure.
        """
        answer, scores = parts.store.answer(signal), parts.scores(signal, table)
        if table.columns[signal].freshness is Freshness.ABSENT:
            assert set(scores.values()) == {50.0}, "nothing is known of anybody"
        if answer is None or answer.evaluated_at_s < begun_s:
            return  # an answer from before is the same for all
        ages_s = {node: table.columns[signal].age_at(row) for row, node in enumerate(NODES)}
        newest_s = min(ages_s.values())
        fresh = [scores[node] for node in NODES if states[node] is Freshness.FRESH and ages_s[node] == newest_s]
        for node in row.bad:
            if fresh and states[node] is not Freshness.FRESH:
                self.n_compared += 1
                self.n_above += scores[node] > statistics.median(fresh) + 1e-9


def test_the_rows_left_out_are_rows() -> None:
    assert {row.name for row in ROWS} >= _ALIKE


@pytest.mark.parametrize("row", [row for row in ROWS if IS_FULL or row.name not in _ALIKE], ids=lambda row: row.name)
def test_row(
    row: Row, measured: Measured, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.WARNING)
    parts = Parts(measured)
    try:
        well_s = time.monotonic()
        _until_well(parts, well_s)
        seen, begun_s, time_ = Seen(), time.monotonic(), measured.own_time()
        _begin(parts, row)
        # Until the samples from before are too old, a query that is under way has its answer, and one more has come.
        while (wall_s := time.monotonic() - begun_s) < LOOKED_S or (
            wall_s < PATIENCE * LOOKED_S and time_.seconds < LOOKED_S and not seen.has_shown(row)
        ):
            measured.push()
            seen.look(parts, row, begun_s, time_.seconds)
            time.sleep(0.03)
        ended_s = time.monotonic()
        held_up_share = time_.waited_s / (ended_s - begun_s)
        _end(parts, row)
        took_s, pause_s = _until_well(parts, ended_s)
        with capsys.disabled():
            _report(row, seen, parts, pause_s, took_s)
    finally:
        _end(parts, row)
        parts.stop()

    # A query that was under way at the end of the trouble may have failed and made for another pause.
    assert took_s <= BOUNDS.deadline_s + pause_s + INTERVAL_S + _settling_s(row) + _LATE_S
    assert seen.n_undecided == 0
    assert seen.n_above == 0
    # A query that waited for another's end would come after two intervals nearly each time.
    assert seen.n_delayed <= (0.1 + held_up_share) * seen.n_looks, "other signals are asked in time"
    if row.bad and (row.is_used or row.problem in (SignalProblem.PARTIAL, SignalProblem.WARNINGS)):
        assert seen.n_compared > 0, "nothing was looked at"
    # A machine that was held up may not get through a huge answer before the deadline of its query, nor answer others.
    is_late = row.problem is SignalProblem.TOO_MUCH and held_up_share >= 0.1
    assert seen.n_lost == 0 or is_late, "other signals have nothing to do with it"
    named_as = {row.problem.value, *(["timeout"] if is_late else [])}
    for name in row.signals:
        if row.is_used:
            for node in row.bad:
                # At worst it was scraped just before, and is told too old with the answer after that.
                assert seen.missing_s[name, node] <= MAX_AGE_S + 2 * INTERVAL_S + _LATE_S, "bad data ends in time"
        else:
            assert Freshness.ABSENT in seen.states[name] or row.problem in (
                SignalProblem.PARTIAL,
                SignalProblem.WARNINGS,
            )
        if name == "busy" or not row.name.startswith("dead exporter"):
            # What is not asked for because of what others found has no failure of its own.
            assert seen.named[name] & {*named_as, "outage"}
    assert any(named_as & named for named in seen.named.values())
    words = [words_of(SignalProblem(one)) for one in named_as]
    assert any(one in record.getMessage() for one in words for record in caplog.records)
    assert not [record for record in caplog.records if record.exc_info], "no exception escapes"


def _begin(parts: Parts, row: Row) -> None:
    if row.fault is not None:
        parts.proxy.break_with(row.fault)
    if row.begin is not None:
        row.begin(parts)


def _end(parts: Parts, row: Row) -> None:
    if row.end is not None:
        row.end(parts)
    parts.proxy.mend()


def _settling_s(row: Row) -> float:
    """Return how long it takes Prometheus to measure again: a scrape, and the next for what is stamped."""
    return 0.0 if row.fault is not None else 2.5


def _until_well(parts: Parts, since_s: float) -> tuple[float, float]:
    """Wait for all signals to be well; return how long that took, and the longest time until a next attempt."""
    pauses_s: list[float] = []
    took = parts.measured.own_time()

    def unwell() -> str:
        parts.measured.push()
        pauses_s.extend(health.next_try_s for health in parts.refresher.query_health().values())
        return ", ".join(name for name in SIGNALS if not parts.is_well(name, since_s))

    wait_until(lambda: unwell() == "", 30.0, f"the end of the trouble with {unwell()}")
    return took.seconds, max(pauses_s)


def _report(row: Row, seen: Seen, parts: Parts, pause_s: float, took_s: float) -> None:
    """Write the row of the table."""
    named = ", ".join(sorted(set().union(*seen.named.values()))) or "-"
    states = " → ".join(dict.fromkeys(itertools.chain.from_iterable(seen.states.values())))
    p99_ms = float(np.quantile(parts.decision_s, 0.99)) * 1000
    print(  # noqa: T201  # the table is what a full run is for
        f"\n{row.name:<34} named {named:<21} {states:<24} above {seen.n_above}/{seen.n_compared:<5} "
        f"undecided {seen.n_undecided}/{seen.n_looks:<4} p99 {p99_ms:5.1f} ms  "
        f"well after {took_s:4.1f} s (pause {pause_s:.1f} s)",
        end="",
    )
