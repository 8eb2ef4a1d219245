from __future__ import annotations

from collections.abc import Iterator

import pytest

from scheduler.kube.config import Connection
from scheduler.kube.credentials import Credentials, Token
from scheduler.kube.endpoint import Endpoint, client_tls
from scheduler.kube.transport import Transport
from tests.kube.fake_api import FakeApi, fake_api


@pytest.fixture
def server() -> Iterator[FakeApi]:
    with fake_api() as running:
        yield running


def connection_to(host: str, credentials: Credentials | None = None) -> Connection:
    endpoint = Endpoint(host=host)
    return Connection(endpoint, credentials or Credentials(lambda: Token("Bearer A")), client_tls(endpoint), "test")


@pytest.fixture
def connection(server: FakeApi) -> Connection:
    return connection_to(server.host)


@pytest.fixture
def transport(connection: Connection) -> Iterator[Transport]:
    made = Transport(connection)
    yield made
    made.close()
