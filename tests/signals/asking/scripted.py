"""A Prometheus that answers as told, for the faults that a real one does not show on demand."""

from __future__ import annotations

import json
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from scheduler.signals.answers import SignalAnswer
from scheduler.signals.asking.client import QueryResult
from scheduler.signals.asking.query_errors import QueryError
from scheduler.signals.asking.session import ResultSeries


class Exchange(BaseHTTPRequestHandler):
    """One connection; a script writes the answers through it."""

    protocol_version = "HTTP/1.1"
    server: ScriptedServer

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        form = {key: values[0] for key, values in urllib.parse.parse_qs(body.decode()).items()}
        self.server.requests.append(Request(self.path, form, dict(self.headers), self.client_address))
        self.server.script(self, form)

    def answer(self, body: bytes | str, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        content = body.encode() if isinstance(body, str) else body
        lines = {"Content-Length": str(len(content)), **(headers or {})}
        self.wfile.write(
            (f"HTTP/1.1 {status} Said\r\n" + "".join(f"{k}: {v}\r\n" for k, v in lines.items()) + "\r\n").encode()
            + content
        )

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


class Request:
    def __init__(self, path: str, form: Mapping[str, str], headers: Mapping[str, str], peer: object) -> None:
        self.path, self.form, self.headers, self.peer = path, form, headers, peer


Script = Callable[[Exchange, Mapping[str, str]], None]


class ScriptedServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, script: Script) -> None:
        super().__init__(("127.0.0.1", 0), Exchange)
        self.script = script
        self.requests: list[Request] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is part of the tests."""


@contextmanager
def scripted(script: Script) -> Iterator[ScriptedServer]:
    server = ScriptedServer(script)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def vector(values: Sequence[tuple[Mapping[str, str], str]], at: float = 1000.0, **more: Any) -> str:
    result = [{"metric": dict(labels), "value": [at, value]} for labels, value in values]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}, **more})


def always(body: str, status: int = 200, headers: Mapping[str, str] | None = None) -> Script:
    return lambda exchange, _form: exchange.answer(body, status, headers)


class NoObserver:
    """A RefreshObserver that counts nothing."""

    def query_done(self, signal: str, duration_s: float, error_kind: str) -> None: ...

    def server_done(self, server: str, is_up: bool) -> None: ...

    def query_skipped(self, signal: str, reason: str) -> None: ...

    def answered(self, answer: SignalAnswer) -> None: ...


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self, now_s: float = 1000.0) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        return self.now_s


class FakeClient:
    """A QueryClient: node name -> value by expression, an error, or a function."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.answers: dict[str, Any] = {}
        self.asked: list[str] = []
        self.looked_back: list[tuple[str, float | None]] = []
        self.warnings: tuple[str, ...] = ()
        self._clock = clock
        self._lock = threading.Lock()

    def query(self, expr: str, lookback_s: float | None = None) -> QueryResult:
        with self._lock:
            self.asked.append(expr)
            self.looked_back.append((expr, lookback_s))
        found = self.answers.get(expr, {})
        if callable(found):
            found = found()
        if isinstance(found, QueryError):
            raise found
        if isinstance(found, QueryResult):
            return found
        series = [ResultSeries({"node": name}, (5000.0, str(value))) for name, value in found.items()]
        return QueryResult(series, False, self.warnings, self._clock(), 5000.0)
