"""`vane completion`: what a shell completes, made of the same flags that the commands read."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

from scheduler.cli.command_line import OK, Parser, Surroundings, UsageError, unknown_word
from scheduler.cli.schema import KINDS

SHELLS: Final = ("bash", "zsh", "fish")
_FILES: Final = frozenset({"FILE", "PATH", "DIR", "NAME=FILE"})
"""What flags and arguments are called that are files or folders."""
_HELP: Final = {
    "run": "run the scheduler",
    "check": "check rule files",
    "rules": "test rules, or write them as recording rules",
    "demo": "see it at work on a simulated cluster",
    "top": "show what signals measure now",
    "schema": "print the JSON schema of a kind of file",
    "completion": "print the completion script of a shell",
    "version": "print the version",
}


def parser() -> Parser:
    parser = Parser(
        prog="vane completion",
        usage="vane completion bash|zsh|fish",
        description="Print the completion script of a shell. Put it where the shell looks: "
        "bash: vane completion bash > ~/.local/share/bash-completion/completions/vane; "
        'zsh: vane completion zsh > "${fpath[1]}/_vane"; '
        "fish: vane completion fish > ~/.config/fish/completions/vane.fish",
    )
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help=", ".join(SHELLS))
    return parser


def command(words: Sequence[str], around: Surroundings) -> int:
    shells = [word for word in words if not word.startswith("-")]
    if shells and shells[0] not in SHELLS:
        raise UsageError(f"vane completion: {unknown_word('shell', shells[0], SHELLS)}")
    given = parser().read(words)
    import shtab

    print(shtab.complete(tree(), given.shell), file=around.out)
    return OK


def tree() -> argparse.ArgumentParser:
    """Return one parser with all commands below it."""
    top = argparse.ArgumentParser(prog="vane", description="Vane places Pods by live business signals.")
    commands = top.add_subparsers(dest="command")
    for name, text in _HELP.items():
        if name == "rules":
            rules = commands.add_parser(name, help=text).add_subparsers(dest="rules")
            for inner, known in import_module("scheduler.cli.rules").parsers().items():
                _add(rules, inner, known, f"vane rules {inner}")
        elif name == "version":
            _add(commands, name, import_module("scheduler.cli.main").version_parser(), text)
        else:
            _add(commands, name, import_module(f"scheduler.cli.{name}").parser(), text)
    return top


def _add(commands: Any, name: str, known: Parser, text: str) -> None:
    import shtab

    below = commands.add_parser(name, parents=[known], help=text, description=known.description)
    for action in below._actions:  # noqa: SLF001  # argparse has no other list of what has been added
        shown = action.metavar if isinstance(action.metavar, str) else ""
        if shown in _FILES:
            setattr(action, "complete", shtab.FILE)  # noqa: B010  # shtab looks for it; argparse declares none
        elif action.choices is None and shown == "KIND":
            action.choices = KINDS
        elif action.choices is None and "|" in shown and shown.islower():
            action.choices = shown.split("|")
