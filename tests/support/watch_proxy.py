"""A proxy before the API server, for faults that the real one can't be made to show: lost events, 410 in-stream."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path

import aiohttp
from aiohttp import web

from scheduler.client_sockets import ClientSockets
from tests.support.controlplane import ControlPlane, as_kubeconfig

_EXPIRED = {
    "type": "ERROR",
    "object": {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": "Expired",
        "message": "too old resource version",
        "code": 410,
    },
}
_HOP_BY_HOP = {"host", "connection", "transfer-encoding", "content-length", "content-encoding"}


class WatchProxy:
    """Forwards everything, until told otherwise; what it drops from watches is gone, as behind a broken middlebox."""

    def __init__(self, control_plane: ControlPlane) -> None:
        self._upstream = control_plane.url
        self._token = control_plane.token("vane")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="watch-proxy", daemon=True)
        self._watches: set[web.StreamResponse] = set()
        self._sockets = ClientSockets()
        self._session: aiohttp.ClientSession | None = None
        self._runner: web.AppRunner | None = None
        self._port = 0
        self._drops = False
        self.lists: list[str] = []

    def start(self) -> None:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result(10)

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def write_kubeconfig(self, path: Path) -> Path:
        path.write_text(as_kubeconfig({"server": f"http://127.0.0.1:{self._port}"}, {"token": self._token}))
        return path

    def drop_watch_events(self) -> None:
        """From now on no watch brings anything."""
        self._drops = True

    def expire_watches(self) -> None:
        """End every watch with 410 in the stream, and forward again what comes after."""

        async def expire() -> None:
            self._drops = False
            for watch in list(self._watches):
                await watch.write(json.dumps(_EXPIRED).encode() + b"\n")
                await watch.write_eof()

        asyncio.run_coroutine_threadsafe(expire(), self._loop).result(10)

    async def _open(self) -> None:
        # The way to the API server is a matter of the test, not under test.
        connector = aiohttp.TCPConnector(ssl=False, limit=0, socket_factory=self._sockets.make)
        self._session = aiohttp.ClientSession(connector=connector, auto_decompress=False)
        app = web.Application(client_max_size=1 << 24)
        app.router.add_route("*", "/{path:.*}", self._forward)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self._port = self._runner.addresses[0][1]

    async def _close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
        # Streams that are still open would be found by the collector in the middle of another test.
        open_streams = asyncio.all_tasks() - {asyncio.current_task()}
        for task in open_streams:
            task.cancel()
        await asyncio.gather(*open_streams, return_exceptions=True)
        if self._session is not None:
            await self._session.close()
        await self._sockets.close()

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        assert self._session is not None
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP_BY_HOP}
        is_watch = request.query.get("watch") in ("1", "true")
        if request.method == "GET" and not is_watch and request.path.endswith(("/pods", "/nodes")):
            self.lists.append(request.path)
        timeout = aiohttp.ClientTimeout(total=None)
        async with self._session.request(
            request.method,
            f"{self._upstream}{request.rel_url}",
            headers=headers,
            data=await request.read(),
            timeout=timeout,
        ) as answer:
            response = web.StreamResponse(status=answer.status)
            for name, value in answer.headers.items():
                if name.lower() not in _HOP_BY_HOP:
                    response.headers[name] = value
            await response.prepare(request)
            if is_watch:
                self._watches.add(response)
            try:
                async for chunk in answer.content.iter_any():
                    if not (is_watch and self._drops):
                        await response.write(chunk)
                await response.write_eof()
            except (ConnectionError, RuntimeError):
                pass  # the stream was ended from the other side
            finally:
                self._watches.discard(response)
            return response
