"""HTTP/1.1 on kept connections, as little of it as the API server needs: one request at a time on each, no redirects.

A general client spends five times the CPU time on a bind, more than all the rest of placing a Pod takes.
"""

from __future__ import annotations

import asyncio
import base64
import socket
import ssl
import struct
from collections.abc import Sequence
from typing import Any, cast
from urllib.parse import unquote, urlsplit

from scheduler.kube.binder.response import BrokenError, Response, ResponseReader
from scheduler.kube.endpoint import CONNECT_TIMEOUT_S, Endpoint, socket_options
from scheduler.tls import ClientTls

MAX_CONNECTIONS = 64
IDLE_S = 30.0
"""A connection that lay idle for longer is not used again: the API server closes it after 90 s, a load balancer maybe
without a word. What was under way to a peer that has vanished fails after 30 s; its next try is on a new connection.
"""


def fenced_socket(address: Sequence[Any]) -> socket.socket:
    """Return a socket that is reset when it is closed, and with the end of the process too.

    The kernel would otherwise go on for minutes to deliver what a process that has ended left in its buffers: after a
    partition of the network, a bind by a replica that no longer leads. Nothing is lost where it does not matter: a
    connection is closed when it is idle.
    """
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    for level, option, value in socket_options():
        made.setsockopt(level, option, value)
    return made


