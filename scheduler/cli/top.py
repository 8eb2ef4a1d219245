"""`vane top`: what signals say now, in a terminal again and again, in a pipe once."""

from __future__ import annotations

import json
import shutil
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TextIO

from scheduler.cli.top_client import Server, SignalsReader, TopError, UnknownNameError
from scheduler.cli.top_table import lines_of

_ENTER: Final = "\x1b[?1049h\x1b[?25l"
_LEAVE: Final = "\x1b[?25h\x1b[?1049l"
_HOME: Final = "\x1b[H"
_REST_OF_LINE: Final = "\x1b[K"
_REST_OF_SCREEN: Final = "\x1b[J"

FEW: Final = 5
"""Nodes of each signal where none is named."""
MANY: Final = 20


@dataclass(frozen=True, slots=True)
class Options:
    """What a user asks for; `name` is a signal or a node, empty for all signals; `limit` None: as many as usual."""

    server: Server
    name: str = ""
    sort: str = "value"
    limit: int | None = None
    is_once: bool = False
    interval_s: float = 2.0
    is_json: bool = False


def run_top(options: Options, out: TextIO, err: TextIO, pause: Callable[[float], None] = time.sleep) -> None:
    """Print the page once, or draw it over the terminal until ^C.

    Raises
    ------
    TopError
        There is no page, at the first look; later ones are told on the screen and looked for again.
    """
    reader = SignalsReader(options.server)
    asked = _asked(reader, options)
    page = reader.read(**asked)
    if options.is_json or options.is_once or not out.isatty():
        if reader.note:
            print(f"vane top: {reader.note}", file=err)
        text = json.dumps(page, indent=1) if options.is_json else "\n".join(_lines(page, asked))
        print(text, file=out, flush=True)
        return
    _redraw(reader, asked, page, options, out, pause)


def _asked(reader: SignalsReader, options: Options) -> dict[str, str]:
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
    options: Options,
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
    return lines_of(page, asked.get("signal", ""))
