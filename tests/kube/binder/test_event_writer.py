from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Callable

from scheduler.kube.binder.event_series import EventSeries
from scheduler.kube.binder.event_writer import N_BESIDE_BINDS, N_WRITERS, EventWriter
from scheduler.kube.binder.http import ApiHttp
from scheduler.kube.binder.messages import EventRequest, PodRef
from scheduler.kube.binder.retry import Chance
from scheduler.kube.endpoint import Endpoint
from tests.kube.binder.running_binder import EVENTS_PATH
from tests.kube.fake_api import FakeApi, hangs, replies

N_EVENTS = 60


def event(number: int) -> EventRequest:
    pod = PodRef(namespace="default", name=f"p{number}", uid=f"u{number}")
    return EventRequest(pod=pod, scheduler_name="vane", type="Normal", reason="R", action="A", note="n")


async def until(done: Callable[[], bool]) -> None:
    async with asyncio.timeout(60.0):
        while not done():
            await asyncio.sleep(0.01)


class Writing:
    """An EventWriter that has been given 60 Events."""

    def __init__(self, server: FakeApi, are_binds_waiting: bool) -> None:
        self.are_binds_waiting = are_binds_waiting
        self.dropped = 0
        self._http = ApiHttp(Endpoint(host=server.host), None, lambda *_: None, lambda _: None, "vane/test")
        series = EventSeries("host", lambda: 1_700_000_000_000_000_000, lambda: str(uuid.uuid4()))
        chance = Chance(asyncio.sleep, random.random)
        self.writer = EventWriter(self._http, series, self._drop, chance, lambda: self.are_binds_waiting)
        for number in range(N_EVENTS):
            self.writer.submit(event(number))

    async def end(self) -> None:
        """Close the connections, those under way too."""
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await asyncio.sleep(0.05)
        await self._http.close()
        await asyncio.sleep(0.05)

    def _drop(self) -> None:
        self.dropped += 1


def test_fewer_write_while_binds_wait(server: FakeApi) -> None:
    server.script("POST", EVENTS_PATH, hangs)

    async def run() -> tuple[int, int]:
        beside = Writing(server, are_binds_waiting=True)
        await until(lambda: len(server.of("POST", EVENTS_PATH)) == N_BESIDE_BINDS)
        await asyncio.sleep(0.2)
        first = len(server.of("POST", EVENTS_PATH))
        alone = Writing(server, are_binds_waiting=False)
        await until(lambda: len(server.of("POST", EVENTS_PATH)) == first + N_WRITERS)
        assert beside.writer.n_pending == alone.writer.n_pending == N_EVENTS
        await alone.end()
        await beside.end()
        return first, len(server.of("POST", EVENTS_PATH))

    assert asyncio.run(run()) == (N_BESIDE_BINDS, N_BESIDE_BINDS + N_WRITERS)


def test_all_are_written_once_binds_wait_no_longer(server: FakeApi) -> None:
    server.script("POST", EVENTS_PATH, replies(201, {}))

    async def run() -> int:
        writing = Writing(server, are_binds_waiting=True)
        await until(lambda: len(server.of("POST", EVENTS_PATH)) >= 8)
        writing.are_binds_waiting = False
        await until(lambda: writing.writer.n_pending == 0)
        await writing.end()
        return writing.dropped

    assert asyncio.run(run()) == 0
    assert len(server.of("POST", EVENTS_PATH)) == N_EVENTS
