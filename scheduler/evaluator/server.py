"""The query API of Prometheus over HTTP, on samples in memory."""

from __future__ import annotations

import asyncio
import email.utils
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from aiohttp import web

from scheduler.errors import ConfigError
from scheduler.evaluator.answers import (
    BadParameterError,
    encode,
    failure,
    failure_answer,
    instant_answer,
    parse_duration_ms,
    parse_limit,
    parse_time_ms,
    plain_answer,
    range_answer,
)
from scheduler.evaluator.evaluate import LOOKBACK_S, evaluate_range, evaluate_tree
from scheduler.evaluator.expression import parse
from scheduler.evaluator.selectors import Moment
from scheduler.evaluator.store import SeriesStore
from scheduler.evaluator.values import PromQLError, QueryTimeoutError

DEFAULT_TIMEOUT_S: Final = 120.0
MAX_POINTS: Final = 11_000

_MAX_QUERY_BYTES: Final = 1 << 20
_SMALLEST_COMPRESSED_BYTES: Final = 1024
_HINT: Final = "this endpoint of `vane demo` speaks /api/v1/query, query_range, labels and label/<name>/values"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class PrometheusServer:
    """Serves a store from `start` to `stop`, in the event loop of whoever starts it.

    Parameters
    ----------
    now
        The time of evaluation where a query names none, and of the header Date: Unix seconds by the clock of the
        samples.
    monotonic
        Measures how long a query takes.
    """

    def __init__(
        self, store: SeriesStore, now: Callable[[], float], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._now = now
        self._monotonic = monotonic
        self._runner: web.AppRunner | None = None

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> str:
        """Return the address once the port is open; port 0 takes any that is free.

        Raises
        ------
        ConfigError
            Where the port cannot be had.
        """
        if self._runner is not None:
            raise RuntimeError("the server was started already")
        runner = web.AppRunner(self._application(), handle_signals=False, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            await runner.cleanup()
            found = f"got {error.strerror or error}. Write another port, or 0 for any that is free"
            raise ConfigError(f"Prometheus endpoint {host}:{port}: cannot listen there, {found}") from error
        self._runner = runner
        bound = runner.addresses[0][1]
        return f"http://{f'[{host}]' if ':' in host else host}:{bound}"

    async def stop(self) -> None:
        """Close the port and every connection; a second call does nothing, and `start` may follow."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    def _application(self) -> web.Application:
        application = web.Application(middlewares=[self._answer_errors], client_max_size=_MAX_QUERY_BYTES)
        application.add_routes(
            [
                web.get("/", _front),
                web.get("/-/ready", _ready),
                web.get("/-/healthy", _healthy),
                web.get("/api/v1/status/buildinfo", self._buildinfo),
                web.get("/api/v1/query", self._query),
                web.post("/api/v1/query", self._query),
                web.get("/api/v1/query_range", self._query_range),
                web.post("/api/v1/query_range", self._query_range),
                web.get("/api/v1/labels", self._labels),
                web.post("/api/v1/labels", self._labels),
                web.get("/api/v1/label/{name}/values", self._label_values),
            ]
        )
        application.on_response_prepare.append(self._date)
        return application

    async def _date(self, _: web.Request, response: web.StreamResponse) -> None:
        # Of the same clock as the samples: clients take the distance of the two for the age of the answer.
        response.headers["Date"] = email.utils.formatdate(self._now(), usegmt=True)

    @web.middleware
    async def _answer_errors(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except (BadParameterError, PromQLError) as error:
            status, answer = failure(error)
        except web.HTTPException as error:
            status = error.status
            answer = failure_answer(
                "not_found" if status == 404 else "bad_data", f"{request.path}: {error.reason}; {_HINT}"
            )
        return _json(request, answer, status)

    async def _query(self, request: web.Request) -> web.Response:
        parameters = await _parameters(request)
        limit = parse_limit(parameters.get("limit", ""))
        at_ms = self._time_ms(parameters, "time")
        check = self._deadline(parameters)
        moment = Moment(at_ms, _lookback_ms(parameters), at_ms, at_ms)
        root = parse(parameters.get("query", ""))
        result = await asyncio.to_thread(evaluate_tree, root, self._store, moment, check)
        return _json(request, instant_answer(result, at_ms, limit))

    async def _query_range(self, request: web.Request) -> web.Response:
        parameters = await _parameters(request)
        limit = parse_limit(parameters.get("limit", ""))
        start_ms, end_ms = (parse_time_ms(name, parameters.get(name, "")) for name in ("start", "end"))
        if end_ms < start_ms:
            raise BadParameterError("end", "end timestamp must not be before start time")
        step_ms = parse_duration_ms("step", parameters.get("step", ""))
        if step_ms <= 0:
            problem = "zero or negative query resolution step widths are not accepted. Try a positive integer"
            raise BadParameterError("step", problem)
        if (end_ms - start_ms) / step_ms > MAX_POINTS:
            raise BadParameterError("step", f"more than {MAX_POINTS:,} points per series. Try a longer step")
        check = self._deadline(parameters)
        root = parse(parameters.get("query", ""))
        times = range(start_ms, end_ms + 1, step_ms)
        found = await asyncio.to_thread(evaluate_range, root, self._store, times, _lookback_ms(parameters), check)
        return _json(request, range_answer(found.series, found.warnings, limit))

    async def _labels(self, request: web.Request) -> web.Response:
        names = sorted({name for labels in self._store.all_labels() for name in labels})
        return _json(request, plain_answer(names))

    async def _label_values(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        values = sorted({labels[name] for labels in self._store.all_labels() if name in labels})
        return _json(request, plain_answer(values))

    async def _buildinfo(self, request: web.Request) -> web.Response:
        return _json(request, plain_answer({"version": "embedded", "branch": "", "revision": "", "goVersion": ""}))

    def _time_ms(self, parameters: Mapping[str, str], name: str) -> int:
        text = parameters.get(name, "")
        return parse_time_ms(name, text) if text else round(self._now() * 1000)

    def _deadline(self, parameters: Mapping[str, str]) -> Callable[[], None]:
        """Return what ends a query that has taken too long."""
        text = parameters.get("timeout", "")
        within_s = parse_duration_ms("timeout", text) / 1000 if text else DEFAULT_TIMEOUT_S
        until_s = self._monotonic() + min(within_s, DEFAULT_TIMEOUT_S)

        def check() -> None:
            if self._monotonic() > until_s:
                raise QueryTimeoutError("query timed out in expression evaluation")

        return check


def _lookback_ms(parameters: Mapping[str, str]) -> int:
    text = parameters.get("lookback_delta", "")
    given_ms = parse_duration_ms("lookback_delta", text) if text else 0
    return given_ms if given_ms > 0 else round(LOOKBACK_S * 1000)


async def _parameters(request: web.Request) -> Mapping[str, str]:
    """Return the parameters of the form and the address; the form comes first, as in Prometheus."""
    form = await request.post() if request.method == "POST" else {}
    return {**request.query, **{name: value for name, value in form.items() if isinstance(value, str)}}


def _json(request: web.Request, answer: Mapping[str, Any], status: int = 200) -> web.Response:
    body = encode(answer)
    response = web.Response(body=body, status=status, content_type="application/json")
    if len(body) >= _SMALLEST_COMPRESSED_BYTES and "gzip" in request.headers.get("Accept-Encoding", ""):
        response.enable_compression(web.ContentCoding.gzip)
    return response


async def _front(_: web.Request) -> web.Response:
    return web.Response(text=f"Samples of simulated nodes: {_HINT}.\n")


async def _ready(_: web.Request) -> web.Response:
    return web.Response(text="Prometheus Server is Ready.\n")


async def _healthy(_: web.Request) -> web.Response:
    return web.Response(text="Prometheus Server is Healthy.\n")
