from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from scheduler.kube.config import Connection
from scheduler.kube.election.elector import Elector
from scheduler.kube.election.settings import Times
from tests.kube.election.lease_server import Heard, LeaseServer, StartElector, make_elector
from tests.kube.fake_api import FakeApi
from tests.support.clocks import PatientClock


@pytest.fixture
def lease(server: FakeApi) -> LeaseServer:
    return LeaseServer(server)


@pytest.fixture
def clock() -> Iterator[PatientClock]:
    clock = PatientClock()
    clock.start()
    yield clock
    clock.stop()


@pytest.fixture
def elect(connection: Connection, clock: PatientClock) -> Iterator[StartElector]:
    """Start electors, which go by the patient clock; `times` are the other arguments of `Times`."""
    started: list[Elector] = []

    def start(identity: str = "us", times: Mapping[str, Any] | None = None, **options: Any) -> tuple[Elector, Heard]:
        elector, heard = make_elector(connection, identity, times=Times(clock=clock, **(times or {})), **options)
        elector.start()
        started.append(elector)
        return elector, heard

    yield start
    for elector in started:
        elector.release(2.0)
