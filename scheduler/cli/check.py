"""`vane check`: rule files, and with --prometheus what each query answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from scheduler.app.check.findings import Output
from scheduler.app.check.rule_files import How, run_check
from scheduler.cli.command_line import (
    DEFAULT_RULES,
    Parser,
    Surroundings,
    UsageError,
    add_options,
    settings_of,
)
from scheduler.errors import ConfigError
from scheduler.signals.files import read_rule_files

if TYPE_CHECKING:
    from scheduler.framework.profile import Profile

_MISUSED: Final = 2
_OWN: Final = frozenset({"--output", "--strict"})


def command(words: Sequence[str], around: Surroundings) -> int:
    """Return 0 if nothing is wrong, 1 if something is, 2 if there was nothing to check as the command was given."""
    try:
        return _check(words, around)
    except (UsageError, ConfigError) as error:
        print(error, file=around.err)
        return _MISUSED


def _check(words: Sequence[str], around: Surroundings) -> int:
    parser = Parser(
        prog="vane check",
        usage="vane check [PATH...] [-o text|json|github|sarif] [--strict] [--prometheus URL] [FLAGS]",
        description="Check rule files: show every mistake with its place, then what would be in force. With "
        "--prometheus also run each query once: what it covers, what it costs, what the rules do with it now. "
        "Exit code: 0, 1 if something is wrong, 2 if the command is.",
    )
    parser.add_argument(
        "paths", nargs="*", metavar="PATH", help=f"file, folder of *.yaml, or - for stdin (default {DEFAULT_RULES})"
    )
    outputs = tuple(map(str, Output))
    parser.add_argument("-o", "--output", choices=outputs, default="text", help="default text", metavar="FORM")
    parser.add_argument("--strict", action="store_true", help="warnings fail the check, too")
    if any(word.startswith("--") and word.partition("=")[0] not in _OWN for word in words):
        # The table of settings takes longer to load than files to check.
        add_options(parser, lambda option: option.flag.startswith("prometheus") or option.flag == "kubeconfig")
    given = vars(parser.read(words))
    how = How(Output(given.pop("output")), given.pop("strict"), around.width)
    files = read_rule_files(given.pop("paths") or [DEFAULT_RULES], around.stdin)
    if any(value is not None for value in given.values()):
        from scheduler.app.check.command import run_live_check

        return run_live_check(files, settings_of(given, around), around.out, how)
    return run_check(files, around.out, how, _default_profile().fixed_weight)


def _default_profile() -> Profile:
    from scheduler.framework.profile import Profile
    from scheduler.plugins import default_chain

    return Profile.build("vane", default_chain())
