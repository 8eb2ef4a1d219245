"""A row of the bench: one class of failure, made true on real servers, and what must hold then."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.bench.bench import Bench, Figure, RowError, Setting, running
from tests.faults.bench.servers import Servers


@dataclass(frozen=True)
class Row:
    """`act` breaks something, mends it and measures; the invariants are held against every run.

    How long it lasts, or how often it happens, is the point of a row that `is_full`: it is short only where all are.
    """

    name: str
    title: str
    act: Callable[[Bench], None]
    setting: Setting = field(default_factory=Setting)
    is_full: bool = False


@dataclass
class Outcome:
    """What came of one row."""

    row: Row
    figures: list[Figure]
    problems: list[str]
    told_apart: list[str]
    took_s: float
    n_bound: int = 0
    logs: dict[str, str] = field(default_factory=dict)

    @property
    def is_passed(self) -> bool:
        return not self.problems and all(figure.holds for figure in self.figures)

    def __str__(self) -> str:
        head = f"{self.row.name} {'passed' if self.is_passed else 'FAILED'}  {self.row.title}"
        lines = [f"{head} ({self.took_s:.0f} s, {self.n_bound} binds, {len(self.told_apart)} told apart)"]
        lines += [f"    {'' if figure.holds else 'BROKEN '}{figure}" for figure in self.figures]
        lines += [f"    BROKEN {problem}" for problem in self.problems]
        return "\n".join(lines)


def run(row: Row, servers: Servers, folder: Path, is_short: bool = False) -> Outcome:
    """Run a row from its first Pod to the verdict."""
    begun_s = time.monotonic()
    outcome = Outcome(row, [], [], [], 0.0)
    try:
        with running(servers, folder, row.setting, is_short) as bench:
            outcome.figures = bench.figures
            try:
                row.act(bench)
            except RowError as error:
                outcome.problems.append(str(error))
            servers.mend()
            bench.settle()
            _judge(bench, row, outcome)
    except RowError as error:
        outcome.problems.append(f"the row could not begin: {error}")
    outcome.took_s = time.monotonic() - begun_s
    return outcome


def _judge(bench: Bench, row: Row, outcome: Outcome) -> None:
    verdict, evidence = bench.verdict()
    outcome.told_apart = verdict.told_apart
    outcome.n_bound = len(evidence.binds)
    outcome.logs = bench.replicas.logs()
    for name, found in verdict.violations.items():
        more = f" and {len(found) - 3} more" if len(found) > 3 else ""
        outcome.problems.append(f"{name}: {'; '.join(found[:3])}{more}")
    if evidence.history.n_gaps:
        outcome.problems.append(f"the checker's watch has {evidence.history.n_gaps} gaps")
    if bench.sampler.fault:
        outcome.problems.append(f"memory and descriptors were not sampled to the end: {bench.sampler.fault}")
    outcome.problems += [
        f"{one.replica} ended with {one.code}" for one in bench.replicas.ended if one.code not in row.setting.exits
    ]
    tracebacks = [name for name, text in outcome.logs.items() if "Traceback" in text]
    outcome.problems += [f"an exception escaped in {name}" for name in tracebacks]
