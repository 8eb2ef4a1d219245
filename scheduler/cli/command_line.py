"""What commands have in common: parsers, help, the settings as flags, and how wrong usage is reported."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn, TextIO

if TYPE_CHECKING:
    from scheduler.settings.options import Option
    from scheduler.settings.settings import Settings

OK: Final = 0
FAILED: Final = 1

DEFAULT_RULES: Final = "rules"


class UsageError(Exception):
    """A command that cannot go on as it was given; the message is what the user reads."""


class HelpAsked(Exception):
    """Help is wanted; the message is its text."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """All that a command touches besides its arguments.

    `run` stands in for the scheduler; `stdin` returns at most so many bytes.
    """

    environ: Mapping[str, str]
    out: TextIO
    err: TextIO
    run: Callable[[Settings], int] | None = None
    stdin: Callable[[int], bytes] | None = None

    @property
    def width(self) -> int | None:
        """How many characters fit into a line of the output; None where nobody looks at it."""
        columns = self.environ.get("COLUMNS", "")
        if columns.isdecimal() and int(columns):
            return int(columns)
        # A terminal that does not know its width says 0.
        return (os.get_terminal_size(self.out.fileno()).columns or None) if self.out.isatty() else None


class Parser(argparse.ArgumentParser):
    """Raises where argparse would end the process."""

    def __init__(self, prog: str, usage: str, description: str) -> None:
        super().__init__(
            prog=prog,
            usage=usage,
            description=description,
            add_help=False,
            allow_abbrev=False,
            formatter_class=lambda prog: argparse.HelpFormatter(prog, max_help_position=30, width=110),
        )

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {message}. See {self.prog} --help")

    def read(self, words: Sequence[str]) -> argparse.Namespace:
        """Return what the words say; HelpAsked where one of them wants help, whatever the others are."""
        if any(word in ("-h", "--help") for word in words):
            raise HelpAsked(self.format_help())
        given, unknown = self.parse_known_args(words)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}{self._meant(unknown)}")
        return given

    def _meant(self, unknown: Sequence[str]) -> str:
        """Return which flag the first unknown one is a slip of, where one is close."""
        from scheduler.strict_yaml.report import did_you_mean

        flags = [name for action in self._actions for name in action.option_strings if name.startswith("--")]
        slips = [word.partition("=")[0] for word in unknown if word.startswith("--")]
        return did_you_mean(slips[0], flags) if slips else ""


def unknown_word(what: str, word: str, known: Sequence[str]) -> str:
    """Return what is said of a word that is none of those known: commands, kinds, shells."""
    from scheduler.strict_yaml.report import did_you_mean

    return f"no such {what}, got {word!r}{did_you_mean(word, known)}. Write {', '.join(known[:-1])} or {known[-1]}"


def keep_numpy_on_one_thread() -> None:
    """Columns are short: threads would cost more than they bring. Read when numpy is imported."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def settings_of(given: Mapping[str, Any], around: Surroundings) -> Settings:
    """Return the settings that parsed flags, environment and file make."""
    from scheduler.settings.load import load

    flags = {name.replace("_", "-"): value for name, value in given.items() if value is not None}
    return load(flags, around.environ)


def add_options(parser: Parser, is_wanted: Callable[[Option], bool]) -> None:
    """Add --config and the settings that are wanted."""
    from scheduler.settings.load import description_of
    from scheduler.settings.options import OPTIONS, OptionType
    from scheduler.settings.sources import CONFIG_FLAG, CONFIG_VARIABLE

    parser.add_argument(
        f"--{CONFIG_FLAG}",
        metavar="FILE",
        help="Configuration file: kind VaneConfiguration of vane.dev/v1, or a KubeSchedulerConfiguration of"
        f" kubescheduler.config.k8s.io/v1 as it is ({CONFIG_VARIABLE})",
    )
    for option in OPTIONS:
        if not is_wanted(option):
            continue
        names = [f"--{option.flag}"]
        if option.flag == "verbosity":
            names = ["-v", "--v", *names]
        text, default = description_of(option)
        notes = [option.variable, *(["repeatable"] if option.repeatable else [])]
        if default is not None and default is not False and default != ():
            notes.append(f"default {'true' if default is True else default}")
        described = f"{text} ({', '.join(notes)})".replace("%", "%%")
        dest = option.flag.replace("-", "_")
        if option.type is OptionType.SWITCH:
            parser.add_argument(*names, dest=dest, nargs="?", const="true", metavar="true|false", help=described)
        else:
            action = "append" if option.repeatable else "store"
            parser.add_argument(*names, dest=dest, action=action, metavar=option.metavar, help=described)
