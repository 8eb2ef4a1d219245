"""The endpoint in an event loop of its own, for tests that ask it as any client does."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from scheduler.evaluator.server import PrometheusServer

T = TypeVar("T")


class Served:
    """A started server, and a way to call it from another thread than its own."""

    def __init__(self, server: PrometheusServer, loop: asyncio.AbstractEventLoop) -> None:
        self._server = server
        self._loop = loop
        self.url = self.run(server.start())

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(call, self._loop).result(10.0)

    def stop(self) -> None:
        self.run(self._server.stop())

    def start(self, port: int) -> None:
        self.url = self.run(self._server.start(port=port))


@contextmanager
def served(server: PrometheusServer) -> Iterator[Served]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        started = Served(server, loop)
        yield started
        started.stop()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
