"""A proxy of requests to an API server or a Prometheus: it breaks answers, and knows what was asked by whom."""

from __future__ import annotations

import asyncio
import random
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field

import aiohttp
from aiohttp import web

from scheduler.client_sockets import ClientSockets
from tests.faults.proxy.tcp import ProxyLoop, reset

_HOP_BY_HOP = frozenset({"host", "connection", "transfer-encoding", "content-length", "content-encoding"})
_LARGEST_BODY = 1 << 24


@dataclass
class Call:
    """One request as it came in.

    `code` is what was answered in the end, 0 where nothing was; `ended_s` when, 0 while it is under way.
    """

    at_s: float
    method: str
    path: str
    query: Mapping[str, str]
    user_agent: str
    token: str
    connection: int = 0
    """The port of the connection's other end."""
    code: int = 0
    ended_s: float = 0.0

    @property
    def replica(self) -> str:
        return self.user_agent.rsplit(" ", 1)[-1].partition("/")[0]

    @property
    def is_watch(self) -> bool:
        return self.query.get("watch") in ("1", "true")

    @property
    def is_bind(self) -> bool:
        return self.method == "POST" and self.path.endswith("/binding")

    @property
    def is_lease(self) -> bool:
        return "/leases" in self.path

    @property
    def is_list(self) -> bool:
        """Whether it is the first page of a list of Pods or nodes."""
        is_collection = self.path.endswith(("/pods", "/nodes"))
        return self.method == "GET" and is_collection and not self.is_watch and "continue" not in self.query


Lines = Callable[[bytes], Sequence[bytes]]


@dataclass(frozen=True)
class Answer:
    """What is said in the server's place."""

    code: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass
class Fault:
    """What happens to a share of the calls that it is for; several effects may come together.

    Before the request goes on: `delay_s`, `answer`, `resets_before`, `hangs`. After the server has done it:
    `answer_delay_s`, `resets_after`, of answers of these `codes` only if any are named. To the body: `cut_after` so
    many bytes, `is_corrupt`. To each line of a watch: `lines`, which returns what comes in its place.
    """

    on: Callable[[Call], bool] = lambda _call: True
    share: float = 1.0
    delay_s: float = 0.0
    answer: Answer | None = None
    resets_before: bool = False
    hangs: bool = False
    answer_delay_s: float = 0.0
    resets_after: bool = False
    codes: frozenset[int] = frozenset()
    cut_after: int | None = None
    is_corrupt: bool = False
    lines: Lines | None = None
    n_hit: int = 0


class _ResetError(Exception):
    """The connection is to be reset now."""


def _reset(request: web.Request) -> None:
    if request.transport is not None:
        reset(request.transport)
    raise _ResetError


