from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from scheduler.kube.config import Connection
from tests.kube.binder.running_binder import EVENTS_PATH, Running
from tests.kube.fake_api import FakeApi, replies


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
