"""`vane check`: rule files, and with --prometheus what each query answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

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


def parser(program: str = "vane", *, has_settings: bool = True, without_paths: str = DEFAULT_RULES) -> Parser:
    """Return the flags; the settings among them only if wanted, they take longer to load than files to check."""
    parser = Parser(
        prog=f"{program} check",
        usage=f"{program} check [PATH...] [-o text|json|github|sarif] [--strict] [--prometheus URL] [FLAGS]",
        description="Check rule files: show every mistake with its place, then what would be in force. With "
        "--prometheus also run each query once: what it covers, what it costs, what the rules do with it now. "
        "Exit code: 0, 1 if something is wrong, 2 if the command is.",
    )
    parser.add_argument(
        "paths", nargs="*", metavar="PATH", help=f"file, folder of *.yaml, or - for stdin (default {without_paths})"
    )
    outputs = tuple(map(str, Output))
    parser.add_argument("-o", "--output", choices=outputs, default="text", help="default text", metavar="FORM")
    parser.add_argument("--strict", action="store_true", help="warnings fail the check, too")
    if has_settings:
        add_options(parser, lambda option: option.flag.startswith("prometheus") or option.flag == "kubeconfig")
    return parser


def _check(words: Sequence[str], around: Surroundings) -> int:
    has_settings = any(word.startswith("--") and word.partition("=")[0] not in _OWN for word in words)
    given = vars(parser(has_settings=has_settings).read(words))
    files = read_rule_files(given.pop("paths") or [DEFAULT_RULES], around.stdin)
    return judge(files, given, around)


def judge(files: Mapping[str, bytes], given: dict[str, Any], around: Surroundings, context: str | None = None) -> int:
    """Check files, content by name, as the flags say; with settings among them, ask the queries too."""
    how = How(Output(given.pop("output")), given.pop("strict"), around.width)
    if any(value is not None for value in given.values()):
        from scheduler.app.check.command import run_live_check

        return run_live_check(files, settings_of(given, around), around.out, how, context)
    return run_check(files, around.out, how, _default_profile().fixed_weight)


def _default_profile() -> Profile:
    from scheduler.framework.profile import Profile
    from scheduler.plugins import default_chain

    return Profile.build("vane", default_chain())
