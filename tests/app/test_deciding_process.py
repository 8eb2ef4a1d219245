"""Pages between the two processes: what is asked over the wire, what equal pages share, what one at a time means."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry, Gauge

from scheduler.app.deciding_process import DecidingProcess
from scheduler.app.wire import AskPage, CallPermit, FromRefresher, Reply, ToRefresher, Wire
from scheduler.loop.messages import PermitCall
from scheduler.loop.pages.decisions import DecisionsQuery
from scheduler.loop.pages.metrics import MetricsQuery
from scheduler.loop.pages.pages import HealthQuery
from scheduler.loop.pages.resources import ResourcesQuery
from scheduler.loop.pages.signals import SignalsQuery
from scheduler.serve.answered_page import PageRefused
from scheduler.serve.decisions import DecisionsPage
from scheduler.serve.health import Check, HealthPage
from scheduler.serve.metrics import MetricsPage
from scheduler.serve.pages import AnyQuery
from scheduler.serve.resources import ResourcesPage
from scheduler.serve.signals import SignalsPage
from scheduler.signals.asking.query_health import QueryHealth

NOTHING_LISTED = msgspec.msgpack.encode([])


class World:
    """Both ends of a wire; the test answers what has been asked."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self.asked: list[AskPage | CallPermit] = []
        self._deciding: Wire[ToRefresher, FromRefresher] = Wire(
            ours.detach(), FromRefresher, self._receive, lambda: None, "ours"
        )
        self._serving: Wire[FromRefresher, ToRefresher] = Wire(
            theirs.detach(), ToRefresher, self._hand_on, lambda: None, "theirs"
        )
        registry = CollectorRegistry()
        Gauge("own", "Of the refresher.", registry=registry).set(7)
        self.health: dict[str, QueryHealth] = {}
        pids = {"deciding": os.getpid(), "refresher": os.getpid()}
        self.process = DecidingProcess(self._serving, registry, pids, lambda: self.health)
        self._deciding.start()
        self._serving.start()

    def _receive(self, message: FromRefresher) -> None:
        assert isinstance(message, AskPage | CallPermit)
        self.asked.append(message)

    def _hand_on(self, message: ToRefresher) -> None:
        assert isinstance(message, Reply)
        self.process.replied(message)

    async def next(self, n: int) -> AskPage:
        """Return the question that is the n-th of all, once it has come."""
        async with asyncio.timeout(10):
            while len(self.asked) < n:
                await asyncio.sleep(0.001)
        asked = self.asked[n - 1]
        assert isinstance(asked, AskPage)
        return asked

    def reply(self, number: int, body: bytes) -> None:
        self._deciding.send(Reply(number, body))

    def queries(self) -> list[tuple[AnyQuery, bool]]:
        return [(one.query, one.goes_on) for one in self.asked if isinstance(one, AskPage)]

    def close(self) -> None:
        self._deciding.close()


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.close()


async def settled() -> None:
    """Let all tasks come as far as they get without an answer."""
    for _ in range(20):
        await asyncio.sleep(0)


def test_a_query_with_one_answer_is_asked_once(world: World) -> None:
    async def run() -> Any:
        page = asyncio.ensure_future(world.process.fill(DecisionsPage(DecisionsQuery(None, 3))))
        world.reply((await world.next(1)).number, b"{}")
        return await page

    assert asyncio.run(run()) == b"{}\n"
    assert world.queries() == [(DecisionsQuery(None, 3), False)]


def test_health_begins_with_the_answer_itself(world: World) -> None:
    async def run() -> Any:
        page = asyncio.ensure_future(world.process.fill(HealthPage(HealthQuery("readyz"))))
        world.reply((await world.next(1)).number, b'[["deciding",false,"why not"]]')
        return await page

    assert asyncio.run(run()) == [Check("ping", True, ""), Check("deciding", False, "why not")]


def test_a_call_is_answered_with_whether_the_pod_waited(world: World) -> None:
    async def run() -> bool:
        called = asyncio.ensure_future(world.process.permit(PermitCall("shop", "web", True, "")))
        async with asyncio.timeout(10):
            while not world.asked:
                await asyncio.sleep(0.001)
        world.reply(world.asked[0].number, b"true")
        return await called

    assert asyncio.run(run()) is True
    assert world.asked == [CallPermit(1, PermitCall("shop", "web", True, ""))]


