"""`vane top`: what it shows of the pages as they are served, in a pipe and in a terminal."""

from __future__ import annotations

import io
import json
import subprocess
import sys

import pytest

from scheduler.cli.top import TopOptions, run_top
from scheduler.cli.top_client import SELF_SIGNED_NOTE, ServerAccess
from scheduler.loop.pages.signals import SignalsQuery
from scheduler.rules.shown import Sort
from tests.cli.top_page import PAGE, Top, node
from tests.serve.source import Source

TABLE = """\
SIGNAL     STATE              AGE  EVERY  NODES  REFUSED  WHAT IS WRONG
zone       fading, suspect  12 min      -    2/2        2  only scoring: far
cpu        fresh              3 s   30 s    2/2        1
disk @far  absent               -      -    0/2        -  no answer (timeout): no answer within 5 s; queried less \
often, it failed several times; next try in 9 s

SIGNAL  WORKLOAD         A POD ADDS  HALF OF THEM            SEEN
cpu     shop/Deployment  0.2 cores   0.1 cores to 0.25 cores    9
disk    shop/db          2Ki         0B to 4Ki                  3
zone    shop/web         100ms       100ms to 100ms             3

SIGNAL  NODE    VALUE  PENDING     AGE  STATE                   RULES
zone    b (z1)  250ms       -  12 min  fading, suspect         -
cpu     b         91%  +1.25%     3 s  fresh                   hot: refused, 9 points
cpu     a           -        -       -  missing (NaN)           hot: passes
disk    b           -        -       -  absent (no answer yet)  -
"""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def squeezed(text: str) -> list[list[str]]:
    """Return the words of each line: widths of columns are for people."""
    return [line.split() for line in text.splitlines()]


def test_signals_and_nodes_are_printed_once_in_a_pipe(top: Top, source: Source) -> None:
    assert top() == 0
    assert squeezed(top.out) == squeezed(TABLE)
    assert top.err == f"vane top: {SELF_SIGNED_NOTE}\n"
    assert source.signal_queries == [SignalsQuery(limit=5)]


def test_columns_stand_below_each_other(top: Top) -> None:
    top()
    head, *lines = top.out.split("\n\n")[2].splitlines()
    at = head.index("STATE")
    assert all(line[at - 2 : at] == "  " and line[at] != " " for line in lines)


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        (["cpu"], SignalsQuery("cpu", "", Sort.VALUE, 20)),
        (["cpu", "--sort", "age", "--limit", "3"], SignalsQuery("cpu", "", Sort.AGE, 3)),
        (["b", "--sort=name"], SignalsQuery("", "b", Sort.NAME, 20)),
        (["--limit", "7"], SignalsQuery("", "", Sort.VALUE, 7)),
    ],
)
def test_a_signal_or_a_node_is_asked_for_by_name(
    top: Top, source: Source, words: list[str], asked: SignalsQuery
) -> None:
    assert top(*words) == 0
    assert source.signal_queries[-1] == asked


def test_of_one_signal_the_header_shows_that_alone(top: Top) -> None:
    top("cpu")
    header = top.out.split("\n\n")[0]
    assert "cpu" in header
    assert "disk" not in header


@pytest.mark.parametrize(
    ("sort", "signals"),
    [("value", ["zone", "cpu", "disk"]), ("age", ["disk", "zone", "cpu"]), ("name", ["cpu", "disk", "zone"])],
)
def test_signals_are_sorted_and_their_nodes_with_them(top: Top, sort: str, signals: list[str]) -> None:
    assert top("--sort", sort) == 0
    header, _, nodes = ([line.split()[0] for line in part.splitlines()[1:]] for part in top.out.split("\n\n"))
    assert header == signals
    assert list(dict.fromkeys(nodes)) == signals


