"""`vane top`: what signals measure now, in a terminal repeatedly, in a pipe once."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import textwrap
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TextIO

from scheduler.cli.command_line import OK, Parser, Surroundings, UsageError
from scheduler.cli.top_client import DEFAULT_URL, ServerAccess, SignalsReader, TopError, UnknownNameError
from scheduler.cli.top_table import lines_of
from scheduler.errors import VaneError
from scheduler.model.quantity import parse_duration

_ENTER: Final = "\x1b[?1049h\x1b[?25l"
_LEAVE: Final = "\x1b[?25h\x1b[?1049l"
_HOME: Final = "\x1b[H"
_REST_OF_LINE: Final = "\x1b[K"
_REST_OF_SCREEN: Final = "\x1b[J"

FEW: Final = 5
"""Nodes of each signal where none is named."""
MANY: Final = 20

_MAX_NODES: Final = 5_000
_INTERRUPTED: Final = 130
_SHORTEST_INTERVAL_S: Final = 0.5


def parser(program: str = "vane", *, has_address: bool = True) -> Parser:
    """Return the flags; those that say where Vane is only where it has to be said."""
    parser = Parser(
        prog=f"{program} top",
        usage=f"{program} top [SIGNAL|NODE] [FLAGS]",
        description="Show what signals measure now, node by node: in a terminal until ^C, in a pipe once.",
    )
    parser.add_argument("name", nargs="?", default="", metavar="SIGNAL|NODE", help="one signal, or one node")
    parser.add_argument(
        "--sort",
        default="value",
        metavar="value|age|name",
        help="what comes first: highest value, oldest or by name (value)",
    )
    parser.add_argument("--limit", type=int, metavar="N", help=f"nodes of each signal ({MANY}; {FEW} without a name)")
    parser.add_argument("--once", action="store_true", help="print once, even in a terminal")
    parser.add_argument("--interval", default="2s", metavar="DURATION", help="how often the screen is refreshed (2s)")
    parser.add_argument("--output", default="table", metavar="table|json", help="json: print /signals once (table)")
    parser.add_argument(
        "--token-file", type=Path, metavar="FILE", help="file with a token; not needed if Vane listens only on loopback"
    )
    if not has_address:
        return parser
    parser.add_argument("--url", default=DEFAULT_URL, metavar="URL", help=f"address of Vane ({DEFAULT_URL})")
    parser.add_argument("--ca-file", type=Path, metavar="FILE", help="file with the certificate authority to trust")
    parser.add_argument("--insecure-skip-tls-verify", action="store_true", help="accept any certificate")
    return parser


def command(words: Sequence[str], around: Surroundings) -> int:
    given = parser().read(words)
    server = ServerAccess(given.url, given.token_file, given.ca_file, given.insecure_skip_tls_verify)
    return show(given, server, around, "vane")


def show(given: argparse.Namespace, server: ServerAccess, around: Surroundings, program: str) -> int:
    """Show what was asked for, of this server."""
    for flag, value, allowed in (
        ("sort", given.sort, ("value", "age", "name")),
        ("output", given.output, ("table", "json")),
    ):
        if value not in allowed:
            raise UsageError(f"{program} top: --{flag}: must be {' or '.join(allowed)}, got {value!r}")
    if given.limit is not None and not 1 <= given.limit <= _MAX_NODES:
        raise UsageError(f"{program} top: --limit: must be from 1 to {_MAX_NODES}, got {given.limit}")
    options = TopOptions(
        server, given.name, given.sort, given.limit, given.once, _interval_s(given.interval), given.output == "json"
    )
    try:
        run_top(options, around.out, around.err)
    except VaneError as error:
        raise UsageError(f"{program} top: {error}") from error
    except BrokenPipeError:
        # head and the like have read enough; what is still buffered must not be written at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), around.out.fileno())
    except KeyboardInterrupt:
        return _INTERRUPTED
    return OK


def _interval_s(text: str) -> float:
    try:
        interval_s = parse_duration(text)
    except ValueError as error:
        raise UsageError(f"vane top: --interval: {error}") from error
    if interval_s < _SHORTEST_INTERVAL_S:
        raise UsageError(f"vane top: --interval: must be at least {_SHORTEST_INTERVAL_S:g}s, got {text!r}")
    return interval_s


@dataclass(frozen=True, slots=True)
class TopOptions:
    """What a user asks for; `name` is a signal or a node, empty for all signals; `limit` None: as many as usual."""

    server: ServerAccess
    name: str = ""
    sort: str = "value"
    limit: int | None = None
    is_once: bool = False
    interval_s: float = 2.0
    is_json: bool = False


def run_top(options: TopOptions, out: TextIO, err: TextIO, pause: Callable[[float], None] = time.sleep) -> None:
    """Print the page once, or draw it over the terminal until ^C.

    Raises
    ------
    TopError
        There is no page, at the first look; later ones are shown on the screen and retried.
    """
    with closing(SignalsReader(options.server)) as reader:
        _show(reader, options, out, err, pause)


def _show(reader: SignalsReader, options: TopOptions, out: TextIO, err: TextIO, pause: Callable[[float], None]) -> None:
    asked = _asked(reader, options)
    page = reader.read(**asked)
    if options.is_json or options.is_once or not out.isatty():
        if reader.note:
            print(f"vane top: {reader.note}", file=err)
        text = json.dumps(page, indent=1) if options.is_json else "\n".join(_lines(page, asked))
        print(text, file=out, flush=True)
        return
    _redraw(reader, asked, page, options, out, pause)


def _asked(reader: SignalsReader, options: TopOptions) -> dict[str, str]:
    """Return the page's parameters; a name is that of a signal where there is such a one."""
    asked = {"sort": options.sort}
    if options.name:
        names = [signal["name"] for signal in reader.read(limit="0")["signals"]]
        if options.name not in names:
            asked["node"] = options.name
            _check_node(reader, options.name, names)
        else:
            asked["signal"] = options.name
    usual = MANY if options.name else FEW
    return asked | {"limit": str(usual if options.limit is None else options.limit)}


def _check_node(reader: SignalsReader, name: str, signals: list[str]) -> None:
    try:
        reader.read(node=name)
    except UnknownNameError as error:
        raise TopError(f"no signal and no node {name!r}. Signals: {', '.join(signals) or 'none'}") from error


def _redraw(
    reader: SignalsReader,
    asked: dict[str, str],
    page: dict[str, Any],
    options: TopOptions,
    out: TextIO,
    pause: Callable[[float], None],
) -> None:
    problem = ""
    print(_ENTER, end="", file=out)
    try:
        while True:
            _draw(_lines(page, asked), problem or reader.note, out)
            pause(options.interval_s)
            try:
                page, problem = reader.read(**asked), ""
            except TopError as error:
                problem = f"not up to date: {error}"
    except KeyboardInterrupt:
        return
    finally:
        print(_LEAVE, end="", file=out, flush=True)


def _draw(lines: list[str], note: str, out: TextIO) -> None:
    width, height = shutil.get_terminal_size()
    shown = ([*textwrap.wrap(note, width), ""] if note else []) + lines
    if len(shown) >= height:
        n_more = len(shown) - height + 2
        shown = [*shown[: height - 2], f"… {n_more} more lines; name a signal or a node, or write --limit"]
    text = "".join(f"{line[:width]}{_REST_OF_LINE}\n" for line in shown)
    print(f"{_HOME}{text}{_REST_OF_SCREEN}", end="", file=out, flush=True)


def _lines(page: dict[str, Any], asked: dict[str, str]) -> list[str]:
    return lines_of(page, asked.get("signal", ""), asked["sort"], asked.get("node", ""))
