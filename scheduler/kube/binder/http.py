"""Requests of the binder process to the API server, as asyncio coroutines."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from scheduler.errors import VaneError
from scheduler.kube.api_objects import status_of
from scheduler.kube.backoff import retry_after_s
from scheduler.kube.binder.connections import ConnectionPool, HttpConnection
from scheduler.kube.binder.fence import Fence
from scheduler.kube.binder.response import BrokenError
from scheduler.kube.endpoint import Endpoint, client_tls

REQUEST_TIMEOUT_S = 30.0
"""For a connection, and then for the answer."""

RENEWAL_S = 10.0
"""How long a request that was refused waits for other credentials."""

# The precondition of a delete or an update, and the check that a patch leaves the UID alone.
_ABOUT_UID = re.compile(r"uid in precondition|metadata\.uid", re.IGNORECASE)
_PLAIN_PATH = re.compile(r"[\w/.~-]+", re.ASCII)

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"


class NoAnswerError(VaneError):
    """No whole answer came. `sent` says whether the API server may have carried the request out."""

    def __init__(self, message: str, sent: bool) -> None:
        self.sent = sent
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class ApiAnswer:
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

    @property
    def refuses_uid(self) -> bool:
        """Whether the UID in the request was refused: an object of the same name was made since."""
        return self.code in (409, 422) and _ABOUT_UID.search(self.message) is not None


def text_of(failure: ApiAnswer | NoAnswerError) -> str:
    return f"{failure.code} {failure.message}" if isinstance(failure, ApiAnswer) else str(failure)


class ApiHttp:
    """Requests to one API server, whose Authorization header can be exchanged at any time."""

    def __init__(
        self,
        endpoint: Endpoint,
        header: str | None,
        on_done: Callable[[str, str, float], None],
        on_unauthorized: Callable[[str | None], None],
        user_agent: str,
        renewal_s: float = RENEWAL_S,
    ) -> None:
        parts = urlsplit(endpoint.host)
        self._prefix = parts.path.rstrip("/")
        self._lines = f"Host: {parts.netloc.rpartition('@')[2]}\r\nAccept: {JSON}\r\nUser-Agent: {user_agent}\r\n"
        self._header = header
        self._on_done = on_done
        self._on_unauthorized = on_unauthorized
        self._renewal_s = renewal_s
        self._tls = client_tls(endpoint)
        self._connections = ConnectionPool(endpoint, self._tls)
        self._renewed = asyncio.Event()
        self._has_asked = False

    def use(self, header: str | None, cert_file: str | None, key_file: str | None) -> None:
        """Take credentials over; requests that wait after a 401 go on with them."""
        self._header = header
        if self._tls is not None and cert_file is not None:
            self._tls.present(cert_file, key_file)
        self.renew_connections()
        self._has_asked = False
        self._renewed.set()
        self._renewed = asyncio.Event()

    def renew_connections(self) -> None:
        """Open new ones from now on if those that are open were made with other certificates than are in force."""
        if self._connections.are_outdated:
            self._connections.retire()

    async def request(
        self, method: str, path: str, body: bytes | None = None, content_type: str = JSON, fence: Fence | None = None
    ) -> ApiAnswer:
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
        self._connections.retire()

    async def _once(
        self, method: str, path: str, body: bytes | None, content_type: str, fence: Fence | None
    ) -> ApiAnswer:
        started = time.monotonic()
        _check(fence)
        code = "<error>"
        try:
            connection = await self._connection(fence)
            try:
                _check(fence)
                request = self._encode(method, path, body, content_type)
                response = await connection.exchange(request, REQUEST_TIMEOUT_S)
            except (BrokenError, OSError) as error:
                raise NoAnswerError(f"{type(error).__name__}: {error}", sent=True) from error
            finally:
                self._connections.give_back(connection)
            code = str(response.code)
            return ApiAnswer(response.code, response.body, retry_after_s(response.retry_after))
        finally:
            self._on_done(method, code, time.monotonic() - started)

    async def _connection(self, fence: Fence | None) -> HttpConnection:
        """Return a connection; one that is not there before the fence closes is not waited for."""
        limit_s = REQUEST_TIMEOUT_S if fence is None else min(REQUEST_TIMEOUT_S, fence.left_s)
        try:
            return await self._connections.take(limit_s)
        except (BrokenError, OSError) as error:
            raise NoAnswerError(f"{type(error).__name__}: {error}", sent=False) from error

    def _encode(self, method: str, path: str, body: bytes | None, content_type: str) -> bytes:
        if _PLAIN_PATH.fullmatch(path) is None:
            path = quote(path)
        head = f"{method} {self._prefix}{path} HTTP/1.1\r\n{self._lines}"
        if self._header is not None:
            head += f"Authorization: {self._header}\r\n"
        if body is None:
            return f"{head}\r\n".encode()
        return f"{head}Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body

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


def _check(fence: Fence | None) -> None:
    if fence is not None and fence.is_closed:
        raise NoAnswerError("not sent: the lease's deadline has passed", sent=False)
