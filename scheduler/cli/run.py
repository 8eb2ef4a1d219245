"""`vane run`: the scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from scheduler.cli.command_line import Parser, Surroundings, add_options, keep_numpy_on_one_thread, settings_of

if TYPE_CHECKING:
    from scheduler.settings.settings import Settings


def parser() -> Parser:
    parser = Parser(
        prog="vane run",
        usage="vane run [FLAGS]",
        description="Run the scheduler. Flags override the environment, which overrides the --config file.",
    )
    add_options(parser, lambda _: True)
    return parser


def command(words: Sequence[str], around: Surroundings) -> int:
    settings = settings_of(vars(parser().read(words)), around)
    return (around.run or _run_scheduler)(settings)


def _run_scheduler(settings: Settings) -> int:
    keep_numpy_on_one_thread()
    from scheduler.app.run import run

    return run(settings)
