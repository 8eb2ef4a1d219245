"""`vane demo`: a simulated cluster, with and without rules."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from scheduler.cli.command_line import Parser, Surroundings, UsageError, keep_numpy_on_one_thread
from scheduler.errors import VaneError

_MAX_PORT: Final = 65_535


def parser() -> Parser:
    parser = Parser(
        prog="vane demo",
        usage="vane demo [FLAGS]",
        description="Run Vane on a simulated cluster for a minute, beside the same Vane without rules, and compare. "
        "^C ends the demo at any time with exit code 130; after the tour, with --keep, with exit code 0.",
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="which Pods come and how they behave (1)")
    parser.add_argument("--fast", action="store_true", help="the same tour in less than half the time, for CI")
    parser.add_argument("--keep", action="store_true", help="go on after the summary, and print how to use kubectl")
    parser.add_argument("--port", type=int, default=0, metavar="N", help="port of the API server (0: any free one)")
    parser.add_argument("--picture", metavar="FILE", help="save what the screen shows as SVG; needs rich")
    return parser


def command(words: Sequence[str], around: Surroundings) -> int:
    given = parser().read(words)
    if not 0 <= given.port <= _MAX_PORT:
        raise UsageError(f"vane demo: --port: must be from 0 to {_MAX_PORT}, got {given.port}. Write 0 for any")

    keep_numpy_on_one_thread()
    from scheduler.sim.demo import DemoOptions, run_demo

    picture = None if given.picture is None else Path(given.picture)
    options = DemoOptions(given.seed, given.fast, given.keep, given.port, picture)
    try:
        return run_demo(options, around.environ, around.out)
    except VaneError as error:
        raise UsageError(f"vane demo: {error}") from error
