"""`python -m tests.conformance.generate --seed S --number N`: make fresh cases, let the oracle answer, compare.

Prints the table of `python -m tests.conformance`, then how many cases reach each fact of `coverage.FACTS`. Ends with 1
if Vane differs, or cannot answer at all, and from 5,000 cases on if a fact is not reached or 2 % are gaps.
`--write PATH` keeps the answered cases.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tests.conformance.__main__ import show
from tests.conformance.cases import Case
from tests.conformance.generate.coverage import FACTS, facts_of
from tests.conformance.generate.draw import Fields
from tests.conformance.generate.families import FAMILIES, case_named, cases
from tests.conformance.generate.oracle import answered, stable
from tests.conformance.report import Report
from tests.controlplane.build import ensure_oracle

_ENOUGH = 5_000
"""So many cases reach every fact whatever the seed; rare ones would be missed by chance among fewer."""


_MOST_GAPS = 0.02
"""The share of cases that may go without comparison."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.generate", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--number", type=int, default=1_000, help="how many cases")
    parser.add_argument("--family", action="append", choices=FAMILIES, help="only this family; may be repeated")
    parser.add_argument("--write", type=Path, help="keep the answered cases there, .jsonl.gz")
    parser.add_argument("--case", help="show one case, field by field, whatever seed and number are")
    options = parser.parse_args(arguments)
    oracle = ensure_oracle(progress=lambda line: print(line, file=sys.stderr, flush=True))
    if options.case:
        return show([Case.of(case) for case in answered(oracle, [case_named(options.case)])], options.case)
    families = tuple(options.family or FAMILIES)
    report, facts = Report(), Counter(dict.fromkeys(FACTS, 0))
    made = answered(oracle, cases(options.seed, options.number, families))
    for case in made if options.write is None else _kept(made, options.write):
        facts.update(facts_of(case))
        report.add(Case.of(case))
    set_aside_chance(report, oracle, cases(options.seed, options.number, families))
    print(*report.lines(), sep="\n")
    print("\nHow many cases reach what:")
    for fact, count in sorted(facts.items()):
        print(f"    {count:6d}  {fact}{'' if count else '   <- not reached'}")
    is_whole = options.number >= _ENOUGH and not options.family
    missed = is_whole and (not all(facts.values()) or len(report.gaps) >= _MOST_GAPS * options.number)
    return 1 if report.differences or report.waiting or missed else 0


def set_aside_chance(report: Report, oracle: Path, made: Iterable[Fields]) -> None:
    """Make gaps of the differing cases that kube-scheduler itself answers in one way now and another way then."""
    names = {one.case for one in report.differences}
    for case, is_stable in stable(oracle, [case for case in made if case["name"] in names]):
        if not is_stable:
            report.set_aside(case["name"], "kube-scheduler answers it differently from time to time")


def _kept(made: Iterable[Fields], path: Path) -> Iterator[Fields]:
    with gzip.open(path, "wt") as lines:
        for case in made:
            lines.write(json.dumps(case, sort_keys=True, separators=(",", ":")) + "\n")
            yield case


if __name__ == "__main__":
    sys.exit(main())
