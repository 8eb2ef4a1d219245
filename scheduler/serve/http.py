"""The HTTPS server: all pages and the one call behind a gate, in an event loop and a thread of its own."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, Final, TypeVar

from aiohttp import web

from scheduler.errors import ConfigError
from scheduler.exposition import CONTENT_TYPE, render
from scheduler.loop.pages.pages import HealthQuery
from scheduler.serve import calls
from scheduler.serve.access import OPEN_PATHS, Gate, Reviews
from scheduler.serve.answered_page import ANSWER_LIMIT_S, PageRefused, RoutedPage
from scheduler.serve.health import HEALTH_KINDS, HealthPage, told
from scheduler.serve.listener import LIMITS, ConnectionLimits, Listener
from scheduler.serve.metrics import HealthMetrics
from scheduler.serve.pages import PAGES, PageSource
from scheduler.serve.tls import ServingCertificate
from scheduler.settings.settings import ServingSettings

CERTIFICATE_LOOK_S: Final = 10.0
"""How often the certificate's files are looked at; kubelet brings a new Secret within a minute or so."""

_START_LIMIT_S: Final = 30.0
_STOP_LIMIT_S: Final = 5.0

_SLIS_PATH: Final = "/metrics/slis"

_log = logging.getLogger(__name__)
T = TypeVar("T")
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class PageServer:
    """Serves the pages from `start` to `stop`; with `secure_port` 0 it serves nothing, as kube-scheduler."""

    def __init__(
        self,
        settings: ServingSettings,
        source: PageSource,
        reviews: Reviews | None = None,
        certificate_look_s: float = CERTIFICATE_LOOK_S,
        limits: ConnectionLimits = LIMITS,
    ) -> None:
        self._settings = settings
        self._source = source
        self._gate = Gate(reviews, settings, time.monotonic)
        self._certificate_look_s = certificate_look_s
        self._listener = Listener(self._make_handler, limits)
        self._handlers: web.Server | None = None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended: asyncio.Event | None = None

    @property
    def url(self) -> str:
        host = self._settings.bind_address
        return f"https://{f'[{host}]' if ':' in host else host}:{self._settings.secure_port}"

    def start(self) -> None:
        """Return once the port is open.

        Raises
        ------
        ConfigError
            Where the port cannot be had or the certificate not be used.
        """
        if self._thread is not None:
            raise RuntimeError("the server was started already")
        if not self._settings.secure_port:
            _log.info("no pages are served: the secure port is 0")
            return
        settings = self._settings
        certificate = ServingCertificate(settings.tls_cert_file, settings.tls_private_key_file, settings.bind_address)
        opened: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._thread = threading.Thread(target=self._run, args=(certificate, opened), name="serve", daemon=True)
        self._thread.start()
        opened.result(_START_LIMIT_S)
        _log.info("serving health and metrics", extra={"url": self.url})

    def stop(self) -> None:
        """Close the port, give running answers a moment, and end the thread; a second call does nothing."""
        thread, self._thread = self._thread, None
        if thread is None or self._loop is None or self._ended is None:
            return
        with contextlib.suppress(RuntimeError):  # the loop has ended by itself
            self._loop.call_soon_threadsafe(self._ended.set)
        thread.join(_STOP_LIMIT_S)

    def _run(self, certificate: ServingCertificate, opened: concurrent.futures.Future[None]) -> None:
        try:
            asyncio.run(self._serve(certificate, opened))
        except Exception as error:  # noqa: BLE001 - whoever waits in `start` gets it, or else the log
            if opened.done():
                _log.critical("the server of health and metrics ended", exc_info=error)
            else:
                opened.set_exception(error)

    async def _serve(self, certificate: ServingCertificate, opened: concurrent.futures.Future[None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        settings = self._settings
        runner = web.AppRunner(
            _create_app(self._source, _guarded(self._gate, self._listener)),
            handle_signals=False,
            access_log=None,
            shutdown_timeout=1.0,
            keepalive_timeout=75.0,
            lingering_time=1.0,
        )
        await runner.setup()
        self._handlers = runner.server
        try:
            try:
                self._listener.open(settings.bind_address, settings.secure_port, certificate.context)
            except OSError as error:
                found = f"got {error.strerror or error}. Write another address or port, or --secure-port 0 for no pages"
                place = f"--bind-address {settings.bind_address}, --secure-port {settings.secure_port}"
                raise ConfigError(f"{place}: cannot listen there, {found}") from error
            opened.set_result(None)
            await self._until_ended(self._ended, certificate)
        finally:
            self._listener.close()
            self._gate.close()
            await runner.cleanup()

    def _make_handler(self) -> asyncio.BaseProtocol:
        if self._handlers is None:
            raise RuntimeError("the server was not started")
        return self._handlers()

    async def _until_ended(self, ended: asyncio.Event, certificate: ServingCertificate) -> None:
        while True:
            try:
                await asyncio.wait_for(ended.wait(), self._certificate_look_s)
            except TimeoutError:
                certificate.renew()
            else:
                return


def _guarded(gate: Gate, listener: Listener) -> Any:
    """Return the middleware that asks the gate before any page, and has a connection count as used meanwhile."""

    @web.middleware
    async def guard(request: web.Request, handler: _Handler) -> web.StreamResponse:
        with listener.asking(request.protocol) as admit:
            refusal = await gate.refusal(request)
            if refusal is not None:
                return refusal
            if request.path not in OPEN_PATHS:
                admit()
            return await handler(request)

    return guard


def _create_app(source: PageSource, guard: Any) -> web.Application:
    """Return the application with all pages, each behind the guard."""
    app = web.Application(middlewares=[guard, _explain_refusals], client_max_size=1 << 16)
    app.on_response_prepare.append(_add_headers)
    health_metrics = HealthMetrics()

    async def slis(_: web.Request) -> web.Response:
        return web.Response(body=render(health_metrics.registry), headers={"Content-Type": CONTENT_TYPE})

    async def permit(request: web.Request) -> web.Response:
        call = await calls.read_call(request)
        if isinstance(call, web.Response):
            return call
        waiting = await _answer(request, source.permit(call))
        return waiting if isinstance(waiting, web.Response) else calls.answer(call, waiting)

    app.router.add_post(calls.PATH, permit)
    app.router.add_get(_SLIS_PATH, slis)
    for kind in PAGES:
        app.router.add_get(kind.path, _page_handler(source, kind))
    for name in HEALTH_KINDS:
        app.router.add_get(f"/{name}", _health_handler(source, name, health_metrics))
    return app


def _page_handler(source: PageSource, kind: type[RoutedPage[Any, Any]]) -> _Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        page = kind.read(request.query)
        body = await _answer(request, source.fill(page), page.limit_s)
        if isinstance(body, web.Response):
            return body
        headers = {"Content-Type": page.content_type}
        if isinstance(body, bytes):
            return web.Response(body=body, headers=headers)
        return await _send_pieces(request, body, headers)

    return handle


async def _send_pieces(request: web.Request, pieces: Sequence[bytes], headers: Mapping[str, str]) -> web.StreamResponse:
    """Send a page that may be 100 MB, compressed for who takes that."""
    response = web.StreamResponse(headers=headers)
    response.enable_compression()
    await response.prepare(request)
    for piece in pieces if request.method == "GET" else ():
        await response.write(piece)
    await response.write_eof()
    return response


def _health_handler(source: PageSource, kind: str, metrics: HealthMetrics) -> _Handler:
    async def handle(request: web.Request) -> web.Response:
        checks = await _answer(request, source.fill(HealthPage(HealthQuery(kind))))
        if isinstance(checks, web.Response):
            metrics.unanswered(kind)
            return checks
        for check in checks:
            metrics.observe(check.name, kind, check.ok)
        return _text(*told(kind, checks, is_verbose="verbose" in request.query))

    return handle


async def _answer(
    request: web.Request, question: Coroutine[Any, Any, T], limit_s: float = ANSWER_LIMIT_S
) -> T | web.Response:
    """Return the source's answer, or a page that says why there is none."""
    path, task = request.path, asyncio.ensure_future(question)
    # Not wait_for: it waits for the cancelled question to end, which a stuck one doesn't.
    done, _ = await asyncio.wait([task], timeout=limit_s)
    if not done:
        task.cancel()
        _log.warning("a page timed out", extra={"page": path, "limit_s": limit_s})
        return _text(f"{path}: no answer in {limit_s:g} s\n", 503)
    error = asyncio.CancelledError() if task.cancelled() else task.exception()
    if isinstance(error, PageRefused):
        raise error
    if error is not None:
        _log.error("a page failed", extra={"page": path}, exc_info=error)
        return _text(f"{path}: failed with {type(error).__name__}; see the log\n", 500)
    return task.result()


@web.middleware
async def _explain_refusals(request: web.Request, handler: _Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except PageRefused as refusal:
        return _text(f"{request.path}: {refusal}\n", refusal.status)
    except web.HTTPMethodNotAllowed as refusal:
        allowed = ", ".join(sorted(refusal.allowed_methods))
        response = _text(f"{request.path}: {request.method} is not allowed here. Use {allowed}\n", 405)
        response.headers["Allow"] = allowed
        return response
    except web.HTTPNotFound:
        paths = sorted([*(f"/{name}" for name in HEALTH_KINDS), _SLIS_PATH, *(page.path for page in PAGES)])
        return _text(f"no such page. Pages: {' '.join(paths)}\n", 404)


async def _add_headers(_: web.Request, response: web.StreamResponse) -> None:
    response.headers["Cache-Control"] = "no-cache, private"
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Server"] = "vane"


def _text(text: str, status: int = 200) -> web.Response:
    return web.Response(text=text, status=status)
