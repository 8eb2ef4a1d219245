from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from scheduler.kube.config import Connection
from scheduler.kube.credentials import Credentials, Token
from scheduler.kube.election.elector import Elector
from scheduler.kube.endpoint import Endpoint, TlsContext
from scheduler.kube.transport import Transport
from tests.kube.fake_api import FakeApi, fake_api, replies
from tests.kube.lease_server import Heard, LeaseServer, StartElector, make_elector
from tests.kube.running_binder import EVENTS_PATH, Running


@pytest.fixture
def server() -> Iterator[FakeApi]:
    with fake_api() as running:
        yield running


def connection_to(host: str, credentials: Credentials | None = None) -> Connection:
    endpoint = Endpoint(host=host)
    return Connection(endpoint, credentials or Credentials(lambda: Token("Bearer A")), TlsContext(endpoint), "test")


@pytest.fixture
def connection(server: FakeApi) -> Connection:
    return connection_to(server.host)


@pytest.fixture
def transport(connection: Connection) -> Iterator[Transport]:
    made = Transport(connection)
    yield made
    made.close()


@pytest.fixture
def start() -> Iterator[Callable[..., Running]]:
    running: list[Running] = []

    def begin(connection: Connection, **options: Any) -> Running:
        running.append(Running(connection, **options))
        return running[-1]

    yield begin
    for one in running:
        one.binder.stop()


@pytest.fixture
def running(start: Callable[..., Running], connection: Connection, server: FakeApi) -> Running:
    server.script("POST", EVENTS_PATH, replies(201, {}))
    return start(connection)


@pytest.fixture
def lease(server: FakeApi) -> LeaseServer:
    return LeaseServer(server)


@pytest.fixture
def elect(connection: Connection) -> Iterator[StartElector]:
    started: list[Elector] = []

    def start(identity: str = "us", **options: Any) -> tuple[Elector, Heard]:
        elector, heard = make_elector(connection, identity, **options)
        elector.start()
        started.append(elector)
        return elector, heard

    yield start
    for elector in started:
        elector.release(2.0)
