from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from scheduler.serve.http import PageServer
from scheduler.settings.settings import ServingSettings
from tests.cli.command import Cli
from tests.cli.top_page import PAGE, Top
from tests.serve.source import Source
from tests.support.ports import free_port


@pytest.fixture
def vane() -> Cli:
    return Cli()


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def server(source: Source) -> Iterator[PageServer]:
    """What `vane top` reads: the pages as they are served, of a source that the test sets."""
    server = PageServer(ServingSettings(secure_port=free_port()), source)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def top(server: PageServer, source: Source) -> Top:
    source.signals_page = json.dumps(PAGE).encode()
    source.nodes = {"b"}
    return Top(server.url)
