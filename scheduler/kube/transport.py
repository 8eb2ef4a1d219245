"""HTTP to the API server for everything that is not a bind: pooled, always with timeouts, 401 retried once."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn
from urllib.parse import urlencode

import urllib3

from scheduler.errors import VaneError
from scheduler.kube.api_objects import status_of
from scheduler.kube.backoff import retry_after_s
from scheduler.kube.config import Connection
from scheduler.kube.credentials import CredentialsError
from scheduler.kube.endpoint import CONNECT_TIMEOUT_S, socket_options
from scheduler.tls import ClientTls, TlsFilesError

DEFAULT_TIMEOUT_S = 30.0
JSON = "application/json"

RequestObserver = Callable[[str, str, float], None]
"""Called with verb, status code (`<error>` without an answer) and seconds; for rest_client_requests_total."""

_CHUNK_BYTES = 65_536
_MAX_KEPT = 256
"""More than there are watches: those that end together keep their connections for the next ones. Beyond it urllib3
closes each with a warning."""

_Contexts = tuple[ssl.SSLContext | None, ssl.SSLContext | None]


class TransportError(VaneError):
    """No whole answer came: refused, reset, timed out, cut off, or no credentials to ask with."""


class TransportTimeoutError(TransportError):
    """Nothing came for as long as was waited."""


class ApiError(VaneError):
    """The API server answered with an error.

    `status` is the HTTP code, `reason` and `message` those of its Status object, `retry_after_s` 0 where it named none.
    """

    def __init__(self, status: int, reason: str, message: str, retry_after_s: float = 0.0) -> None:
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after_s = retry_after_s
        super().__init__(f"{status} {reason}: {message}" if reason else f"{status}: {message}")


class Stream:
    """A response that is read as it comes. One thread reads; another may end that with `interrupt`."""

    def __init__(self, response: urllib3.BaseHTTPResponse) -> None:
        self._response = response
        self._closed = False

    def chunks(self) -> Iterator[bytes]:
        """Yield bytes as they arrive, until the server ends the response.

        Raises
        ------
        TransportError
            The connection broke, or nothing came for the read timeout.
        """
        try:
            yield from self._response.stream(_CHUNK_BYTES)
        except (urllib3.exceptions.HTTPError, OSError, ValueError, AttributeError) as error:
            # Value- and AttributeError: what urllib3 and ssl raise where another thread has closed the socket.
            if not self._closed:
                raise _no_answer(error) from error

    def interrupt(self) -> None:
        """Wake the reading thread; it sees the end of the stream."""
        self._closed = True
        try:
            self._response.shutdown()
        except (OSError, ValueError, RuntimeError):
            pass  # not connected any more

    def close(self) -> None:
        """Give the connection up; for the reading thread."""
        self._closed = True
        self._response.close()


class Transport:
    """Requests over a pool of kept connections; any thread may use it.

    A component that must not wait behind others (the lease) has a Transport of its own.
    """

    def __init__(self, connection: Connection, observer: RequestObserver | None = None) -> None:
        self._connection = connection
        self._observer = observer
        self._proxy_tls = ClientTls() if (connection.endpoint.proxy or "").startswith("https:") else None
        self._lock = threading.Lock()
        self._contexts = self._current()
        self._pool = _pool(connection, *self._contexts)

    def get(
        self,
        path: str,
        params: Mapping[str, str] | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        accept: str = JSON,
    ) -> bytes:
        """Return the body of a GET; raise ApiError or TransportError."""
        return self.request("GET", path, params=params, timeout_s=timeout_s, accept=accept)

    def request(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        accept: str = JSON,
    ) -> bytes:
        """Send one request and return the body of its answer.

        Nothing is retried but a 401, once and at once, with fresh credentials.

        Raises
        ------
        ApiError
            The answer's status is not 2xx.
        TransportError
            No whole answer came, or nothing at all for `timeout_s`.
        """
        timeout = urllib3.Timeout(connect=min(CONNECT_TIMEOUT_S, timeout_s), read=timeout_s)
        headers = {"Accept": accept} | ({"Content-Type": JSON} if body is not None else {})
        response = self._send(method, _url(self._connection.host, path, params), headers, body, timeout)
        return _read(response)

    def stream(self, path: str, params: Mapping[str, str], read_timeout_s: float) -> Stream:
        """Open a GET that is read as it comes; no bytes for `read_timeout_s` end it with TransportError."""
        timeout = urllib3.Timeout(connect=CONNECT_TIMEOUT_S, read=read_timeout_s)
        return Stream(self._send("GET", _url(self._connection.host, path, params), {"Accept": JSON}, None, timeout))

    def close(self) -> None:
        self._pool.clear()

    def _current(self) -> _Contexts:
        """Return the contexts in force for the API server and a proxy."""
        tls, proxy_tls = self._connection.tls, self._proxy_tls
        return None if tls is None else tls.context(), None if proxy_tls is None else proxy_tls.context()

    def _follow_certificates(self) -> None:
        """Connect anew from now on where other certificates are in force; requests under way end as they are."""
        if (contexts := self._current()) == self._contexts:
            return
        with self._lock:
            if contexts != self._contexts:
                old, self._pool = self._pool, _pool(self._connection, *contexts)
                self._contexts = contexts
                old.clear()

    def _send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, timeout: urllib3.Timeout
    ) -> urllib3.BaseHTTPResponse:
        response, header = self._try(method, url, headers, body, timeout)
        if response.status == 401:
            response.drain_conn()
            self._connection.invalidate(header)
            self._pool.clear()  # an expired client certificate is refused on the open connections, too
            response, _ = self._try(method, url, headers, body, timeout)
        if not 200 <= response.status < 300:
            _raise(response)
        return response

    def _try(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, timeout: urllib3.Timeout
    ) -> tuple[urllib3.BaseHTTPResponse, str | None]:
        header = self._authorize()
        sent = {"User-Agent": self._connection.user_agent, **headers}
        if header is not None:
            sent["Authorization"] = header
        started = time.monotonic()
        code = "<error>"
        try:
            response = self._pool.request(
                method, url, headers=sent, body=body, timeout=timeout, retries=False, preload_content=False,
                redirect=False,
            )  # fmt: skip
            code = str(response.status)
            return response, header
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise _no_answer(error, f"{method} {url.partition('?')[0]}: ") from error
        finally:
            if self._observer is not None:
                self._observer(method, code, time.monotonic() - started)

    def _authorize(self) -> str | None:
        try:
            header = self._connection.authorization_header()
            self._follow_certificates()
            return header
        except (CredentialsError, TlsFilesError) as error:
            raise TransportError(str(error)) from error


def _pool(
    connection: Connection, context: ssl.SSLContext | None, proxy_context: ssl.SSLContext | None
) -> urllib3.PoolManager:
    options: dict[str, Any] = {"maxsize": _MAX_KEPT, "socket_options": socket_options()}
    if context is not None:
        options["ssl_context"] = context
        if connection.endpoint.server_name is not None:
            options["server_hostname"] = connection.endpoint.server_name
        if not connection.endpoint.verify:
            # Said once when the settings were loaded; urllib3 would say it on every request.
            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
            options["cert_reqs"] = "CERT_NONE"
    if connection.endpoint.proxy is not None:
        return urllib3.ProxyManager(connection.endpoint.proxy, proxy_ssl_context=proxy_context, **options)
    return urllib3.PoolManager(**options)


def _url(host: str, path: str, params: Mapping[str, str] | None) -> str:
    return f"{host}{path}?{urlencode(params)}" if params else host + path


def _read(response: urllib3.BaseHTTPResponse) -> bytes:
    try:
        return response.read()
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise _no_answer(error) from error
    finally:
        response.release_conn()


def _raise(response: urllib3.BaseHTTPResponse) -> NoReturn:
    wait_s = retry_after_s(response.headers.get("Retry-After"))
    status = status_of(_read(response))
    raise ApiError(response.status, status.reason, status.message, wait_s)


def _no_answer(error: Exception, where: str = "") -> TransportError:
    kind = TransportTimeoutError if isinstance(error, urllib3.exceptions.TimeoutError) else TransportError
    return kind(f"{where}{type(error).__name__}: {error}")
