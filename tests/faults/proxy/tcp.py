"""A proxy of connections: it knows nothing of what they carry, so TLS and gRPC pass through it whole."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import random
import socket
import struct
import threading
import weakref
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")

_CHUNK = 1 << 16
_RESET = struct.pack("ii", 1, 0)
_SO_ATTACH_FILTER = 26
_RETURN_NOTHING = struct.pack("HBBI", 6, 0, 0, 0)
"""A filter of packets for the kernel, in its words: of each keep 0 bytes."""
_DONE_S = 10.0
_LEAVE_S = 0.1


class ProxyLoop:
    """The thread in which all proxies run."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fault-proxies", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there, and return its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_DONE_S)

    def stop(self) -> None:
        async def cancel_all() -> None:
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            # Transports are closed in the turn after.
            await asyncio.sleep(_LEAVE_S)

        self.run(cancel_all())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_DONE_S)
        self._loop.close()


def reset(transport: asyncio.BaseTransport) -> None:
    """End a connection with RST."""
    try:
        raw = transport.get_extra_info("socket")
    except AttributeError:
        return  # one of TLS that has ended knows nothing any more
    if raw is not None:
        with contextlib.suppress(OSError):
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    if isinstance(transport, asyncio.Transport):
        transport.abort()


def _drop_all(transport: asyncio.BaseTransport) -> None:
    """Let the kernel throw away every packet that comes to a socket."""
    raw = transport.get_extra_info("socket")
    if raw is not None:
        program = ctypes.create_string_buffer(_RETURN_NOTHING)
        raw.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HL", 1, ctypes.addressof(program)))


@dataclass
class Line:
    """How connections are; may be changed at any time.

    latency_s: each chunk is so late, both ways. bytes_per_s: how much of a connection passes, each way; 0 for all.
    is_silent: what comes is thrown away, and nobody is told. is_refusing: connections end at once. corrupt_share: of so
    many chunks one byte is changed.
    """

    latency_s: float = 0.0
    bytes_per_s: float = 0.0
    is_silent: bool = False
    is_refusing: bool = False
    corrupt_share: float = 0.0


@dataclass(eq=False)
class _Connection:
    client: asyncio.StreamWriter
    server: asyncio.StreamWriter
    is_dead: bool = False
    """Silent for good, also once the line is well again."""


@dataclass
class TcpProxy:
    """Listens on a loopback port and connects on to one of the upstream ports in turn, to the next if one refuses."""

    loop: ProxyLoop
    upstreams: Sequence[int]
    line: Line = field(default_factory=Line)
    random: random.Random = field(default_factory=lambda: random.Random(1))
    n_connected: int = 0

    def __post_init__(self) -> None:
        self.port = 0
        self._connections: set[_Connection] = set()
        self._server: asyncio.Server | None = None
        self._ends: weakref.WeakSet[asyncio.StreamWriter] = weakref.WeakSet()

    def start(self) -> None:
        async def listen() -> None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
            self.port = self._server.sockets[0].getsockname()[1]

        self.loop.run(listen())

    def stop(self) -> None:
        async def close() -> None:
            if self._server is not None:
                self._server.close()
            self._end_all()

        self.loop.run(close())

    def reset_all(self) -> None:
        """Reset every connection; new ones are as the line is."""

        async def end() -> None:
            self._end_all()

        self.loop.run(end())

    def lose_all(self) -> None:
        """Leave every connection half-open: the client's end stays, the server's has gone, and no byte comes."""

        async def lose() -> None:
            for connection in self._connections:
                connection.is_dead = True
                reset(connection.server.transport)

        self.loop.run(lose())

    def vanish(self) -> None:
        """Leave every connection half-open as if the server's machine had gone: no packet is acknowledged any more."""

        async def drop() -> None:
            for connection in self._connections:
                _drop_all(connection.client.transport)

        self.lose_all()
        self.loop.run(drop())

    def blackhole(self) -> None:
        """Let nothing pass from now on; connections from before or during that stay dead for good."""
        self.line.is_silent = True
        self.lose_all()

    def heal(self) -> None:
        self.line = Line()

    def _end_all(self) -> None:
        for writer in list(self._ends):
            reset(writer.transport)

    async def _serve(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        self.n_connected += 1
        self._ends.add(client)
        if self.line.is_refusing:
            reset(client.transport)
            return
        if self.line.is_silent:
            await self._swallow(reader)
            reset(client.transport)
            return
        try:
            from_server, server = await self._connect()
        except OSError:
            reset(client.transport)
            return
        self._ends.add(server)
        connection = _Connection(client, server)
        self._connections.add(connection)
        try:
            both = self._pump(connection, reader, server), self._pump(connection, from_server, client)
            await asyncio.gather(*both)
        finally:
            self._connections.discard(connection)
            for writer in (client, server):
                writer.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        first = self.n_connected % len(self.upstreams)
        for port in (*self.upstreams[first:], *self.upstreams[:first]):
            with contextlib.suppress(ConnectionError):
                return await asyncio.open_connection("127.0.0.1", port)
        raise ConnectionRefusedError("no upstream")

    async def _swallow(self, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(OSError):
            while await reader.read(_CHUNK):
                pass

    async def _pump(self, connection: _Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while chunk := await reader.read(_CHUNK):
                if not connection.is_dead:
                    await self._delay(len(chunk))
                if not connection.is_dead and not writer.is_closing():
                    writer.write(self._maybe_corrupt(chunk))
                    await writer.drain()
            if not connection.is_dead:
                writer.write_eof()
        except (OSError, RuntimeError):
            if not connection.is_dead:
                reset(writer.transport)

    async def _delay(self, n_bytes: int) -> None:
        seconds = self.line.latency_s
        if self.line.bytes_per_s:
            seconds += n_bytes / self.line.bytes_per_s
        if seconds:
            await asyncio.sleep(seconds)

    def _maybe_corrupt(self, chunk: bytes) -> bytes:
        if not self.line.corrupt_share or self.random.random() >= self.line.corrupt_share:
            return chunk
        at = self.random.randrange(len(chunk))
        return chunk[:at] + bytes([chunk[at] ^ 0x55]) + chunk[at + 1 :]
