"""HTTP of the binder process: requests on kept connections, as asyncio coroutines."""

from __future__ import annotations

import asyncio
import math
import socket
import ssl
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import aiohttp

from scheduler.errors import VaneError
from scheduler.kube.backoff import retry_after_s
from scheduler.kube.binder.fence import Fence
from scheduler.kube.endpoint import CONNECT_TIMEOUT_S, Endpoint, TlsContext
from scheduler.kube.status import status_of

REQUEST_TIMEOUT_S = 30.0
MAX_CONNECTIONS = 64

RENEWAL_S = 10.0
"""How long a request that was refused waits for other credentials."""

_OLD_SESSION_S = 60.0
_SHORTEST_S = 0.001

JSON = "application/json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"


class NoAnswerError(VaneError):
    """No whole answer came. `sent` says whether the API server may have carried the request out."""

    def __init__(self, message: str, sent: bool) -> None:
        self.sent = sent
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Answer:
    code: int
    body: bytes
    retry_after_s: float

    @property
    def is_ok(self) -> bool:
        return 200 <= self.code < 300

    @property
    def message(self) -> str:
        """The text of the Status object that API errors are, else the start of the body."""
        return status_of(self.body).message


def fenced_socket(address: tuple[Any, ...]) -> socket.socket:
    """Return a socket that is reset when it is closed, and with the end of the process too.

    The kernel would otherwise go on for minutes to deliver what a process that has ended left in its buffers: after a
    partition of the network, a bind by a replica that no longer leads. Nothing is lost where it does not matter: a
    connection is closed when it is idle.
    """
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return made


class ApiHttp:
    """One session of kept connections, whose Authorization header can be exchanged at any time."""

    def __init__(
        self,
        endpoint: Endpoint,
        header: str | None,
        on_done: Callable[[str, str, float], None],
        on_unauthorized: Callable[[str | None], None],
        user_agent: str,
        renewal_s: float = RENEWAL_S,
    ) -> None:
        self._endpoint = endpoint
        self._header = header
        self._user_agent = user_agent
        self._on_done = on_done
        self._on_unauthorized = on_unauthorized
        self._renewal_s = renewal_s
        self._tls = TlsContext(endpoint)
        self._session = self._new_session()
        self._renewed = asyncio.Event()
        self._has_asked = False
        self._closing: set[asyncio.Task[None]] = set()

    def use(self, header: str | None, cert_file: str | None, key_file: str | None) -> None:
        """Take credentials over; requests that wait after a 401 go on with them."""
        self._header = header
        if self._tls.use(cert_file, key_file) if cert_file is not None else self._tls.reload():
            self._exchange_session()
        self._has_asked = False
        self._renewed.set()
        self._renewed = asyncio.Event()

    def reload_certificate(self) -> None:
        """Look whether the client certificate's files have changed."""
        if self._tls.reload():
            self._exchange_session()

    async def request(
        self, method: str, path: str, body: bytes | None = None, content_type: str = JSON, fence: Fence | None = None
    ) -> Answer:
        """Send one request; a 401 is tried once more with the credentials that the parent then sends.

        With a fence nothing is sent once it is closed, however long connecting or new credentials take; a request
        that is under way then may end.

        Raises
        ------
        NoAnswerError
            No whole answer came.
        """
        header = self._header
        answer = await self._once(method, path, body, content_type, fence)
        if answer.code == 401 and await self._renewal(header):
            answer = await self._once(method, path, body, content_type, fence)
        return answer

    async def close(self) -> None:
        await self._session.close()

    async def _once(self, method: str, path: str, body: bytes | None, content_type: str, fence: Fence | None) -> Answer:
        started = time.monotonic()
        if fence is not None and fence.is_closed:
            raise NoAnswerError("not sent: the lease's deadline has passed", sent=False)
        headers = {"Accept": JSON, "User-Agent": self._user_agent}
        if body is not None:
            headers["Content-Type"] = content_type
        if self._header is not None:
            headers["Authorization"] = self._header
        code = "<error>"
        try:
            async with self._session.request(
                method, self._endpoint.host + path, data=body, headers=headers, proxy=self._endpoint.proxy,
                ssl=self._ssl(), server_hostname=self._endpoint.server_name, allow_redirects=False,
                timeout=_timeout(fence),
            ) as response:  # fmt: skip
                content = await response.read()
                code = str(response.status)
                return Answer(response.status, content, retry_after_s(response.headers.get("Retry-After")))
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise NoAnswerError(f"{type(error).__name__}: {error}", sent=False) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise NoAnswerError(f"{type(error).__name__}: {error}", sent=True) from error
        finally:
            self._on_done(method, code, time.monotonic() - started)

    async def _renewal(self, refused: str | None) -> bool:
        """Ask the parent for other credentials, once for all that were refused, and wait."""
        if refused != self._header:
            return True  # exchanged while the request was under way
        if not self._has_asked:
            self._has_asked = True
            self._on_unauthorized(refused)
        try:
            await asyncio.wait_for(self._renewed.wait(), self._renewal_s)
        except TimeoutError:
            self._has_asked = False  # the next one refused asks again
            return False
        return True

    def _ssl(self) -> ssl.SSLContext | bool:
        return self._tls.context if self._tls.context is not None else True

    def _new_session(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=MAX_CONNECTIONS, keepalive_timeout=60.0, socket_factory=fenced_socket),
            auto_decompress=False,
            skip_auto_headers=("Accept-Encoding", "Content-Type"),
        )

    def _exchange_session(self) -> None:
        """Open connections with the new certificate from now on; requests under way end on their old ones."""
        old, self._session = self._session, self._new_session()

        async def close_later() -> None:
            await asyncio.sleep(_OLD_SESSION_S)
            await old.close()

        task = asyncio.create_task(close_later())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def _timeout(fence: Fence | None) -> aiohttp.ClientTimeout:
    """Return the times of one request; a connection that is not there before the fence closes is not waited for."""
    # Zero would be no limit at all to aiohttp.
    connect_s = max(fence.left_s, _SHORTEST_S) if fence is not None and fence.not_after < math.inf else None
    return aiohttp.ClientTimeout(
        total=REQUEST_TIMEOUT_S,
        connect=connect_s,
        sock_connect=CONNECT_TIMEOUT_S,
        ceil_threshold=math.inf,  # or what is beyond 5 s would be rounded up to a whole second
    )
