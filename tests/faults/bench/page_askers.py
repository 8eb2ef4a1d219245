"""Asks a replica for pages all the time, and notes each failure and whose certificate it saw."""

from __future__ import annotations

import http.client
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path

_N_THREADS = 3
_APART_S = 0.02
_PAGES = ("/readyz", "/metrics")


class Askers:
    """Some threads that connect anew for each request, and one that keeps its connection; all verify."""

    def __init__(self, port: int, authorities: Path) -> None:
        self._port = port
        self._context = ssl.create_default_context(cafile=authorities)
        self._ended = threading.Event()
        kept = [index == 0 for index in range(_N_THREADS + 1)]
        self._threads = [threading.Thread(target=self._run, args=(one,), daemon=True) for one in kept]
        self.shown: bytes = b""
        """The certificate of the last new connection, DER."""
        self.n_asked = 0
        self.failures: list[str] = []

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(10)

    def until_shown(self, certificate_pem: bytes, wait: Callable[[], object], longest_s: float) -> float:
        """Call `wait` until new connections see this certificate; return the seconds, infinite after the longest."""
        wanted = ssl.PEM_cert_to_DER_cert(certificate_pem.decode())
        begun_s = time.monotonic()
        while time.monotonic() - begun_s < longest_s:
            if self.shown == wanted:
                return time.monotonic() - begun_s
            wait()
        return float("inf")

    def _run(self, is_kept: bool) -> None:
        connection = self._connection()
        while not self._ended.wait(_APART_S):
            for page in _PAGES:
                self._ask(connection, page, is_kept)
            if not is_kept:
                connection.close()
                connection = self._connection()
        connection.close()

    def _connection(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection("127.0.0.1", self._port, timeout=10, context=self._context)

    def _ask(self, connection: http.client.HTTPSConnection, page: str, is_kept: bool) -> None:
        self.n_asked += 1
        try:
            connection.request("GET", page)
            if not is_kept and isinstance(connection.sock, ssl.SSLSocket):
                self.shown = connection.sock.getpeercert(binary_form=True) or b""
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                self.failures.append(f"{page}: {answer.status}")
        except (OSError, http.client.HTTPException) as error:
            self.failures.append(f"{page}: {error!r}")
            connection.close()
