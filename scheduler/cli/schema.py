"""`vane schema`: what editors have to know of the files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from scheduler.cli.command_line import OK, Parser, Surroundings, UsageError, unknown_word

KINDS: Final = ("Rules", "RuleTests", "VaneConfiguration", "KubeSchedulerConfiguration")


def parser() -> Parser:
    parser = Parser(
        prog="vane schema",
        usage="vane schema [KIND] [--write DIR]",
        description="Print the JSON schema (draft-07) of a kind of file, for editors: what completes and checks while "
        "you type. `vane check` checks more. To use it, write above a file: "
        "# yaml-language-server: $schema=PATH",
    )
    parser.add_argument(
        "kind", nargs="?", default=KINDS[0], metavar="KIND", help=f"{', '.join(KINDS)} (default {KINDS[0]})"
    )
    parser.add_argument("--write", metavar="DIR", help="write all schemas into this folder, as KIND.json")
    return parser


def command(words: Sequence[str], around: Surroundings) -> int:
    given = parser().read(words)
    if given.kind not in KINDS:
        raise UsageError(f"vane schema: {unknown_word('kind', given.kind, KINDS)}")
    from scheduler.app.schemas import file_name, schema_text

    if given.write is None:
        print(schema_text(given.kind), end="", file=around.out)
        return OK
    folder = Path(given.write)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for kind in KINDS:
            (folder / file_name(kind)).write_text(schema_text(kind), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"vane schema: --write: {folder} cannot be written: {error.strerror}") from error
    return OK
