"""The listening end of the server of pages: a bounded number of TLS connections, none of which may wait for long.

A TLS connection costs 0.3 MB, so there are `MAX_CONNECTIONS` at most. Where they are all taken, a newcomer takes the
place of another one: of the address that holds most, the one that has been idle for longest. So whoever holds many
loses their own, and a probe is answered however many strangers there are.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

MAX_CONNECTIONS: Final = 64

_BACKLOG: Final = 128
_PAUSE_S: Final = 0.1
_SHUTDOWN_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How many connections at once, and how long a new one has for its handshake, and then for its first request."""

    number: int = MAX_CONNECTIONS
    handshake_s: float = 5.0
    first_request_s: float = 5.0


LIMITS: Final = ConnectionLimits()


class Use(IntEnum):
    """What a connection is doing, in the order in which they give way."""

    IDLE = 0
    ASKING = 1
    """It is answered, and may be anybody's: a probe, or somebody who is being looked at."""
    ADMITTED = 2
    """A page is made for somebody who may see it."""


@dataclass(eq=False, slots=True)
class HeldConnection:
    """One connection; `since_s` is when its use began, `opening` its handshake."""

    address: str
    socket: socket.socket
    since_s: float
    use: Use = Use.IDLE
    has_asked: bool = False
    handler: asyncio.BaseProtocol | None = None
    transport: asyncio.BaseTransport | None = None
    opening: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        return self.transport is None or not self.transport.is_closing()

    def abort(self) -> None:
        if isinstance(self.transport, asyncio.WriteTransport):
            self.transport.abort()
        else:  # its handshake fails by this
            with contextlib.suppress(OSError):
                self.socket.shutdown(socket.SHUT_RDWR)


class Listener:
    """Accepts connections for `make_handler`'s protocols, from `open` to `close`, in one event loop."""

    def __init__(self, make_handler: Callable[[], asyncio.BaseProtocol], limits: ConnectionLimits) -> None:
        self._make_handler = make_handler
        self._limits = limits
        self._sockets: list[socket.socket] = []
        self._accepting: list[asyncio.Task[None]] = []
        self._connections: list[HeldConnection] = []

    def open(self, host: str, port: int, context: ssl.SSLContext) -> None:
        """Listen on an address, or on all that a name has.

        Raises
        ------
        OSError
            One of them cannot be listened on.
        """
        loop = asyncio.get_running_loop()
        for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            if family == socket.AF_INET6 and not socket.has_ipv6:
                continue
            listening = socket.socket(family, kind, protocol)
            self._sockets.append(listening)
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listening.setblocking(False)
            listening.bind(address)
            listening.listen(_BACKLOG)
            self._accepting.append(loop.create_task(self._accept(listening, context)))

    def close(self) -> None:
        """Accept no more; connections that are still being opened end too."""
        for task in self._accepting:
            task.cancel()
        for listening in self._sockets:
            listening.close()
        for connection in self._connections:
            if connection.transport is None:
                connection.abort()

    @contextlib.contextmanager
    def asking(self, handler: asyncio.BaseProtocol) -> Iterator[Callable[[], None]]:
        """Have the handler's connection count as used by a request; call what is yielded when that is let in."""
        connection = next((one for one in self._connections if one.handler is handler), None)
        if connection is None:  # it has just been aborted
            yield lambda: None
            return
        connection.has_asked = True
        self._use(connection, Use.ASKING)
        try:
            yield lambda: self._use(connection, Use.ADMITTED)
        finally:
            self._use(connection, Use.IDLE)

    def _use(self, connection: HeldConnection, use: Use) -> None:
        connection.use, connection.since_s = use, asyncio.get_running_loop().time()

    async def _accept(self, listening: socket.socket, context: ssl.SSLContext) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, address = await loop.sock_accept(listening)
            except ConnectionError:  # it was gone before it was accepted
                continue
            except OSError:  # too many files are open
                await asyncio.sleep(_PAUSE_S)
                continue
            connection = HeldConnection(str(address[0]), accepted, loop.time())
            if self._makes_room(connection):
                self._connections.append(connection)
                connection.opening = loop.create_task(self._open(connection, context))
            else:
                accepted.close()

    async def _open(self, connection: HeldConnection, context: ssl.SSLContext) -> None:
        """Do the handshake, and end a connection that brings no request after it."""
        loop = asyncio.get_running_loop()

        def handler() -> asyncio.BaseProtocol:
            connection.handler = self._make_handler()
            return connection.handler

        try:
            connection.transport, _ = await loop.connect_accepted_socket(
                handler,
                connection.socket,
                ssl=context,
                ssl_handshake_timeout=self._limits.handshake_s,
                ssl_shutdown_timeout=_SHUTDOWN_S,
            )
        except OSError:  # no TLS, none in time, or the other end has gone
            with contextlib.suppress(ValueError):  # a newcomer has taken its place
                self._connections.remove(connection)
            return
        loop.call_later(self._limits.first_request_s, self._end_without_request, connection)

    def _end_without_request(self, connection: HeldConnection) -> None:
        if not connection.has_asked:
            connection.abort()

    def _makes_room(self, newcomer: HeldConnection) -> bool:
        """Return whether a newcomer has a place; where need be another connection ends for it."""
        self._connections = [one for one in self._connections if one.is_open]
        if len(self._connections) < self._limits.number:
            return True
        held = Counter([newcomer.address, *(one.address for one in self._connections)])
        most = max(held.values())
        of_greediest = [one for one in self._connections if held[one.address] == most]
        first = min(of_greediest, key=lambda one: (one.use, one.since_s), default=None)
        if first is None or (first.use is Use.ADMITTED and held[newcomer.address] == most):
            return False
        self._connections.remove(first)
        first.abort()
        return True