@dataclass
class HttpProxy:
    """Forwards to `upstream`, a base URL, whose certificate is not looked at; serves by TLS if there is a `tls`."""

    loop: ProxyLoop
    upstream: str
    tls: ssl.SSLContext | None = None
    random: random.Random = field(default_factory=lambda: random.Random(1))
    faults: list[Fault] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    token_of: Callable[[str], str] = lambda token: token
    """The token that is shown to the server for the one that came; "" answers 401."""

    def __post_init__(self) -> None:
        self.port = 0
        self._watches: set[asyncio.BaseTransport] = set()
        self._sockets = ClientSockets()
        self._session: aiohttp.ClientSession | None = None
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    def start(self) -> None:
        self.loop.run(self._open())

    def stop(self) -> None:
        self.loop.run(self._close())

    def add(self, fault: Fault) -> Fault:
        self.faults.append(fault)
        return fault

    def mend(self) -> None:
        """Forget all faults, and what hangs because of them."""
        self.faults.clear()

    def cut_watches(self) -> None:
        """Reset the connections of all watches."""

        async def cut() -> None:
            self._reset_watches()

        self.loop.run(cut())

    def _reset_watches(self) -> None:
        for transport in list(self._watches):
            reset(transport)

    async def _open(self) -> None:
        connector = aiohttp.TCPConnector(ssl=False, limit=0, socket_factory=self._sockets.make)
        self._session = aiohttp.ClientSession(connector=connector, auto_decompress=False)
        app = web.Application(client_max_size=_LARGEST_BODY)
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, ssl_context=self.tls).start()
        self.port = self._runner.addresses[0][1]

    async def _close(self) -> None:
        if self._runner is not None:
            # A client that holds its end open would be waited for, until long after the loop has ended.
            for connection in self._runner.server.connections if self._runner.server is not None else ():
                if connection.transport is not None:
                    reset(connection.transport)
            await self._runner.cleanup()
        if self._session is not None:
            await self._session.close()
        await self._sockets.close()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        agent = request.headers.get("User-Agent", "")
        other_end = request.transport.get_extra_info("peername") if request.transport is not None else None
        now_s = time.time()  # noqa: TID251
        query = dict(request.query)
        call = Call(now_s, request.method, request.path, query, agent, token, other_end[1] if other_end else 0)
        self.calls.append(call)
        hit = [one for one in self.faults if one.on(call) and self.random.random() < one.share]
        for one in hit:
            one.n_hit += 1
        try:
            return await self._answer(request, call, hit)
        except _ResetError:
            return web.Response(status=500)
        except (aiohttp.ClientError, OSError):
            return await self._give_up(request)
        finally:
            call.ended_s = time.time()  # noqa: TID251

    async def _give_up(self, request: web.Request) -> web.StreamResponse:
        """End as the server did: without an answer."""
        if request.transport is not None:
            reset(request.transport)
        return web.Response(status=502)

    async def _answer(self, request: web.Request, call: Call, hit: Sequence[Fault]) -> web.StreamResponse:
        body = await request.read()
        for one in hit:
            await asyncio.sleep(one.delay_s)
            if one.resets_before:
                _reset(request)
            while one.hangs and one in self.faults:
                await asyncio.sleep(0.05)
            if one.answer is not None:
                call.code = one.answer.code
                headers = {"Content-Type": "application/json", **one.answer.headers}
                return web.Response(status=one.answer.code, headers=headers, body=one.answer.body)
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP_BY_HOP}
        if call.token:
            headers["Authorization"] = f"Bearer {self.token_of(call.token)}"
        assert self._session is not None
        async with self._session.request(
            request.method,
            f"{self.upstream}{request.rel_url}",
            headers=headers,
            data=body,
            timeout=aiohttp.ClientTimeout(total=None),
            allow_redirects=False,
        ) as answer:
            for one in hit:
                await asyncio.sleep(one.answer_delay_s)
                if one.resets_after and (not one.codes or answer.status in one.codes):
                    await answer.read()
                    _reset(request)
            call.code = answer.status
            return await self._pass_on(request, call, answer, hit)

    async def _pass_on(
        self, request: web.Request, call: Call, answer: aiohttp.ClientResponse, hit: Sequence[Fault]
    ) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status)
        for name, value in answer.headers.items():
            if name.lower() not in _HOP_BY_HOP:
                response.headers[name] = value
        if "Content-Encoding" in answer.headers:
            response.headers["Content-Encoding"] = answer.headers["Content-Encoding"]
        await response.prepare(request)
        transport = request.transport
        if transport is None:
            return response
        if call.is_watch:
            self._watches.add(transport)
        try:
            await self._copy(request, response, answer, call)
        finally:
            self._watches.discard(transport)
        return response

    async def _copy(
        self, request: web.Request, response: web.StreamResponse, answer: aiohttp.ClientResponse, call: Call
    ) -> None:
        n_sent = 0
        chunks = _whole_lines(answer.content) if call.is_watch else answer.content.iter_any()
        async for chunk in chunks:
            for piece in self._broken(chunk, call):
                limit = min((one.cut_after for one in self._on(call) if one.cut_after is not None), default=None)
                if limit is not None and n_sent + len(piece) > limit:
                    await response.write(piece[: max(0, limit - n_sent)])
                    await asyncio.sleep(0.05)  # what was sent is to arrive before the reset
                    _reset(request)
                await response.write(piece)
                n_sent += len(piece)
        await response.write_eof()

    def _on(self, call: Call) -> list[Fault]:
        """Return the faults for a call as of now: a watch that is open takes part in what comes later."""
        return [one for one in self.faults if one.on(call)]

    def _broken(self, chunk: bytes, call: Call) -> Sequence[bytes]:
        pieces: Sequence[bytes] = [chunk]
        for one in self._on(call):
            if one.is_corrupt and self.random.random() < one.share:
                at = self.random.randrange(len(chunk))
                pieces = [chunk[:at] + bytes([chunk[at] ^ 0x55]) + chunk[at + 1 :]]
            if one.lines is not None and call.is_watch:
                pieces = [out for piece in pieces for out in one.lines(piece)]
        return pieces


async def _whole_lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    rest = b""
    async for chunk in content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line + b"\n"
    if rest:
        yield rest


def dropping(share: float, chance: random.Random) -> Lines:
    """Return what loses a share of the lines."""
    return lambda line: [] if chance.random() < share else [line]


def doubling(share: float, chance: random.Random) -> Lines:
    """Return what brings a share of the lines twice, as a watch that begins again a little earlier would."""
    return lambda line: [line, line] if chance.random() < share else [line]


def too_many_requests(retry_after_s: int | None) -> Answer:
    """Return what an API server says that has no seat free, with or without saying when to come again."""
    body = b'{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429}'
    return Answer(429, {} if retry_after_s is None else {"Retry-After": str(retry_after_s)}, body)
