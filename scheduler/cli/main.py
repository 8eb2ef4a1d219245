"""The `vane` command: reads the command line, calls what does the work, turns errors into exit codes.

Exit code 0: a normal end, `--help`, `version`. 1: everything else, wrong usage too, as kube-scheduler; `vane check`
tells wrong usage apart by 2.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final, TextIO

from scheduler import __version__
from scheduler.cli.command_line import FAILED, OK, HelpAsked, Parser, Surroundings, UsageError, unknown_word
from scheduler.errors import ConfigError

if TYPE_CHECKING:
    from scheduler.settings.settings import Settings

_Command = Callable[[Sequence[str], Surroundings], int]

COMMANDS: Final = ("run", "check", "rules", "demo", "top", "schema", "completion")
NOT_BUILT: Final = ("explain", "whatif", "simulate", "backtest", "doctor")

_USAGE: Final = """\
Vane places Pods by live business signals, written as PromQL.

usage: vane COMMAND [FLAGS]

  vane run              run the scheduler
  vane demo             see it at work: a simulated cluster, nothing to install
  vane check [PATH...]  check rule files
  vane rules test       run tests of rules
  vane rules export     write signals as recording rules for Prometheus
  vane top [NAME]       show what signals measure now, by node
  vane schema [KIND]    print the JSON schema of a kind of file, for editors
  vane completion SHELL print the completion script of a shell: bash, zsh or fish
  vane version          print the version

`vane COMMAND --help` lists the flags of a command. With `kubectl vane top` you reach a Vane in a cluster.
"""


def main(
    argv: Sequence[str] | None = None,
    environ: Mapping[str, str] | None = None,
    out: TextIO | None = None,
    err: TextIO | None = None,
    run: Callable[[Settings], int] | None = None,
    stdin: Callable[[int], bytes] | None = None,
) -> int:
    """Run one command and return its exit code; what is not given is that of the process."""
    words = list(sys.argv[1:] if argv is None else argv)
    around = Surroundings(
        os.environ if environ is None else environ,
        out or sys.stdout,
        err or sys.stderr,
        run,
        stdin or (lambda n_bytes: sys.stdin.buffer.read(n_bytes)),
    )
    try:
        return _dispatch(words, around)
    except HelpAsked as help_text:
        print(help_text, end="", file=around.out)
        return OK
    except (UsageError, ConfigError) as error:
        print(error, file=around.err)
        return FAILED


def _dispatch(words: Sequence[str], around: Surroundings) -> int:
    if not words:
        raise UsageError(_USAGE.rstrip())
    command, flags = words[0], [_dashed(word) for word in words[1:]]
    if command in ("-h", "--help", "help"):
        print(_USAGE, end="", file=around.out)
        return OK
    if command in ("version", "--version"):
        return _version(flags, around)
    if command in COMMANDS:
        return _command(command)(flags, around)
    if command in NOT_BUILT:
        raise UsageError(f"vane {command}: not built yet")
    raise UsageError(f"vane: {unknown_word('command', command, (*COMMANDS, 'version'))}; see vane --help")


def _command(name: str) -> _Command:
    """Import a command's module now that it is called: `vane check` does not wait for what others need."""
    command: _Command = import_module(f"scheduler.cli.{name}").command
    return command


def version_parser() -> Parser:
    return Parser(prog="vane version", usage="vane version", description="Print the version.")


def _version(words: Sequence[str], around: Surroundings) -> int:
    version_parser().read(words)
    print(f"vane {__version__}", file=around.out)
    return OK


def _dashed(word: str) -> str:
    """Take `_` for `-` in flag names, as Kubernetes programs do."""
    if not word.startswith("--"):
        return word
    name, equals, value = word.partition("=")
    return name.replace("_", "-") + equals + value
