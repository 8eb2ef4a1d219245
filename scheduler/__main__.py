"""The `vane` command, also as `python -m scheduler` where the script is not on PATH."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType


def main() -> int:
    """Run the command line; `vane run` can be ended before it is loaded: PID 1 ignores what it has no handler for."""
    if sys.argv[1:2] == ["run"]:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _end)
    # Only now: it takes its time.
    from scheduler.cli.main import main as run_command_line

    return run_command_line()


def _end(_number: int, _frame: FrameType | None) -> None:
    """End as after a whole run, and at once: nothing has begun, and an exception here might be taken for another."""
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
