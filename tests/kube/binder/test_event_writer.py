from __future__ import annotations

import asyncio
import json
import random
import selectors
import uuid
from collections.abc import Callable

from scheduler.kube.binder.event_series import EventSeries
from scheduler.kube.binder.event_writer import LATE_S, N_BESIDE_BINDS, N_LATE_WRITERS, N_WRITERS, EventWriter
from scheduler.kube.binder.fence import Fence
from scheduler.kube.binder.http import JSON, ApiAnswer, ApiHttp
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
        self.now_s = 0.0
        self.dropped = 0
        self._http = ApiHttp(Endpoint(host=server.host), None, lambda *_: None, lambda _: None, "vane/test")
        series = EventSeries("host", lambda: 1_700_000_000_000_000_000, lambda: str(uuid.uuid4()))
        chance = Chance(asyncio.sleep, random.random)
        self.writer = EventWriter(
            self._http, series, self._drop, chance, lambda: self.now_s, lambda: self.are_binds_waiting
        )
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


class SkippingLoop(asyncio.SelectorEventLoop):
    """Its time is skipped over wherever everything waits."""

    def __init__(self) -> None:
        self.now_s = 0.0
        loop = self

        class Selector(selectors.SelectSelector):
            def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
                loop.now_s += timeout or 0.0
                return super().select(0)

        super().__init__(Selector())

    def time(self) -> float:
        return self.now_s


class SlowApi(ApiHttp):
    """Takes its time for each request; notes when."""

    def __init__(self, write_s: float) -> None:
        super().__init__(Endpoint(host="http://nowhere"), None, lambda *_: None, lambda _: None, "vane/test")
        self._write_s = write_s
        self.written: dict[str, float] = {}

    async def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        content_type: str = JSON,
        fence: Fence | None = None,
    ) -> ApiAnswer:
        await asyncio.sleep(self._write_s)
        self.written[json.loads(body or b"")["regarding"]["name"]] = asyncio.get_running_loop().time()
        return ApiAnswer(201, b"{}", 0.0)


async def binds_without_end(n_binds: int, at_once: int, write_s: float) -> list[float]:
    """Submit an Event at the end of each bind; return how late each was written."""
    clock = asyncio.get_running_loop().time
    api, submitted = SlowApi(write_s), {}
    series = EventSeries("host", lambda: int(clock() * 1e9), lambda: str(uuid.uuid4()))
    writer = EventWriter(api, series, lambda: None, Chance(asyncio.sleep, random.random), clock, lambda: True)
    for first in range(0, n_binds, at_once):
        await asyncio.sleep(write_s)
        for number in range(first, first + at_once):
            submitted[f"p{number}"] = clock()
            writer.submit(event(number))
    while writer.n_pending:
        await asyncio.sleep(write_s)
    return [at_s - submitted[name] for name, at_s in api.written.items()]


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


def test_binds_that_wait_hold_an_event_up_for_two_seconds_only(server: FakeApi) -> None:
    """As many Events are written then as binds at most, though none of those that write gets its answer."""
    server.script("POST", EVENTS_PATH, hangs)

    async def run() -> list[int]:
        writing, seen = Writing(server, are_binds_waiting=True), []
        for now_s, n_expected in ((LATE_S - 0.01, N_BESIDE_BINDS), (LATE_S, N_LATE_WRITERS)):
            writing.now_s = now_s
            await until(lambda wanted=n_expected: len(server.of("POST", EVENTS_PATH)) >= wanted)  # type: ignore[misc]
            await asyncio.sleep(0.5)
            seen.append(len(server.of("POST", EVENTS_PATH)))
        await writing.end()
        return seen

    assert asyncio.run(run()) == [N_BESIDE_BINDS, N_LATE_WRITERS]


def test_no_event_is_written_later_than_5_s_beside_binds_without_end() -> None:
    """40 binds are under way all the time; each takes 100 ms and leads to an Event that takes as long."""
    loop = SkippingLoop()
    try:
        late_s = loop.run_until_complete(binds_without_end(n_binds=8_000, at_once=40, write_s=0.1))
    finally:
        loop.close()

    assert len(late_s) == 8_000
    assert max(late_s) < 5.0


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


class OvertakingApi(ApiHttp):
    """Takes its time to create an Event; what continues it comes too early, and then finds it there."""

    def __init__(self) -> None:
        super().__init__(Endpoint(host="http://nowhere"), None, lambda *_: None, lambda _: None, "vane/test")
        self.is_there = False
        self._n_posted = 0
        self.continued_s: float | None = None

    async def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        content_type: str = JSON,
        fence: Fence | None = None,
    ) -> ApiAnswer:
        now_s = asyncio.get_running_loop().time()
        if method == "PATCH":
            self.continued_s = now_s if self.is_there else None
            return ApiAnswer(200 if self.is_there else 404, b"{}", 0.0)
        self._n_posted += 1
        await asyncio.sleep(0.5 * self._n_posted)
        is_there, self.is_there = self.is_there, True
        return ApiAnswer(409 if is_there else 201, b"{}", 0.0)


def test_a_series_that_overtakes_its_first_event_is_written_at_once_after_it() -> None:
    api = OvertakingApi()

    async def run() -> None:
        clock = asyncio.get_running_loop().time
        series = EventSeries("host", lambda: int(clock() * 1e9), lambda: str(uuid.uuid4()))
        writer = EventWriter(api, series, lambda: None, Chance(asyncio.sleep, random.random), clock)
        for _ in range(2):
            writer.submit(event(1))
        while writer.n_pending:
            await asyncio.sleep(0.1)

    loop = SkippingLoop()
    try:
        loop.run_until_complete(run())
    finally:
        loop.close()
    assert api.continued_s is not None
    assert api.continued_s < 2.0
