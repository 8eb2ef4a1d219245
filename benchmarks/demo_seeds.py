"""The comparison of `vane demo` over many seeds: with rules, without, and with rules that are fed random numbers.

    python -m benchmarks.demo_seeds --seeds 20

Each seed is one run of the demo's fast form with three arms side by side on the same arrivals, so what is compared is
paired. All arms share this machine; a machine that is short of CPU delays all of them alike, but leave it alone.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from scheduler.sim.arm import Feed
from scheduler.sim.phases import Phase, timetable
from scheduler.sim.screen import TourMoment
from scheduler.sim.statistics import Figures, interval
from scheduler.sim.tour import SteadyClock, Tour, make_plan

FEEDS: Final = (Feed.RULES, Feed.NONE, Feed.NOISE)
FIGURES: Final[Sequence[tuple[str, Callable[[Figures], float]]]] = (
    ("time on hot nodes, % of Pod-seconds", lambda f: 100.0 * f.hot_share),
    ("p99 latency served, ms", lambda f: f.p99_ms),
    ("requests slower than 250 ms, %", lambda f: 100.0 * f.slow_share),
    ("GPU memory in fragments, GiB", lambda f: f.fragments_gib),
    ("Pods placed, %", lambda f: 100.0 * f.n_bound / f.n_created),
)

Run = Mapping[Feed, Figures]


class NoScreen:
    """Shows nothing."""

    def begin(self, phase: Phase) -> None: ...
    def note(self, lines: Sequence[str]) -> None: ...
    def show(self, moment: TourMoment) -> None: ...
    def close(self) -> None: ...


async def run_seed(seed: int, folder: Path, is_fast: bool) -> Run:
    phases = timetable(is_fast)
    async with Tour(FEEDS, make_plan(seed, phases), phases, folder, SteadyClock()) as tour:
        await tour.start(os.environ, port=0)
        return await tour.run(NoScreen())


def report(runs: Sequence[Run]) -> str:
    """Return Markdown: means with 95 % confidence intervals, then the paired differences to the arm without rules."""
    head = [f"{len(runs)} seeds, mean ± half of the 95 % confidence interval (Student's t).", ""]
    columns = [feed.value for feed in FEEDS]
    differences = [f"{feed.value} - without" for feed in FEEDS if feed is not Feed.NONE]
    lines = [f"| | {' | '.join([*columns, *differences])} |", "|---" * (1 + len(columns) + len(differences)) + "|"]
    for name, value in FIGURES:
        by_feed = {feed: [value(run[feed]) for run in runs] for feed in FEEDS}
        cells = [_shown(by_feed[feed]) for feed in FEEDS]
        for feed in (Feed.RULES, Feed.NOISE):
            pairs = zip(by_feed[feed], by_feed[Feed.NONE], strict=True)
            cells.append(_shown([one - other for one, other in pairs]))
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(head + lines)


def _shown(values: Sequence[float]) -> str:
    """Return mean and interval of what was measured; a run without any request has no p99."""
    known = [value for value in values if not math.isnan(value)]
    return str(interval(known)) + (f" ({len(known)} runs)" if len(known) < len(values) else "")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.demo_seeds", description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=20, metavar="N", help="how many, at least 2 (20)")
    parser.add_argument("--first", type=int, default=1, metavar="N", help="the first of them (1)")
    parser.add_argument("--long", action="store_true", help="the demo's long form: a minute per seed")
    given = parser.parse_args()
    if given.seeds < 2:
        parser.error(f"--seeds: must be at least 2, got {given.seeds}")
    runs = []
    for seed in range(given.first, given.first + given.seeds):
        with tempfile.TemporaryDirectory(prefix="vane-demo-") as folder:
            runs.append(asyncio.run(run_seed(seed, Path(folder), is_fast=not given.long)))
        shown = ", ".join(
            f"{feed.value}: {one.hot_share:.1%} hot, p99 {one.p99_ms:.0f} ms" for feed, one in runs[-1].items()
        )
        print(f"seed {seed}: {shown}", flush=True)
    print(f"\n{report(runs)}")


if __name__ == "__main__":
    main()
