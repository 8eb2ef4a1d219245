"""A proxy before a Prometheus, for the faults that a real one does not show on demand."""

from __future__ import annotations

import email.utils
import json
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.support.ports import free_port


class Asked(BaseHTTPRequestHandler):
    """One query on its way: what a fault reads and answers."""

    protocol_version = "HTTP/1.1"
    server: _Listener

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.form = {key: values[0] for key, values in urllib.parse.parse_qs(body.decode()).items()}
        fault = self.server.proxy.fault
        if self.server.is_closed:
            self.close_connection = True
        elif fault is None:
            self.say(self.forward())
        else:
            fault(self)

    @property
    def query(self) -> str:
        return self.form["query"]

    def forward(self, **changes: str) -> dict[str, Any]:
        """Return what Prometheus answers to the query, or to one with other parameters."""
        form = urllib.parse.urlencode({**self.form, **changes}).encode()
        try:
            with urllib.request.urlopen(self.server.proxy.upstream + self.path, form, timeout=10) as response:
                answer: dict[str, Any] = json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                answer = json.load(error)
        return answer

    def say(self, answer: Mapping[str, Any]) -> None:
        self.write(json.dumps(answer).encode(), 200 if answer["status"] == "success" else 422)

    def write(
        self, body: bytes, status: int = 200, headers: Mapping[str, str] | None = None, date_off_s: float = 0.0
    ) -> None:
        """Answer with this body, dated by a clock that is so far off."""
        date = email.utils.formatdate(time.time() + date_off_s, usegmt=True)  # noqa: TID251  # a date is by the wall
        lines = {"Content-Type": "application/json", "Content-Length": str(len(body)), "Date": date, **(headers or {})}
        head = f"HTTP/1.1 {status} Said\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        self.wfile.write(head.encode() + b"\r\n" + body)

    def hang(self) -> None:
        """Say nothing for as long as the fault lasts, and then hang up."""
        self.server.proxy.mended.wait(30.0)
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the queries out of the tests' output."""


Fault = Callable[[Asked], None]


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    # Its threads go on with the connections that they have.
    is_closed = False
    proxy: FaultProxy

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is part of the tests."""


class FaultProxy:
    """Forwards queries to `upstream`, until it has a fault to answer them with."""

    def __init__(self, upstream: str) -> None:
        self.upstream = upstream
        self.fault: Fault | None = None
        self.mended = threading.Event()
        self.port = free_port()
        self._listener: _Listener | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self._listener = _Listener(("127.0.0.1", self.port), Asked)
        self._listener.proxy = self
        threading.Thread(target=self._listener.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        """Refuse connections; those that are open are answered no more."""
        self.mended.set()
        if self._listener is not None:
            self._listener.is_closed = True
            self._listener.shutdown()
            self._listener.server_close()
            self._listener = None

    def break_with(self, fault: Fault) -> None:
        self.mended.clear()
        self.fault = fault

    def mend(self) -> None:
        self.fault = None
        self.mended.set()
        if self._listener is None:
            self.start()
