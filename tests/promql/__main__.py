"""`python -m tests.promql`: ask Prometheus' own parser about the corpus, keep what it says, and compare with Vane.

`--generate N --seed S` asks about so many fresh expressions instead, and keeps nothing. Ends with 1 if Vane differs.
"""

from __future__ import annotations

import argparse
import sys
import time

from scheduler.promql.errors import PromQLError
from scheduler.promql.parse import parse
from tests.controlplane.build import ensure_parser
from tests.promql.corpus import load, sources, write
from tests.promql.generator import expressions
from tests.promql.judging import by_prometheus, by_vane, differences

_REPEATS = 5


def main() -> int:
    arguments = argparse.ArgumentParser(prog="python -m tests.promql", description=__doc__)
    arguments.add_argument("--generate", type=int, default=0, metavar="N")
    arguments.add_argument("--seed", type=int, default=1)
    options = arguments.parse_args()
    parser = ensure_parser()
    if options.generate:
        exprs = list(expressions(options.seed, options.generate))
        judged = {"generated": list(zip(exprs, by_prometheus(parser, exprs), strict=True))}
    else:
        judged, seen = {}, set[str]()
        for source, found in sources().items():
            fresh = [expr for expr in dict.fromkeys(found) if expr not in seen]
            seen.update(fresh)
            judged[source] = list(zip(fresh, by_prometheus(parser, fresh), strict=True))
        write(judged)
        assert load() == judged
    n_different = 0
    for source, verdicts in judged.items():
        found_here = differences(*zip(*verdicts, strict=True))
        n_different += len(found_here)
        print(*found_here[:20], sep="\n", end="\n" if found_here else "")
        invalid = [(expr, verdict) for expr, verdict in verdicts if not verdict.is_valid]
        same_place = sum((ours := by_vane(expr)) is not None and ours.at == theirs.at for expr, theirs in invalid)
        print(
            f"{source}: {len(verdicts)} expressions, {len(invalid)} of them invalid, {len(found_here)} differences; "
            f"{same_place} errors at the same place"
        )
    print(f"one parse: {_microseconds([expr for verdicts in judged.values() for expr, _ in verdicts]):.0f} µs")
    return 1 if n_different else 0


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
