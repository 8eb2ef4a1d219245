"""`vane top` against a real HTTPS server: what it shows, whom it trusts, and what it says where it cannot go on."""

from __future__ import annotations

import io
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scheduler.cli.main import main
from scheduler.cli.top import TopOptions, run_top
from scheduler.cli.top_client import SELF_SIGNED_NOTE, ServerAccess, is_loopback
from scheduler.loop.pages.signals import SignalsQuery
from scheduler.rules.shown import Sort
from scheduler.serve.http import PageServer
from scheduler.settings.settings import ServingSettings
from tests.serve.source import Source
from tests.serve.test_access import ScriptedReviews
from tests.support.pki import CertificateAuthority
from tests.support.ports import free_port, own_address


def signal(name: str, **fields: Any) -> dict[str, Any]:
    usual = {
        "name": name,
        "asks": "x",
        "by": "node",
        "unit": "ratio",
        "server": "",
        "state": "fresh",
        "suspect": False,
        "age_s": 3.2,
        "interval_s": 15.0,
        "max_age_s": 60.0,
        "nodes": 2,
        "covered": 2,
        "depends_on_pod": False,
        "problems": [],
        "words": "",
        "pause": "",
        "next_try_s": 9.0,
    }
    return usual | fields


def node(signal: str, name: str, **fields: Any) -> dict[str, Any]:
    usual = {"signal": signal, "node": name, "value": 0.5, "age_s": 3.2, "state": "fresh", "inflight": None}
    return usual | {"rules": []} | fields


PAGE = {
    "signals": [
        signal("cpu"),
        signal(
            "disk",
            unit="bytes",
            server="far",
            state="absent",
            age_s=None,
            covered=0,
            problems=["timeout"],
            words="no answer (timeout): no answer within 5 s",
            pause="breaker",
        ),
        signal("zone", by="topology.kubernetes.io/zone", unit="s", state="fading", age_s=700.0, suspect=True),
    ],
    "rules": [
        {"name": "hot", "signal": "cpu", "mode": "enforce", "weight": 3.0, "refused_nodes": 1, "valve_open": False},
        {"name": "far", "signal": "zone", "mode": "enforce", "weight": None, "refused_nodes": 2, "valve_open": True},
    ],
    "learned": [
        {"signal": "cpu", "workload": "shop/Deployment", "of": "cpu", "seen": 9, "adds": 0.2, "quartiles": [0.1, 0.25]},
        {"signal": "disk", "workload": "shop/db", "of": "memory", "seen": 3, "adds": 2048.0, "quartiles": [0, 4096.0]},
        {"signal": "zone", "workload": "shop/web", "of": "", "seen": 3, "adds": 0.1, "quartiles": [0.1, 0.1]},
    ],
    "nodes": [
        node("cpu", "b", value=0.91, inflight=0.0125, rules=[{"rule": "hot", "verdict": "refused", "score": 9.0}]),
        node("cpu", "a", value=None, state="missing", why="nan", rules=[{"rule": "hot", "verdict": "", "score": None}]),
        node("disk", "b", value=None, state="absent", why="no_answer", age_s=None),
        node("zone", "b", key="z1", value=0.25, age_s=700.0, state="fading"),
    ],
}

