"""Poster: makes one HTTP request of a CloudEvent, and says what came of it."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import aiohttp

from scheduler import __version__
from scheduler.client_sockets import ClientSockets
from scheduler.framework.instructions import Receiver
from scheduler.kube.backoff import retry_after_s
from scheduler.serve.cloud_event import CONTENT_TYPE
from scheduler.tls import ClientTls, TlsFiles, TlsFilesError

_TRY_AGAIN: Final = frozenset({408, 429})
_LONGEST_TOLD_S: Final = 60.0
_MAX_CONTEXTS: Final = 16
_TOKEN: Final = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a request failed; whether another try cannot help, and how long the receiver asks to wait, in seconds."""

    text: str
    is_final: bool = False
    pause_s: float = 0.0


class Poster:
    """One session for all receivers; make, use and close it in one event loop.

    Token and CA files are read for each request, so that they can be rotated. No redirect is followed, which would
    carry the token away; no proxy and no password is taken from the environment.
    """

    def __init__(self, timeout_s: float) -> None:
        self._tls: dict[str | None, ClientTls] = {}
        self._sockets = ClientSockets()
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(socket_factory=self._sockets.make),
            timeout=aiohttp.ClientTimeout(total=timeout_s),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"Content-Type": CONTENT_TYPE, "User-Agent": f"vane/{__version__}"},
            auto_decompress=False,
        )

    async def post(self, receiver: Receiver, body: bytes) -> Failure | None:
        """Post the body; None: it was delivered."""
        try:
            headers = {} if receiver.token_file is None else {"Authorization": f"Bearer {_token(receiver.token_file)}"}
            async with self._session.post(
                receiver.url, data=body, headers=headers, allow_redirects=False, ssl=self._context(receiver.ca_file)
            ) as response:
                return _failure(response)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError, TlsFilesError) as error:
            return Failure(_without_url(error, receiver))

    async def close(self) -> None:
        await self._session.close()
        await self._sockets.close()

    def _context(self, ca_file: str | None) -> ssl.SSLContext:
        """Return the context in force for a CA file, None for the system's authorities."""
        tls = self._tls.pop(ca_file, None) or ClientTls(TlsFiles(ca_file))
        self._tls[ca_file] = tls
        if len(self._tls) > _MAX_CONTEXTS:
            del self._tls[next(iter(self._tls))]
        return tls.context()


def _failure(response: aiohttp.ClientResponse) -> Failure | None:
    status = response.status
    if 200 <= status < 300:
        return None
    if status < 500 and status not in _TRY_AGAIN:
        return Failure(f"status {status}", is_final=True)
    return Failure(f"status {status}", pause_s=min(retry_after_s(response.headers.get("Retry-After")), _LONGEST_TOLD_S))


def _token(path: str) -> str:
    token = Path(path).read_text(encoding="ascii").strip()
    if not _TOKEN.fullmatch(token):
        raise ValueError(f"token file {path} holds no token: it must be one word on one line")
    return token


def _without_url(error: Exception, receiver: Receiver) -> str:
    """Return an error's text; a URL's path and query may be its password."""
    return f"{type(error).__name__}: {error}".replace(receiver.url, "URL")
