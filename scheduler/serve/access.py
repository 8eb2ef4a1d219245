"""Who may see a page: probes are open, all others need a token that the API server accepts.

Only a server that listens on loopback alone shows its pages to this machine unasked. Where it listens on more, loopback
says nothing of who calls: behind a mesh's proxy in the Pod, or `kubectl port-forward`, everybody comes from there.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import hashlib
import ipaddress
import logging
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from aiohttp import web
from cachetools import TTLCache

from scheduler.errors import VaneError
from scheduler.settings.settings import ServingSettings

if TYPE_CHECKING:  # it brings the API server's client along, which this process mostly does without
    from scheduler.kube.reviews import Caller

ANSWER_LIFE_S: Final = 10.0
"""How long an answer of the API server is gone by, kube-scheduler's: so soon is a revoked token refused."""

OPEN_PATHS: Final = ("/healthz", "/livez", "/readyz")
"""kube-scheduler's --authorization-always-allow-paths."""

_MAX_ANSWERS: Final = 1_000
_READING: Final = ("GET", "HEAD")

_log = logging.getLogger(__name__)
T = TypeVar("T")


class Reviews(Protocol):
    """Waits for the API server's answer; a VaneError where there is none."""

    def caller(self, token: str) -> Caller | None: ...

    def allows(self, caller: Caller, verb: str, path: str) -> bool: ...


class Gate:
    """Decides about each request; for one event loop.

    `settings` say who may read without a token: this machine where nobody else can connect, everybody as asked for by
    --unauthenticated-metrics. Whoever calls for a change brings one, wherever from; without `reviews` none is known.
    Web pages in a browser send no bearer token by themselves, so nobody is tricked into a call.
    """

    def __init__(self, reviews: Reviews | None, settings: ServingSettings, clock: Callable[[], float]) -> None:
        self._reviews = reviews
        self._reads_are_open = settings.unauthenticated_metrics
        self._is_on_loopback = settings.is_loopback
        self._answers: TTLCache[Hashable, asyncio.Future[Any]] = TTLCache(_MAX_ANSWERS, ANSWER_LIFE_S, clock)
        # Few at a time: a flood of made-up tokens must not become a flood at the API server.
        self._pool = concurrent.futures.ThreadPoolExecutor(2, "access-review")

    async def refusal(self, request: web.Request) -> web.Response | None:
        """Return why a request may not pass, None where it may."""
        if request.path in OPEN_PATHS or (request.method in _READING and self._may_read(request.remote)):
            return None
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if self._reviews is None or scheme.lower() != "bearer" or not token.strip():
            return _unauthorized()
        try:
            return await self._review(self._reviews, token.strip(), request.method.lower(), request.path)
        except VaneError as error:
            _log.error("a caller is refused, the API server does not review its access", extra={"error": str(error)})
            return _text(500, "the API server did not answer a review of this access; see the log")

    def _may_read(self, remote: str | None) -> bool:
        return self._reads_are_open or (self._is_on_loopback and is_loopback(remote))

    async def _review(self, reviews: Reviews, token: str, verb: str, path: str) -> web.Response | None:
        digest = hashlib.sha256(token.encode(errors="surrogateescape")).digest()
        caller = await self._answer(digest, lambda: reviews.caller(token))
        if caller is None:
            return _unauthorized()
        if not await self._answer((digest, verb, path), lambda: reviews.allows(caller, verb, path)):
            name = caller.username
            return _text(403, f"{name} may not {verb} {path}; a role with nonResourceURLs and this verb allows it")
        return None

    async def _answer(self, key: Hashable, ask: Callable[[], T]) -> T:
        """Return what is known of this question, or ask: once, however many wait for the answer."""
        known: asyncio.Future[T] | None = self._answers.get(key)
        if known is None:
            known = asyncio.get_running_loop().run_in_executor(self._pool, ask)
            self._answers[key] = known
        try:
            return await asyncio.shield(known)
        except VaneError:
            if self._answers.get(key) is known:
                del self._answers[key]
            raise

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


def is_loopback(remote: str | None) -> bool:
    try:
        address = ipaddress.ip_address(remote or "")
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def _unauthorized() -> web.Response:
    response = _text(401, "callers need a bearer token that the API server accepts")
    response.headers["WWW-Authenticate"] = 'Bearer realm="vane"'
    return response


def _text(status: int, text: str) -> web.Response:
    return web.Response(status=status, text=text + "\n")
