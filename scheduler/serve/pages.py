"""The pages: health as Kubernetes asks for it, and metrics; what stands on them comes from a PageSource."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from aiohttp import web

from scheduler.exposition import CONTENT_TYPE, render
from scheduler.loop.pages.signal_listing import SignalsQuery
from scheduler.serve import calls, decisions, signals
from scheduler.serve.access import Gate, guarded
from scheduler.serve.calls import PermitCall
from scheduler.serve.decisions import DecisionsQuery
from scheduler.serve.health_metrics import HealthMetrics

RESOURCES_LIMIT_S: Final = 30.0
"""How long /metrics/resources waits for its source, which goes through all Pods."""

ANSWER_LIMIT_S: Final = 2.0
"""How long a page waits for its source; kubelet gives a probe 1 s unless told otherwise, Prometheus a scrape 10 s."""

SIGNALS_LIMIT_S: Final = 10.0
"""How long /signals waits: of thousands of nodes it is made of many slices, and one page waits for another."""

HEALTH_KINDS: Final = ("healthz", "livez", "readyz")
_METRICS_KINDS: Final = ("metrics", "metrics/resources", "metrics/slis")

_log = logging.getLogger(__name__)
T = TypeVar("T")
Query = TypeVar("Query")
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Check(NamedTuple):
    """One question of a health page and its answer; `text` says more where it is not ok."""

    name: str
    ok: bool
    text: str


class PageSource(Protocol):
    """What pages are made of; called in the server's event loop, so nothing here may block."""

    async def metrics(self) -> bytes:
        """Return the page of all processes, in Prometheus' text format."""
        ...

    async def resources(self) -> Sequence[bytes]:
        """Return the page of what every Pod requests and may use, in pieces."""
        ...

    async def health(self, kind: str) -> Sequence[Check]:
        """Return the checks of one of HEALTH_KINDS."""
        ...

    async def decisions(self, asked: DecisionsQuery) -> bytes:
        """Return what was decided and why, as JSON."""
        ...

    async def signals(self, asked: SignalsQuery) -> bytes | str:
        """Return what signals say now, as JSON, or that what is asked for is not known."""
        ...

    async def permit(self, call: PermitCall) -> bool:
        """Carry a call out, and return whether its Pod was waiting."""
        ...


def create_app(source: PageSource, gate: Gate) -> web.Application:
    """Return the application with all pages, each behind the gate."""
    app = web.Application(middlewares=[guarded(gate), _explain_refusals], client_max_size=1 << 16)
    app.on_response_prepare.append(_add_headers)

    health_metrics = HealthMetrics()

    async def metrics(_: web.Request) -> web.Response:
        answer = await _ask("/metrics", source.metrics())
        return answer if isinstance(answer, web.Response) else _metrics_page(answer)

    async def slis(_: web.Request) -> web.Response:
        return _metrics_page(render(health_metrics.registry))

    async def resources(request: web.Request) -> web.StreamResponse:
        answer = await _ask("/metrics/resources", source.resources(), RESOURCES_LIMIT_S)
        return answer if isinstance(answer, web.Response) else await _send_pieces(request, answer)

    async def permit(request: web.Request) -> web.Response:
        call = await calls.read_call(request)
        if isinstance(call, web.Response):
            return call
        waiting = await _ask(request.path, source.permit(call))
        return waiting if isinstance(waiting, web.Response) else calls.answer(call, waiting)

    app.router.add_post(calls.PATH, permit)
    app.router.add_get(decisions.PATH, _json_handler(decisions.read_query, source.decisions))
    app.router.add_get(
        signals.PATH,
        _json_handler(lambda request: signals.read_query(request.query), source.signals, SIGNALS_LIMIT_S),
    )
    app.router.add_get("/metrics", metrics)
    app.router.add_get("/metrics/slis", slis)
    app.router.add_get("/metrics/resources", resources)
    for kind in HEALTH_KINDS:
        app.router.add_get(f"/{kind}", _health_handler(source, kind, health_metrics))
    return app