def test_the_metrics_page_is_collected_once_for_all_and_kept_for_a_moment(world: World) -> None:
    async def run() -> list[Any]:
        pages = [asyncio.ensure_future(world.process.fill(MetricsPage(MetricsQuery()))) for _ in range(3)]
        for i, slice_ in enumerate((b"# TYPE a gauge\na 1\n", b"# TYPE b gauge\nb 2\n", b"")):
            world.reply((await world.next(i + 1)).number, slice_)
        return [*(await asyncio.gather(*pages)), await world.process.fill(MetricsPage(MetricsQuery()))]

    pages = asyncio.run(run())

    assert world.queries() == [(MetricsQuery(), False), (MetricsQuery(), True), (MetricsQuery(), True)]
    for page in pages:
        assert b"a 1\n" in page
        assert b"b 2\n" in page
        assert b"own 7.0\n" in page
        assert b'process_open_fds{process="deciding"}' in page


def test_who_gives_up_does_not_take_a_shared_page_from_the_others(world: World) -> None:
    async def run() -> Any:
        first, second = (asyncio.ensure_future(world.process.fill(ResourcesPage(ResourcesQuery()))) for _ in range(2))
        number = (await world.next(1)).number
        first.cancel()
        await settled()
        world.reply(number, b"")
        pieces = await second
        third = asyncio.ensure_future(world.process.fill(ResourcesPage(ResourcesQuery())))
        world.reply((await world.next(2)).number, b"")  # asked for anew: a listing is not kept
        return pieces, await third

    assert asyncio.run(run()) == ([], [])
    assert world.queries() == [(ResourcesQuery(), False), (ResourcesQuery(), False)]


def test_a_shared_page_that_failed_is_asked_for_anew(world: World) -> None:
    async def run() -> Any:
        page = asyncio.ensure_future(world.process.fill(ResourcesPage(ResourcesQuery())))
        world.reply((await world.next(1)).number, b"no msgpack")
        with pytest.raises(msgspec.DecodeError):
            await page
        page = asyncio.ensure_future(world.process.fill(ResourcesPage(ResourcesQuery())))
        world.reply((await world.next(2)).number, b"")
        return await page

    assert asyncio.run(run()) == []


def test_of_listings_of_one_kind_the_second_waits_for_the_first(world: World) -> None:
    async def run() -> Any:
        first = asyncio.ensure_future(world.process.fill(SignalsPage(SignalsQuery(limit=1))))
        begun = await world.next(1)
        second = asyncio.ensure_future(world.process.fill(SignalsPage(SignalsQuery(signal="cpu"))))
        health = asyncio.ensure_future(world.process.fill(HealthPage(HealthQuery("livez"))))
        world.reply((await world.next(2)).number, b"[]")
        await health
        await settled()
        assert world.queries() == [(SignalsQuery(limit=1), False), (HealthQuery("livez"), False)]
        world.reply(begun.number, NOTHING_LISTED)
        world.reply((await world.next(3)).number, b"")
        world.reply((await world.next(4)).number, b"")
        with pytest.raises(PageRefused, match="no signal 'cpu'; there are none"):
            await second
        return await first

    assert msgspec.json.decode(asyncio.run(run())) == {"signals": [], "rules": [], "learned": [], "nodes": []}
    assert world.queries()[2:] == [(SignalsQuery(limit=1), True), (SignalsQuery(signal="cpu"), False)]


def test_a_listing_that_is_given_up_lets_the_next_one_begin(world: World) -> None:
    async def run() -> None:
        first = asyncio.ensure_future(world.process.fill(SignalsPage(SignalsQuery())))
        late = await world.next(1)
        first.cancel()
        await settled()
        second = asyncio.ensure_future(world.process.fill(SignalsPage(SignalsQuery())))
        begun = await world.next(2)
        world.reply(late.number, b"nobody waits for this")
        world.reply(begun.number, b"")
        await second

    asyncio.run(run())
    assert world.queries() == [(SignalsQuery(), False), (SignalsQuery(), False)]
