"""`python -m tests.promql`: ask Prometheus' own parser about the corpus, keep what it says, and compare with Vane.

`--generate N --seed S` asks about so many fresh expressions instead, and keeps nothing. Ends with 1 if Vane differs.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from scheduler.promql.errors import PromQLError
from scheduler.promql.parse import parse
from tests.controlplane.build import ensure_parser
from tests.promql.corpus import load, sources, write
from tests.promql.generator import expressions
from tests.promql.judging import Verdict, by_prometheus, by_vane, differences

_REPEATS = 5


Judged = Mapping[str, Sequence[tuple[str, Verdict]]]


def main() -> int:
    arguments = argparse.ArgumentParser(prog="python -m tests.promql", description=__doc__)
    arguments.add_argument("--generate", type=int, default=0, metavar="N")
    arguments.add_argument("--seed", type=int, default=1)
    options = arguments.parse_args()
    parser = ensure_parser()
    if options.generate:
        judged = _asked(parser, {"generated": expressions(options.seed, options.generate)})
    else:
        judged = _asked(parser, sources())
        write(judged)
        assert load() == judged
    n_different = sum(_show(source, verdicts) for source, verdicts in judged.items())
    exprs = [expr for verdicts in judged.values() for expr, _ in verdicts]
    sys.stdout.write(f"one parse: {_microseconds(exprs):.0f} µs\n")
    return 1 if n_different else 0


def _asked(parser: Path, found: Mapping[str, Iterable[str]]) -> Judged:
    judged, seen = {}, set[str]()
    for source, exprs in found.items():
        fresh = [expr for expr in dict.fromkeys(exprs) if expr not in seen]
        seen.update(fresh)
        judged[source] = list(zip(fresh, by_prometheus(parser, fresh), strict=True))
    return judged


def _show(source: str, judged: Sequence[tuple[str, Verdict]]) -> int:
    """Print what is found and return the number of differences."""
    different = differences([expr for expr, _ in judged], [verdict for _, verdict in judged])
    invalid = [(expr, verdict) for expr, verdict in judged if not verdict.is_valid]
    same = sum((ours := by_vane(expr)) is not None and ours.at == theirs.at for expr, theirs in invalid)
    told = f"{len(judged)} expressions, {len(invalid)} of them invalid, {len(different)} differences"
    sys.stdout.write("\n".join([*different[:20], f"{source}: {told}; {same} errors at the same place\n"]))
    return len(different)


def _microseconds(exprs: list[str]) -> float:
    """Return the time of one parse, the mean over all; the best of a few runs."""
    best = float("inf")
    for _ in range(_REPEATS):
        started = time.perf_counter()
        for expr in exprs:
            try:
                parse(expr)
            except PromQLError:
                continue
        best = min(best, time.perf_counter() - started)
    return best / len(exprs) * 1e6


if __name__ == "__main__":
    sys.exit(main())
