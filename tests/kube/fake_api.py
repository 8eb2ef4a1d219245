"""A scripted API server on loopback, for the faults that a real one can't be made to show."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import struct
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass
class Received:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    at_s: float

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Responder = Callable[["Exchange"], None]


@dataclass
class Exchange:
    """One request being answered; exactly one of its methods answers it."""

    handler: BaseHTTPRequestHandler
    received: Received
    ended: threading.Event

    def json(self, code: int, body: object, headers: Mapping[str, str] | None = None) -> None:
        self.raw(code, json.dumps(body).encode(), headers or {})

    def raw(self, code: int, data: bytes, headers: Mapping[str, str]) -> None:
        self.handler.send_response(code)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.handler.send_header(name, value)
        self.handler.send_header("Content-Length", str(len(data)))
        self.handler.end_headers()
        self.handler.wfile.write(data)

    def start_stream(self) -> None:
        self.handler.send_response(200)
        self.handler.send_header("Content-Type", "application/json")
        self.handler.send_header("Transfer-Encoding", "chunked")
        self.handler.end_headers()
        self.handler.wfile.flush()

    def chunk(self, data: bytes) -> None:
        self.handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.handler.wfile.flush()

    def end_stream(self) -> None:
        self.handler.wfile.write(b"0\r\n\r\n")
        self.handler.wfile.flush()

    def cut(self) -> None:
        """Close the connection at once; with what was sent still delivered."""
        self.handler.close_connection = True
        with contextlib.suppress(OSError):
            self.handler.connection.shutdown(socket.SHUT_RDWR)

    def reset(self) -> None:
        """Answer with a TCP reset."""
        self.handler.close_connection = True
        self.handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.handler.connection.close()

    def hang(self, seconds: float = 60.0) -> None:
        """Say nothing more, with the connection open."""
        self.handler.close_connection = True
        self.ended.wait(seconds)


@dataclass
class FakeApi:
    port: int = 0
    context: ssl.SSLContext | None = None
    """What the next connection gets; None: no TLS."""
    received: list[Received] = field(default_factory=list)
    _scripts: dict[tuple[str, str], list[Responder]] = field(default_factory=lambda: defaultdict(list))
    _lock: threading.Lock = field(default_factory=threading.Lock)
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def host(self) -> str:
        return f"{'http' if self.context is None else 'https'}://127.0.0.1:{self.port}"

    def script(self, method: str, path: str, *responders: Responder) -> None:
        """Answer requests with these in turn; the last one answers all that follow."""
        with self._lock:
            self._scripts[method, path] = list(responders)

    def of(self, method: str, path: str) -> list[Received]:
        with self._lock:
            return [one for one in self.received if (one.method, one.path) == (method, path)]

    def answer(self, exchange: Exchange) -> None:
        received = exchange.received
        with self._lock:
            self.received.append(received)
            kind = "WATCH" if "watch" in received.query else received.method
            script = self._scripts.get((kind, received.path), [])
            responder = script.pop(0) if len(script) > 1 else (script[0] if script else None)
        if responder is None:
            exchange.json(404, status(404, "NotFound", "no script"))
        else:
            responder(exchange)


@contextlib.contextmanager
def fake_api(context: ssl.SSLContext | None = None) -> Iterator[FakeApi]:
    api = FakeApi(context=context)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _serve(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            received = Received(
                self.command, parts.path, dict(parse_qsl(parts.query)), dict(self.headers), body, time.monotonic()
            )
            with contextlib.suppress(OSError, ValueError):
                api.answer(Exchange(self, received, api.ended))

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _serve

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def setup(self) -> None:
            if api.context is not None:
                self.request = api.context.wrap_socket(self.request, server_side=True)
            super().setup()

        def handle(self) -> None:
            with contextlib.suppress(OSError, ValueError):
                super().handle()

        def finish(self) -> None:
            with contextlib.suppress(OSError, ValueError):
                super().finish()
            if api.context is not None:
                self.request.close()  # the server itself knows only the socket beneath

    class Server(ThreadingHTTPServer):
        request_queue_size = 256
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            pass

    with Server(("127.0.0.1", 0), Handler) as server:
        api.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield api
        finally:
            api.ended.set()
            server.shutdown()
            thread.join()


def status(code: int, reason: str, message: str) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
    }


def pod(name: str, version: int = 1, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": str(version)}
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}


def pod_list(*pods: dict[str, Any], version: int = 1, token: str = "") -> dict[str, Any]:
    metadata = {"resourceVersion": str(version)} | ({"continue": token} if token else {})
    return {"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": list(pods)}


def line(event_type: str, obj: object) -> bytes:
    return json.dumps({"type": event_type, "object": obj}).encode() + b"\n"


def bookmark(version: int) -> bytes:
    return line("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": str(version)}})


def raw(code: int, body: bytes) -> Responder:
    return lambda exchange: exchange.raw(code, body, {})


def replies(code: int, body: object, headers: Mapping[str, str] | None = None) -> Responder:
    return lambda exchange: exchange.json(code, body, headers)


def streams(*chunks: bytes, then: str = "end") -> Responder:
    """Send chunks, then `end` the response, `cut` or `reset` the connection, or `hang`."""

    def respond(exchange: Exchange) -> None:
        exchange.start_stream()
        for chunk in chunks:
            exchange.chunk(chunk)
        {"end": exchange.end_stream, "cut": exchange.cut, "reset": exchange.reset, "hang": exchange.hang}[then]()

    return respond


def hangs(exchange: Exchange) -> None:
    exchange.hang()


def resets(exchange: Exchange) -> None:
    exchange.reset()


def cuts(exchange: Exchange) -> None:
    exchange.cut()
