"""A kubelet's side of port-forward: what the API server connects with, over a real websocket, in a double's hands.

Source: kubernetes v1.37 pkg/kubelet/server and cri-streaming/portforward/websocket.go (behaviour): protocol
v4.channel.k8s.io, two channels for a port, the first frame of each with the port's number, errors on the second.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Mapping
from pathlib import Path

from aiohttp import WSMsgType, web

from tests.support.pki import CertificateAuthority, server_context
from tests.support.ports import free_port

_PROTOCOL = "v4.channel.k8s.io"


class PortForwards:
    """The kubelet of a node on loopback. A Pod's port leads to one of this machine, or to an error in words."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.port = free_port()
        self.pods: dict[tuple[str, int], int | str] = {}
        """By `namespace/name` and port."""
        self.asked: list[str] = []
        self._tls: ssl.SSLContext = server_context(CertificateAuthority(), folder)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="kubelet-port-forwards")
        self._open: set[web.WebSocketResponse] = set()
        self._runner: web.AppRunner | None = None

    def node_status(self) -> Mapping[str, object]:
        """Return what a node says of itself, so that the API server finds this kubelet."""
        return {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self.port}},
        }

    def start(self) -> None:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._serve(), self._loop).result(10)

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def cut(self) -> None:
        """End all connections, as the end of a Pod does."""
        asyncio.run_coroutine_threadsafe(self._cut(), self._loop).result(10)

    async def _cut(self) -> None:
        for one in list(self._open):
            await one.close()

    async def _serve(self) -> None:
        app = web.Application()
        app.router.add_get("/portForward/{namespace}/{pod}", self._forward)
        self._runner = web.AppRunner(app, shutdown_timeout=1.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, ssl_context=self._tls).start()

    async def _end(self) -> None:
        await self._cut()
        if self._runner is not None:
            await self._runner.cleanup()

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        pod, port = f"{request.match_info['namespace']}/{request.match_info['pod']}", int(request.query["port"])
        self.asked.append(f"{pod}:{port}")
        socket = web.WebSocketResponse(protocols=[_PROTOCOL])
        await socket.prepare(request)
        assert socket.ws_protocol == _PROTOCOL
        self._open.add(socket)
        number = port.to_bytes(2, "little")
        await socket.send_bytes(b"\0" + number)
        await socket.send_bytes(b"\1" + number)
        target = self.pods.get((pod, port), f"error forwarding port {port} to pod: connection refused")
        if isinstance(target, str):
            await socket.send_bytes(b"\1" + target.encode())
            await socket.close()
        else:
            await _relay(socket, target)
        self._open.discard(socket)
        return socket


async def _relay(socket: web.WebSocketResponse, port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)

    async def back() -> None:
        while data := await reader.read(4096):
            await socket.send_bytes(b"\0" + data)
        await socket.close()

    task = asyncio.ensure_future(back())
    async for message in socket:
        if message.type is WSMsgType.BINARY and message.data[0] == 0:
            writer.write(message.data[1:])
            await writer.drain()
    writer.close()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