TABLE = """\
SIGNAL     STATE              AGE  NODES  REFUSED  WHAT IS WRONG
cpu        fresh              3 s    2/2        1
disk @far  absent               -    0/2        -  no answer (timeout): no answer within 5 s; asked with pauses, \
it failed some times; again in 9 s
zone       fading, suspect  12 min    2/2        2  only scoring: far

SIGNAL  WORKLOAD         A POD ADDS  HALF OF THEM            SEEN
cpu     shop/Deployment  0.2 cores   0.1 cores to 0.25 cores    9
disk    shop/db          2 KiB       0 B to 4 KiB               3
zone    shop/web         0.1 s       0.1 s to 0.1 s             3

SIGNAL  NODE    VALUE  IN FLIGHT     AGE  STATE                   RULES
cpu     b        0.91    +0.0125     3 s  fresh                   hot: refused, 9 points
cpu     a           -          -       -  missing (NaN)           hot: passes
disk    b           -          -       -  absent (no answer yet)  -
zone    b (z1)  0.25 s         -  12 min  fading, suspect         -
"""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Top:
    """The command with what it prints in hand."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.out = self.err = ""

    def __call__(self, *words: str) -> int:
        out, err = io.StringIO(), io.StringIO()
        code = main(["top", *words, "--url", self.url], {}, out, err)
        self.out, self.err = out.getvalue(), err.getvalue()
        return code


@pytest.fixture
def top(server: PageServer, source: Source) -> Top:
    source.signals_page = json.dumps(PAGE).encode()
    source.nodes = {"b"}
    return Top(server.url)


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


def test_json_is_the_page(top: Top) -> None:
    assert top("--output", "json") == 0
    assert json.loads(top.out) == PAGE


def test_without_rules_there_is_nothing_to_show(top: Top, source: Source) -> None:
    source.signals_page = b'{"signals":[],"rules":[],"nodes":[]}'
    assert top() == 0
    assert top.out == "no signals: no rule file names any\n"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["nobody"], "vane top: no signal and no node 'nobody'. Signals: cpu, disk, zone"),
        (["--sort", "size"], "vane top: --sort: must be value or age or name, got 'size'"),
        (["--output", "yaml"], "vane top: --output: must be table or json, got 'yaml'"),
        (["--limit", "0"], "vane top: --limit: must be from 1 to 5000, got 0"),
        (["--interval", "2"], "vane top: --interval: must be a duration, got '2'"),
        (["--interval", "1ms"], "vane top: --interval: must be at least 0.5s, got '1ms'"),
        (["--ca-file", "/nowhere"], "vane top: --ca-file /nowhere: cannot be used"),
    ],
)
def test_wrong_use_is_told(top: Top, words: list[str], problem: str) -> None:
    assert top(*words) == 1
    assert top.err.startswith(problem)
    assert top.out == ""


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("http://127.0.0.1:1", "--url: must be https and a host, got 'http://127.0.0.1:1'"),
        ("https://user@127.0.0.1:1", "--url: must be https and a host"),
        ("https://", "--url: must be https and a host"),
        ("https://127.0.0.1:x", "--url 'https://127.0.0.1:x'"),
        ("https://127.0.0.1:1", "nothing listens at https://127.0.0.1:1. Is `vane run` up there"),
    ],
)
def test_an_address_without_a_vane_is_told(url: str, problem: str) -> None:
    top = Top(url)
    assert top() == 1
    assert problem in top.err


def test_a_page_of_somebody_else_is_told(top: Top, source: Source) -> None:
    source.signals_page = b'{"status":"ok"}'
    assert top() == 1
    assert "is not the page of Vane" in top.err
    source.signals_page = b"<html>"
    assert top() == 1
    assert "is no JSON" in top.err
    top.url += "/elsewhere"
    assert top() == 1
    assert "has no page /signals: HTTP 404" in top.err


def test_a_server_without_tls_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        top = Top(f"https://127.0.0.1:{listening.getsockname()[1]}")
        assert top() == 1
        thread.join()
    assert "does not speak TLS as expected" in top.err


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


@pytest.fixture
def signed(tmp_path: Path, source: Source) -> Iterator[tuple[PageServer, Path]]:
    """A server with a certificate of an authority, and the file of that."""
    authority = CertificateAuthority()
    certificate, key = authority.issue_server(["localhost"], ["127.0.0.1"])
    files = [tmp_path / name for name in ("ca.crt", "tls.crt", "tls.key")]
    for file, content in zip(files, (authority.pem, certificate, key), strict=True):
        file.write_bytes(content)
    settings = ServingSettings(secure_port=free_port(), tls_cert_file=files[1], tls_private_key_file=files[2])
    server = PageServer(settings, source)
    server.start()
    yield server, files[0]
    server.stop()


def test_a_certificate_of_an_unknown_authority_is_not_taken(signed: tuple[PageServer, Path], source: Source) -> None:
    source.signals_page = json.dumps(PAGE).encode()
    server, authority = signed
    top = Top(server.url)
    assert top() == 1
    assert f"the certificate of {server.url} is not trusted" in top.err
    assert "--ca-file" in top.err
    assert source.signal_queries == []

    assert top("--ca-file", str(authority)) == 0
    assert top.err == ""
    assert top("--insecure-skip-tls-verify") == 0
    assert top.err == "vane top: the certificate is not verified\n"


def test_a_token_is_not_sent_to_whoever_has_signed_for_himself(top: Top, source: Source, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret\n")
    assert top("--token-file", str(token)) == 1
    assert "a token is not sent to a server that nobody vouches for" in top.err
    assert source.signal_queries == []
    assert top("--token-file", str(token), "--insecure-skip-tls-verify") == 0


@pytest.mark.parametrize("content", [None, "", "two words", "\x00"])
def test_a_file_without_a_token_is_told(top: Top, tmp_path: Path, content: str | None) -> None:
    token = tmp_path / "token"
    if content is not None:
        token.write_text(content)
    assert top("--token-file", str(token), "--insecure-skip-tls-verify") == 1
    assert f"--token-file {token}" in top.err


def test_a_server_elsewhere_wants_a_token_that_may_read(tmp_path: Path, source: Source) -> None:
    address = own_address()
    server = PageServer(ServingSettings(bind_address=address, secure_port=free_port()), source, ScriptedReviews())
    server.start()
    try:
        top = Top(server.url)
        assert top() == 1
        assert "is not trusted: self-signed" in top.err
        assert top("--insecure-skip-tls-verify") == 1
        assert "wants a token" in top.err
        assert "--token-file" in top.err
        token = tmp_path / "token"
        token.write_text("nobody")
        assert top("--insecure-skip-tls-verify", "--token-file", str(token)) == 1
        assert "refuses this token" in top.err
        token.write_text("scraper")
        assert top("--insecure-skip-tls-verify", "--token-file", str(token)) == 1
        assert "prometheus may not get /signals" in top.err
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("host", "is_ours"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True), ("10.0.0.1", False), ("x.y", False)],
)
def test_loopback_is_this_machine(host: str, is_ours: bool) -> None:
    assert is_loopback(host) is is_ours
