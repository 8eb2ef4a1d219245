"""`python -m tests.conformance PATH…`: compare Vane with what the real kube-scheduler answered.

Prints a table of equal/compared per family and field, every difference, and the cases that were not compared.
Ends with 1 if anything differs. `--case NAME` shows one case, field by field. Without paths the cases of this
repository are taken.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.conformance.cases import DATA, Case, load
from tests.conformance.compare import expected_fields, found_fields
from tests.conformance.profiles import profile_of
from tests.conformance.report import report_on


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path, help="case files, .jsonl.gz")
    parser.add_argument("--case", help="show one case, field by field")
    options = parser.parse_args(arguments)
    cases = list(load(options.paths or sorted(DATA.glob("*.jsonl.gz"))))
    if options.case:
        return show(cases, options.case)
    report = report_on(cases)
    print(*report.lines(), sep="\n")
    return 1 if report.differences else 0


def show(cases: Sequence[Case], name: str) -> int:
    """Print both answers to the cases of a name; return how the process ends."""
    found = [case for case in cases if case.name == name]
    for case in found:
        ours = {} if case.needs() else found_fields(case, profile_of(case.profile_fields))
        for need in case.needs():
            print(f"needs more: {need}")
        for field, expected in expected_fields(case).items():
            equal = "=" if ours.get(field, "nothing") == expected else "≠"
            print(f"{equal} {field}\n    expected {expected}\n    found    {ours.get(field, 'nothing')}")
    if not found:
        print(f"no case is named {name!r}", file=sys.stderr)
    return 0 if found else 2


if __name__ == "__main__":
    sys.exit(main())
