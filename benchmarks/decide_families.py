"""How long decisions take by family: 5,000 nodes with 20,000 placed Pods, nothing else in the process.

    python -m benchmarks.decide_families [--nodes N] [--pods N] [--preemptions N] [--only TEXT] [--write]

Each decision's Pod is placed before the next one is made; victims leave some decisions later, so that nominated Pods
are about. Exit 1 where the p99 of a family exceeds its target; `--write` renews FAMILIES.md.

Targets are for an idle machine. `decide` never waits, so where other programs took more than a twentieth of the
machine, the CPU time is judged in place of the time that passed.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from benchmarks.decide_alone import settle_as_running
from benchmarks.families import N_PLACED_EACH, Family, families
from benchmarks.usage import Bystanders
from scheduler import __version__
from scheduler.decision.decide import decide
from scheduler.framework.profile import Profile
from scheduler.model.arrays import FloatArray
from scheduler.model.snapshot import Snapshot
from scheduler.plugins import default_chain
from tests.builders import NO_SIGNALS

_METHOD = """\
`python -m benchmarks.decide_families`: `decide` alone, on {n_nodes:,} nodes with {n_placed:,} placed Pods of 200
applications that spread, seek and avoid each other. Milliseconds. Each Pod is placed before the next one is decided;
with preemption the victims leave ten decisions later, so that ten Pods are nominated. *First* is the first decision on
a new state, not in the other figures; *CPU p99* is of the CPU time.

{machine}, {date}, Vane {version}. Other programs took {bystanders:.0%} of the machine meanwhile, which
lengthens all figures, CPU p99 the least. Judged by the {judged}."""
_IDLE = 0.05


@dataclass(frozen=True, slots=True)
class Timed:
    """Milliseconds, of the first decision and by decision (n,); `cpu_ms` is what of them was spent on a CPU."""

    family: Family
    first_ms: float
    wall_ms: FloatArray
    cpu_ms: FloatArray
    n_with_victims: int

    def is_met(self, *, is_idle: bool) -> bool:
        return float(np.percentile(self.wall_ms if is_idle else self.cpu_ms, 99)) <= self.family.target_ms

    def row(self, *, is_idle: bool) -> list[str]:
        p50, p99, most = np.percentile(self.wall_ms, [50, 99, 100])
        cpu_p99 = np.percentile(self.cpu_ms, 99)
        figures = [f"{value:.1f}" for value in (self.first_ms, p50, p99, most, cpu_p99)]
        target = f"{self.family.target_ms:g}"
        is_met = self.is_met(is_idle=is_idle)
        return [self.family.name, str(len(self.wall_ms)), *figures, target if is_met else f"{target}, missed"]


def timed(family: Family, n_nodes: int, n_pods: int) -> Timed:
    profile = Profile.build("vane", default_chain())
    state = family.cluster(n_nodes)
    snapshot = Snapshot(state, NO_SIGNALS, 0.0)
    for plugin in profile.followers:
        plugin.follow(snapshot)
    settle_as_running()
    wall_ms, cpu_ms, n_with_victims = [], [], 0
    for number in range(1 + n_pods):
        pod = family.arrive(state, number)
        snapshot = Snapshot(state, NO_SIGNALS, float(number))
        began_s, cpu_began_s = time.perf_counter(), time.thread_time()
        decision = decide(pod, snapshot, profile)
        cpu_ms.append((time.thread_time() - cpu_began_s) * 1e3)
        wall_ms.append((time.perf_counter() - began_s) * 1e3)
        if not decision.is_scheduled and decision.nomination is None:
            raise RuntimeError(f"{family.name}: no node for Pod {number}: {decision.diagnosis.message()}")
        n_with_victims += bool(decision.victims)
        family.settle(state, pod, decision)
    if family.is_preempting and n_with_victims < n_pods:
        raise RuntimeError(f"{family.name}: {1 + n_pods - n_with_victims} Pods of {1 + n_pods} found room as it was")
    return Timed(family, wall_ms[0], np.array(wall_ms[1:]), np.array(cpu_ms[1:]), n_with_victims)


def table(results: Sequence[Timed], *, is_idle: bool) -> str:
    head = ["family", "Pods", "first", "p50", "p99", "max", "CPU p99", "target"]
    rows = [head, ["---"] * len(head), *(one.row(is_idle=is_idle) for one in results)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5_000, metavar="N")
    parser.add_argument("--pods", type=int, default=400, metavar="N", help="decisions of each family (400)")
    parser.add_argument("--preemptions", type=int, default=100, metavar="N", help="where Pods have to leave (100)")
    parser.add_argument("--only", default="", metavar="TEXT", help="the families with this in their names")
    parser.add_argument("--write", action="store_true", help="renew benchmarks/FAMILIES.md")
    given = parser.parse_args()
    chosen = [family for family in families() if given.only in family.name]
    if not chosen:
        parser.error(f"--only: no family has {given.only!r} in its name")
    results, bystanders = [], Bystanders()
    for family in chosen:
        gc.unfreeze()
        results.append(timed(family, given.nodes, given.preemptions if family.is_preempting else given.pods))
        print(" | ".join(results[-1].row(is_idle=True)), flush=True)
    share = bystanders.share()
    is_idle = share <= _IDLE
    shown = f"{table(results, is_idle=is_idle)}\n\n" + _METHOD.format(
        n_nodes=given.nodes,
        n_placed=given.nodes * N_PLACED_EACH,
        machine=f"One of {os.cpu_count()} {platform.machine()} cores, Python {platform.python_version()}",
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        version=__version__,
        bystanders=share,
        judged="p99" if is_idle else "CPU p99, since the machine was not idle",
    )
    print(f"\n{shown}")
    if given.write:
        (Path(__file__).parent / "FAMILIES.md").write_text(f"# How long a decision takes, by family\n\n{shown}\n")
    return 0 if all(one.is_met(is_idle=is_idle) for one in results) else 1


if __name__ == "__main__":
    sys.exit(main())
