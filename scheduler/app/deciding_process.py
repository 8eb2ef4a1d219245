"""The deciding process as the serving one sees it: queries and calls out, answers in."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry

from scheduler.app.wire import AskPage, CallPermit, FromRefresher, Reply, ToRefresher, Wire
from scheduler.errors import VaneError
from scheduler.exposition import RegistryPage, process_registry
from scheduler.loop.messages import PermitCall
from scheduler.loop.pages.query import ListingQuery, PageQuery
from scheduler.serve.answered_page import AnsweredPage, Body, OwnFigures
from scheduler.serve.pages import AnyQuery
from scheduler.signals.asking.query_health import QueryHealth


class AnswerFault(VaneError):
    """The deciding process has run into a fault over an answer; its log says more."""


class DecidingProcess:
    """The PageSource; `pids` are the processes by name whose figures stand on the metrics page."""

    def __init__(
        self,
        wire: Wire[FromRefresher, ToRefresher],
        registry: CollectorRegistry,
        pids: Mapping[str, int],
        query_health: Callable[[], Mapping[str, QueryHealth]],
    ) -> None:
        self._wire = wire
        self._refresher = RegistryPage(registry)
        self._processes = {name: RegistryPage(process_registry(pid)) for name, pid in pids.items()}
        self._own = OwnFigures(self._own_metrics, query_health)
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._number = 0
        self._shared: dict[PageQuery, asyncio.Task[AnsweredPage[Any, Any]]] = {}
        self._shared_until_s: dict[PageQuery, float] = {}
        self._listings: defaultdict[type[PageQuery], asyncio.Lock] = defaultdict(asyncio.Lock)

    async def fill(self, page: AnsweredPage[Any, Body]) -> Body:
        filled = await self._filled(page) if page.shared_s is None else await self._filled_for_all(page)
        return filled.body(self._own)

    async def permit(self, call: PermitCall) -> bool:
        body = await self._exchange(lambda number: CallPermit(number, call))
        return msgspec.json.decode(body, type=bool)

    def replied(self, reply: Reply) -> None:
        """Hand an answer to the page that waits for it; called from the reader thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._settle, reply)

    def _own_metrics(self) -> dict[str, bytes]:
        """Return what the deciding thread need not tell; it must open no file, and /proc says it too."""
        pages = {name: page.render() for name, page in self._processes.items()}
        pages["refresher"] += self._refresher.render()
        return pages

    async def _filled_for_all(self, page: AnsweredPage[Any, Body]) -> AnsweredPage[Any, Body]:
        """Return the page that was asked for first; shielded, as who gives up must not take it from the others."""
        task = self._shared.get(page.query)
        if task is None or (task.done() and time.monotonic() >= self._shared_until_s.get(page.query, 0.0)):
            task = self._shared[page.query] = asyncio.ensure_future(self._filled(page))
        filled = await asyncio.shield(task)
        if not filled.shared_s and self._shared.get(page.query) is task:
            del self._shared[page.query]  # it may be 100 MB
        return filled

    async def _filled(self, page: AnsweredPage[Any, Body]) -> AnsweredPage[Any, Body]:
        if isinstance(page.query, ListingQuery):
            async with self._listings[type(page.query)]:  # one at a time: the deciding thread keeps no more
                await self._list(page)
        else:
            page.add(await self._ask(page.query))
        if page.shared_s is not None:
            self._shared_until_s[page.query] = time.monotonic() + page.shared_s
        return page

    async def _list(self, page: AnsweredPage[Any, Any]) -> None:
        slice_ = await self._ask(page.query)
        while slice_:
            page.add(slice_)
            slice_ = await self._ask(page.query, goes_on=True)

    async def _ask(self, query: AnyQuery, *, goes_on: bool = False) -> bytes:
        return await self._exchange(lambda number: AskPage(number, query, goes_on))

    async def _exchange(self, message: Callable[[int], AskPage | CallPermit]) -> bytes:
        self._loop = asyncio.get_running_loop()
        self._number += 1
        number = self._number
        future: asyncio.Future[bytes] = self._loop.create_future()
        self._waiting[number] = future
        self._wire.send(message(number))
        try:
            return await future
        finally:
            self._waiting.pop(number, None)

    def _settle(self, reply: Reply) -> None:
        future = self._waiting.pop(reply.number, None)
        if future is None or future.done():
            return
        if reply.fault:
            future.set_exception(AnswerFault(reply.fault))
        else:
            future.set_result(reply.body)
