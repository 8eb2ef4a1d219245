"""`python -m tests.faults [ROW…]`: run rows of the fault bench, all that are built if none is named.

All of them take 45 minutes: those of which the length is the point are whole, and the others as short as they can be
and show anything. `--long` makes each last up to three minutes, `--short` makes none whole, `--ci` runs a few, short.
"""

from __future__ import annotations

import argparse
import enum
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.controlplane.build import ensure_programs
from tests.faults.bench.servers import started
from tests.faults.row import Outcome, Row, run
from tests.faults.rows import CI_ROWS, ROWS


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


class Form(enum.Enum):
    """How long rows last."""

    SHORT = enum.auto()
    MIXED = enum.auto()
    LONG = enum.auto()

    def is_short(self, row: Row) -> bool:
        return self is Form.SHORT or (self is Form.MIXED and not row.is_full)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="make faults", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", nargs="*", metavar="ROW", help="as F07 or F09-gone")
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--short", action="store_true", help="each row as short as it can be and show anything")
    forms.add_argument("--long", action="store_true", help="each row up to three minutes")
    forms.add_argument("--ci", action="store_true", help=f"{', '.join(CI_ROWS)} alone, short")
    parser.add_argument("--list", action="store_true", help="say which rows there are")
    parser.add_argument("--logs", type=Path, help="folder that keeps the logs")
    parsed = parser.parse_args(arguments)
    if parsed.list:
        for row in ROWS:
            print(f"{row.name:<22} {row.title}")  # noqa: T201
        return 0
    try:
        rows = [row for row in ROWS if row.name in CI_ROWS] if parsed.ci else chosen(ROWS, parsed.rows)
    except LookupError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 2
    with tempfile.TemporaryDirectory(prefix="vane-faults-") as scratch:
        folder = parsed.logs or Path(scratch)
        form = Form.LONG if parsed.long else Form.SHORT if parsed.short or parsed.ci else Form.MIXED
        return 0 if _run_all(rows, folder, form) else 1


def _run_all(rows: Sequence[Row], folder: Path, form: Form) -> bool:
    begun_s = time.monotonic()
    outcomes: list[Outcome] = []
    with started(ensure_programs(), folder / "servers") as servers:
        for row in rows:
            own = folder / row.name
            own.mkdir(parents=True)
            outcome = run(row, servers, own, form.is_short(row))
            outcomes.append(outcome)
            print(outcome, flush=True)  # noqa: T201
    n_passed = sum(outcome.is_passed for outcome in outcomes)
    took_s = time.monotonic() - begun_s
    print(f"{n_passed} of {len(outcomes)} rows passed in {took_s / 60:.1f} min")  # noqa: T201
    return n_passed == len(outcomes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
