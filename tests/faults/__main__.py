"""`python -m tests.faults [ROW…]`: run rows of the fault bench, all that are built if none is named."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.controlplane.build import ensure_programs
from tests.faults.bench.servers import started
from tests.faults.row import Outcome, Row, run
from tests.faults.rows import ROWS


def chosen(rows: Sequence[Row], names: Sequence[str]) -> list[Row]:
    """Return the rows of these names and those that vary them (F09: F09-gone too), all if none is named.

    Raises
    ------
    LookupError
        If there is none of a name; the message says which there are.
    """
    if not names:
        return list(rows)
    found = []
    for name in names:
        varied = [row for row in rows if row.name == name or row.name.startswith(f"{name}-")]
        if not varied:
            raise LookupError(f"there is no row {name}; built are {', '.join(sorted(row.name for row in rows))}")
        found += [row for row in varied if row not in found]
    return found


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="make faults", description=__doc__)
    parser.add_argument("rows", nargs="*", metavar="ROW", help="as F07 or F09-gone")
    parser.add_argument("--short", action="store_true", help="each row as short as it can be and show anything")
    parser.add_argument("--list", action="store_true", help="say which rows there are")
    parser.add_argument("--logs", type=Path, help="folder that keeps the logs")
    parsed = parser.parse_args(arguments)
    if parsed.list:
        for row in ROWS:
            print(f"{row.name:<14} {row.title}")  # noqa: T201
        return 0
    try:
        rows = chosen(ROWS, parsed.rows)
    except LookupError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 2
    with tempfile.TemporaryDirectory(prefix="vane-faults-") as scratch:
        folder = parsed.logs or Path(scratch)
        return 0 if _run_all(rows, folder, parsed.short) else 1


def _run_all(rows: Sequence[Row], folder: Path, is_short: bool) -> bool:
    begun_s = time.monotonic()
    outcomes: list[Outcome] = []
    with started(ensure_programs(), folder / "servers") as servers:
        for row in rows:
            own = folder / row.name
            own.mkdir(parents=True)
            outcome = run(row, servers, own, is_short)
            outcomes.append(outcome)
            print(outcome, flush=True)  # noqa: T201
    n_passed = sum(outcome.is_passed for outcome in outcomes)
    took_s = time.monotonic() - begun_s
    print(f"{n_passed} of {len(outcomes)} rows passed in {took_s / 60:.1f} min")  # noqa: T201
    return n_passed == len(outcomes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
