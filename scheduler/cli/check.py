"""`vane check`: rule files, and with --prometheus what each query answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from scheduler.cli.command_line import (
    DEFAULT_RULES,
    Parser,
    Surroundings,
    add_options,
    settings_of,
)

if TYPE_CHECKING:
    from scheduler.framework.profile import Profile


def command(words: Sequence[str], around: Surroundings) -> int:
    parser = Parser(
        prog="vane check",
        usage="vane check [PATH...] [--prometheus URL] [FLAGS]",
        description="Check rule files: show every mistake with its place, then what would be in force. With "
        "--prometheus also run each query once: what it covers, what it costs, what the rules do with it now.",
    )
    parser.add_argument("paths", nargs="*", metavar="PATH", help=f"file, or folder of *.yaml (default {DEFAULT_RULES})")
    if any(word.startswith("-") for word in words):  # the table of settings takes longer to load than files to check
        add_options(parser, lambda option: option.flag.startswith("prometheus") or option.flag == "kubeconfig")
    given = vars(parser.read(words))
    paths = given.pop("paths") or [DEFAULT_RULES]
    if any(value is not None for value in given.values()):
        from scheduler.app.check.command import run_live_check

        return run_live_check(paths, settings_of(given, around), around.out)

    from scheduler.app.check.rule_files import run_check

    return run_check(paths, around.out, _default_profile().fixed_weight)


def _default_profile() -> Profile:
    from scheduler.framework.profile import Profile
    from scheduler.plugins import default_chain

    return Profile.build("vane", default_chain())