class HttpConnection(asyncio.Protocol):
    """One connection. `is_open` is False once nothing more can be sent."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._reader = ResponseReader()
        self._waiter: asyncio.Future[Response] | None = None
        self.idle_since_s = 0.0
        self.is_open = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        if self._waiter is None or self._waiter.done():
            self.close()  # no request is open
            return
        try:
            response = self._reader.feed(data)
        except BrokenError as error:
            self._fail(error)
            return
        if response is not None:
            self._answered(response)

    def connection_lost(self, error: Exception | None) -> None:
        self.is_open = False
        if self._waiter is not None and not self._waiter.done():
            response = self._reader.ended() if error is None else None
            if response is not None:
                self._answered(response)
            else:
                self._fail(BrokenError(f"the connection was closed{'' if error is None else f': {error}'}"))

    async def exchange(self, request: bytes, timeout_s: float, *, is_bodiless: bool = False) -> Response:
        """Send a request and return its response; `is_bodiless` if that has no body, whatever it says.

        Raises
        ------
        BrokenError, TimeoutError
            None came; the connection is closed.
        """
        loop = asyncio.get_running_loop()
        self._reader = ResponseReader(is_bodiless)
        waiter: asyncio.Future[Response] = loop.create_future()
        self._waiter = waiter
        timer = loop.call_later(timeout_s, self._fail, TimeoutError(f"no response for {timeout_s:g} s"))
        try:
            if self._transport is None or not self.is_open:
                raise BrokenError("the connection was closed")
            self._transport.write(request)
            return await waiter
        except BaseException:
            self.close()
            raise
        finally:
            timer.cancel()
            self._waiter = None

    async def open_tunnel(self, request: bytes, context: ssl.SSLContext | None, server_name: str) -> None:
        """Have a proxy connect us further, and go on in TLS inside that.

        Raises
        ------
        BrokenError, OSError
            The proxy refuses, or there is no TLS beyond it.
        """
        response = await self.exchange(request, CONNECT_TIMEOUT_S, is_bodiless=True)
        if not 200 <= response.code < 300:
            raise BrokenError(f"the proxy refuses the connection: {response.code}")
        if context is not None and self._transport is not None:
            loop = asyncio.get_running_loop()
            self._transport = await loop.start_tls(self._transport, self, context, server_hostname=server_name)

    def close(self) -> None:
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

    def _answered(self, response: Response) -> None:
        if not self._reader.keeps_open:
            self.close()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(response)

    def _fail(self, error: Exception) -> None:
        self.close()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)


class ConnectionPool:
    """Up to 64 connections to one API server; the one used last is used first."""

    def __init__(self, endpoint: Endpoint, tls: ClientTls | None) -> None:
        self._endpoint = endpoint
        self._tls = tls
        self._context = _current(tls)
        is_tls_proxy = endpoint.proxy is not None and endpoint.proxy.startswith("https:")
        self._proxy_tls = ClientTls() if is_tls_proxy else None
        self._slots = asyncio.Semaphore(MAX_CONNECTIONS)
        self._idle: list[HttpConnection] = []
        self._taken: dict[HttpConnection, int] = {}
        self._generation = 0

    async def take(self, limit_s: float) -> HttpConnection:
        """Return an open connection, to be given back.

        Raises
        ------
        OSError
            None can be opened; a TimeoutError if not within `limit_s` seconds.
        BrokenError
            The proxy does not let us through.
        """
        if not self._slots.locked() and (connection := self._take_idle()) is not None:
            await self._slots.acquire()  # which does not wait now; a timer would cost more than all the rest
            self._taken[connection] = self._generation
            return connection
        async with asyncio.timeout(limit_s):
            return await self._take()

    def give_back(self, connection: HttpConnection) -> None:
        self._slots.release()
        if self._taken.pop(connection) != self._generation:
            connection.close()
        elif connection.is_open:
            connection.idle_since_s = asyncio.get_running_loop().time()
            self._idle.append(connection)

    @property
    def are_outdated(self) -> bool:
        """Whether the certificates in force are others than those that connections were opened with."""
        return _current(self._tls) is not self._context

    def retire(self) -> None:
        """Open new connections from now on; requests under way end on their old ones."""
        self._context = _current(self._tls)
        self._generation += 1
        while self._idle:
            self._idle.pop().close()

    async def _take(self) -> HttpConnection:
        await self._slots.acquire()
        try:
            connection = self._take_idle()
            if connection is None and self.are_outdated:
                self.retire()
            generation = self._generation
            connection = connection or await self._open()
        except BaseException:
            self._slots.release()
            raise
        self._taken[connection] = generation
        return connection

    def _take_idle(self) -> HttpConnection | None:
        oldest_s = asyncio.get_running_loop().time() - IDLE_S
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open and connection.idle_since_s >= oldest_s:
                return connection
            connection.close()
        return None

    async def _open(self) -> HttpConnection:
        endpoint, context = self._endpoint, self._context
        host, port = address_of(endpoint.host)
        server_name = endpoint.server_name or host
        if endpoint.proxy is None:
            return await _connect(host, port, context, server_name)
        proxy, proxy_port = address_of(endpoint.proxy)
        connection = await _connect(proxy, proxy_port, _current(self._proxy_tls), proxy)
        try:
            request = _tunnel_request(host, port, endpoint.proxy)
            await connection.open_tunnel(request, context, server_name)
        except BaseException:
            connection.close()
            raise
        return connection


def _current(tls: ClientTls | None) -> ssl.SSLContext | None:
    return None if tls is None else tls.context()


def address_of(url: str) -> tuple[str, int]:
    """Return host and port of a URL."""
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


async def _connect(host: str, port: int, context: ssl.SSLContext | None, server_name: str) -> HttpConnection:
    """Connect to the first address of a host that lets us."""
    loop = asyncio.get_running_loop()
    failure = OSError(f"{host} has no address")
    for address in await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        made = fenced_socket(address)
        made.setblocking(False)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                await loop.sock_connect(made, address[4])
            hostname = None if context is None else server_name
            _, connection = await loop.create_connection(
                HttpConnection, sock=made, ssl=context, server_hostname=hostname
            )
            return connection
        except OSError as error:
            made.close()
            failure = error
        except BaseException:
            made.close()
            raise
    raise failure


def _tunnel_request(host: str, port: int, proxy: str) -> bytes:
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    parts = urlsplit(proxy)
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
    if parts.username is not None:
        secret = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        lines.append(f"Proxy-Authorization: Basic {base64.b64encode(secret).decode()}")
    return "\r\n".join([*lines, "", ""]).encode()