def _json_handler(
    read_query: Callable[[web.Request], Query | str],
    ask: Callable[[Query], Coroutine[Any, Any, bytes | str]],
    limit_s: float = ANSWER_LIMIT_S,
) -> _Handler:
    """Return the handler of a JSON page; a text in place of a query or a page says what is wrong with the call."""

    async def handle(request: web.Request) -> web.Response:
        asked = read_query(request)
        if isinstance(asked, str):
            return _text(f"{request.path}: {asked}\n", 400)
        answer = await _ask(request.path, ask(asked), limit_s)
        if isinstance(answer, str):
            return _text(f"{request.path}: {answer}\n", 404)
        if isinstance(answer, web.Response):
            return answer
        return web.Response(body=answer + b"\n", content_type="application/json")

    return handle


def _metrics_page(body: bytes) -> web.Response:
    return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE})


async def _send_pieces(request: web.Request, pieces: Sequence[bytes]) -> web.StreamResponse:
    """Send a page that may be 100 MB, compressed for who takes that."""
    response = web.StreamResponse(headers={"Content-Type": CONTENT_TYPE})
    response.enable_compression()
    await response.prepare(request)
    for piece in pieces if request.method == "GET" else ():
        await response.write(piece)
    await response.write_eof()
    return response


def _health_handler(source: PageSource, kind: str, metrics: HealthMetrics) -> _Handler:
    async def health(request: web.Request) -> web.Response:
        checks = await _ask(f"/{kind}", source.health(kind))
        if isinstance(checks, web.Response):
            metrics.unanswered(kind)
            return checks
        for check in checks:
            metrics.observe(check.name, kind, check.ok)
        passed = all(check.ok for check in checks)
        if passed and "verbose" not in request.query:
            return _text("ok")
        lines = [f"[+]{check.name} ok" if check.ok else f"[-]{check.name} failed: {check.text}" for check in checks]
        lines.append(f"{kind} check {'passed' if passed else 'failed'}")
        return _text("\n".join(lines) + "\n", 200 if passed else 500)

    return health


async def _ask(path: str, question: Coroutine[Any, Any, T], limit_s: float = ANSWER_LIMIT_S) -> T | web.Response:
    """Return the source's answer, or a page that says why there is none."""
    task = asyncio.ensure_future(question)
    # Not wait_for: it waits for the cancelled question to end, which a stuck one doesn't.
    done, _ = await asyncio.wait([task], timeout=limit_s)
    if not done:
        task.cancel()
        _log.warning("no answer for a page in time", extra={"page": path, "limit_s": limit_s})
        return _text(f"{path}: no answer in {limit_s:g} s\n", 503)
    error = asyncio.CancelledError() if task.cancelled() else task.exception()
    if error is not None:
        _log.error("a page failed", extra={"page": path}, exc_info=error)
        return _text(f"{path}: failed with {type(error).__name__}; the log says more\n", 500)
    return task.result()


@web.middleware
async def _explain_refusals(request: web.Request, handler: _Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPMethodNotAllowed as refusal:
        allowed = ", ".join(sorted(refusal.allowed_methods))
        response = _text(f"{request.path}: {request.method} is not allowed here. Use {allowed}\n", 405)
        response.headers["Allow"] = allowed
        return response
    except web.HTTPNotFound:
        pages = " ".join(f"/{name}" for name in sorted([*HEALTH_KINDS, *_METRICS_KINDS, "decisions", "signals"]))
        return _text(f"no such page. Pages: {pages}\n", 404)


async def _add_headers(_: web.Request, response: web.StreamResponse) -> None:
    response.headers["Cache-Control"] = "no-cache, private"
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Server"] = "vane"


def _text(text: str, status: int = 200) -> web.Response:
    return web.Response(text=text, status=status)