@pytest.mark.parametrize(
    ("sort", "lines"),
    [("value", ["hot", "mild", "cool"]), ("age", ["cool", "hot", "mild"]), ("name", ["cool", "hot", "mild"])],
)
def test_of_one_node_what_refuses_it_comes_first(top: Top, source: Source, sort: str, lines: list[str]) -> None:
    said = {"cool": ("", 90.0, 9.0), "hot": ("refused", 20.0, 3.0), "mild": ("", 10.0, 1.0)}
    nodes = [
        node(name, "b", value=0.5, age_s=age_s, rules=[{"rule": name, "verdict": verdict, "score": score}])
        for name, (verdict, score, age_s) in said.items()
    ]
    source.signals_page = json.dumps(PAGE | {"nodes": nodes}).encode()
    assert top("b", "--sort", sort) == 0
    assert [line.split()[0] for line in top.out.split("\n\n")[2].splitlines()[1:]] == lines


def test_json_is_the_page(top: Top) -> None:
    assert top("--output", "json") == 0
    assert json.loads(top.out) == PAGE


def test_without_rules_there_is_nothing_to_show(top: Top, source: Source) -> None:
    source.signals_page = b'{"signals":[],"rules":[],"nodes":[]}'
    assert top() == 0
    assert top.out == "no signals: no rule file defines any\n"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["nobody"], "vane top: no signal and no node 'nobody'. Signals: cpu, disk, zone"),
        (["--sort", "size"], "vane top: --sort: must be value or age or name, got 'size'"),
        (["--output", "yaml"], "vane top: --output: must be table or json, got 'yaml'"),
        (["--limit", "0"], "vane top: --limit: must be from 1 to 5000, got 0"),
        (["--interval", "2"], "vane top: --interval: must be a duration, got '2'"),
        (["--interval", "1ms"], "vane top: --interval: must be at least 0.5s, got '1ms'"),
        (["--ca-file", "/nowhere"], "vane top: --ca-file: certificate authority /nowhere cannot be read: No such file"),
    ],
)
def test_wrong_use_is_told(top: Top, words: list[str], problem: str) -> None:
    assert top(*words) == 1
    assert top.err.startswith(problem)
    assert top.out == ""


def test_the_terminal_is_drawn_over_until_interrupted_and_left_as_it_was(top: Top, source: Source) -> None:
    out, pauses = Terminal(), []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            source.signals_page = b"<html>"
        if len(pauses) == 4:
            raise KeyboardInterrupt

    run_top(TopOptions(ServerAccess(top.url), interval_s=3.0), out, io.StringIO(), pause)

    drawn = out.getvalue()
    assert pauses == [3.0] * 4
    assert drawn.startswith("\x1b[?1049h")
    assert drawn.endswith("\x1b[?1049l")
    screens = drawn.split("\x1b[H")[1:]
    assert len(screens) == 4
    assert all("missing (NaN)" in screen for screen in screens), "what was read last stays"
    assert [SELF_SIGNED_NOTE in screen for screen in screens] == [True, True, False, False]
    assert ["not up to date: " in screen for screen in screens] == [False, False, True, True]


def test_what_does_not_fit_the_terminal_is_counted(top: Top, source: Source) -> None:
    source.signals_page = json.dumps(PAGE | {"nodes": [node("cpu", f"n{i}") for i in range(200)]}).encode()
    out = Terminal()

    def pause(_: float) -> None:
        raise KeyboardInterrupt

    run_top(TopOptions(ServerAccess(top.url)), out, io.StringIO(), pause)
    assert "more lines; name a signal or a node, or write --limit" in out.getvalue()
    assert "n199" not in out.getvalue()


def test_a_reader_that_has_read_enough_is_no_fault(top: Top, source: Source) -> None:
    source.signals_page = json.dumps(PAGE | {"nodes": [node("cpu", f"n{i}") for i in range(5_000)]}).encode()
    argv = [sys.executable, "-m", "scheduler", "top", "--url", top.url]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(1)
        process.stdout.close()
        said = process.stderr.read().decode()
    assert (process.returncode, said) == (0, f"vane top: {SELF_SIGNED_NOTE}\n")
