"""`python -m tests.conformance PATH…`: compare Vane with what the real kube-scheduler answered.

Prints a table of equal/compared per family and field, every difference, and the cases that need what is not
built. Ends with 1 if anything differs. `--case NAME` shows one case, field by field. Without paths the cases
of this repository are taken.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from tests.builders import default_profile
from tests.conformance.cases import DATA, Case, load
from tests.conformance.compare import Difference, compare, expected_fields, found_fields

COLUMNS = (
    "result", "preenqueue", "prefilter", "filter", "feasible", "raw", "scores", "score_skipped", "weights",
    "total", "best", "choice", "score_error", "nomination", "victims", "candidates", "non_candidates", "message",
    "event", "condition_reason", "unschedulable_plugins",
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path, help="case files, .jsonl.gz")
    parser.add_argument("--case", help="show one case, field by field")
    options = parser.parse_args(arguments)
    cases = list(load(options.paths or sorted(DATA.glob("*.jsonl.gz"))))
    return _show(cases, options.case) if options.case else _report(cases)


def _show(cases: Sequence[Case], name: str) -> int:
    found = [case for case in cases if case.name == name]
    for case in found:
        ours = found_fields(case, default_profile()) if not case.needs() else {}
        for need in case.needs():
            print(f"needs more: {need}")
        for field, expected in expected_fields(case).items():
            equal = "=" if ours.get(field, "nothing") == expected else "≠"
            print(f"{equal} {field}\n    expected {expected}\n    found    {ours.get(field, 'nothing')}")
    if not found:
        print(f"no case is named {name!r}", file=sys.stderr)
    return 0 if found else 2


def _report(cases: Sequence[Case]) -> int:
    profile = default_profile()
    compared: dict[str, Counter[str]] = defaultdict(Counter)
    differing: dict[str, Counter[str]] = defaultdict(Counter)
    differences: list[Difference] = []
    waiting: list[tuple[str, tuple[str, ...]]] = []
    for case in cases:
        needs = case.needs()
        if needs:
            compared[case.family]["needs more"] += 1
            waiting.append((case.name, needs))
            continue
        expected, found = compare(case, profile)
        compared[case.family].update(["cases", *expected])
        differing[case.family].update([*(["cases"] if found else []), *(one.field for one in found)])
        differences += found
    _print_table(compared, differing)
    for one in differences:
        print(f"\n{one.case}: {one.field}\n    expected {one.expected}\n    found    {one.found}")
    print(f"\n{len(waiting)} cases need more than is built")
    for name, needs in waiting:
        print(f"    {name}: {'; '.join(needs)}")
    return 1 if differences else 0


def _print_table(compared: dict[str, Counter[str]], differing: dict[str, Counter[str]]) -> None:
    for family, counts in compared.items():
        print(f"{family}: {_share(counts, differing[family], 'cases')} cases equal, {counts['needs more']} need more")
        print(
            "    "
            + "  ".join(f"{field} {_share(counts, differing[family], field)}" for field in COLUMNS if counts[field])
        )
    total: Counter[str] = sum(compared.values(), Counter())
    wrong: Counter[str] = sum(differing.values(), Counter())
    print(f"all: {_share(total, wrong, 'cases')} cases equal, {total['needs more']} need more")


def _share(counts: Counter[str], wrong: Counter[str], field: str) -> str:
    return f"{counts[field] - wrong[field]}/{counts[field]}"


if __name__ == "__main__":
    sys.exit(main())
