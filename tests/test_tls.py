"""Whom Vane trusts, wherever it connects to a server: the API server, Prometheus, a webhook, another Vane."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scheduler.framework.instructions import Receiver
from scheduler.kube.config import Connection
from scheduler.kube.credentials import Credentials, Token
from scheduler.kube.endpoint import Endpoint, TlsContext
from scheduler.kube.transport import Transport
from scheduler.serve.poster import Poster
from scheduler.signals.asking.client import ClientSettings, PrometheusClient
from scheduler.signals.asking.credentials import Access
from tests.cli.top_page import PAGE, Top
from tests.kube.binder.running_binder import BIND_PATH, CREATED, EVENTS_PATH, Running
from tests.kube.fake_api import FakeApi, fake_api, replies
from tests.support.pki import CertificateAuthority, server_context

PACKAGE = Path(__file__).parents[1] / "scheduler"

Reach = Callable[[str, Path], object]
"""Has one part of Vane ask the server at a URL, whose authority is in a file."""


@pytest.fixture
def old_server(tmp_path: Path) -> Iterator[FakeApi]:
    """A server whose authority has no key identifiers, as that of an EKS cluster."""
    with serving(tmp_path, CertificateAuthority(key_identifiers=False)) as server:
        yield server


@contextlib.contextmanager
def serving(folder: Path, authority: CertificateAuthority) -> Iterator[FakeApi]:
    with fake_api(server_context(authority, folder)) as server:
        server.script("GET", "/version", replies(200, {}))
        server.script("POST", "/hook", replies(200, {}))
        server.script("GET", "/signals", replies(200, PAGE))
        server.script("POST", BIND_PATH, CREATED)
        server.script("POST", EVENTS_PATH, replies(201, {}))
        vector = {"resultType": "vector", "result": [{"metric": {}, "value": [1.0, "1"]}]}
        server.script("POST", "/api/v1/query", replies(200, {"status": "success", "data": vector}))
        yield server


def connection_to(url: str, ca: Path) -> Connection:
    endpoint = Endpoint(host=url, ca_file=str(ca))
    return Connection(endpoint, Credentials(lambda: Token("Bearer A")), TlsContext(endpoint), "test")


def ask_api_server(url: str, ca: Path) -> None:
    transport = Transport(connection_to(url, ca))
    transport.get("/version")
    transport.close()


def bind(url: str, ca: Path) -> None:
    running = Running(connection_to(url, ca))
    try:
        running.lead_for(30.0)
        assert running.bind().outcome == "bound"
    finally:
        running.binder.stop()


def ask_prometheus(url: str, ca: Path) -> None:
    client = PrometheusClient(ClientSettings(url, Access(ca_file=ca)))
    assert client.query("up").series
    client.close()


def post_event(url: str, ca: Path) -> None:
    async def post() -> None:
        poster = Poster(timeout_s=10.0)
        try:
            assert await poster.post(Receiver(f"{url}/hook", ca_file=str(ca)), b"{}") is None
        finally:
            await poster.close()

    asyncio.run(post())


def show_signals(url: str, ca: Path) -> None:
    top = Top(url)
    assert top("--ca-file", str(ca)) == 0, top.err


@pytest.mark.parametrize("reach", [ask_api_server, bind, ask_prometheus, post_event, show_signals])
def test_an_authority_without_key_identifiers_is_as_good_as_any(
    old_server: FakeApi, tmp_path: Path, reach: Reach
) -> None:
    reach(old_server.host, tmp_path / "ca.crt")


def test_contexts_of_clients_are_made_in_one_place() -> None:
    made = re.compile(r"create_\w*context|SSLContext\(|PROTOCOL_TLS_CLIENT|ca_certs|ssl=True")
    found = {str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py") if made.search(path.read_text())}
    assert found == {"tls.py", "serve/tls.py"}, "the second is the server's"
