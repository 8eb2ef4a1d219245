"""Connections to the pages: so many and no more, none idle for long, and a probe has its place among strangers."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest

from scheduler.serve.http import PageServer
from scheduler.serve.listener import LIMITS, ConnectionLimits
from scheduler.settings.settings import ServingSettings
from tests.serve.source import Source
from tests.serve.test_access import ScriptedReviews
from tests.serve.test_http import any_certificate
from tests.support.ports import free_port
from tests.support.waiting import wait_until

STRANGER, ANOTHER, KUBELET = "127.0.0.2", "127.0.0.3", "127.0.0.4"
LONG = 60.0

Serve = Callable[..., PageServer]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start a server on all addresses, with these limits."""
    with ExitStack() as stack:

        def start(reviews: ScriptedReviews | None = None, **seconds: Any) -> PageServer:
            settings = ServingSettings(secure_port=free_port(), bind_address="0.0.0.0")
            limits = replace(ConnectionLimits(4, LONG, LONG), **seconds)
            server = PageServer(settings, Source(), reviews, limits=limits)
            server.start()
            stack.callback(server.stop)
            return server

        yield start


class Clients:
    """Connections from loopback addresses, closed at the end."""

    def __init__(self, server: PageServer) -> None:
        self._port = int(server.url.rpartition(":")[2])
        self._open: list[socket.socket] = []

    def connect(self, address: str) -> socket.socket:
        made = socket.create_connection(("127.0.0.1", self._port), timeout=30.0, source_address=(address, 0))
        self._open.append(made)
        return made

    def handshake(self, address: str) -> ssl.SSLSocket:
        made = any_certificate().wrap_socket(self.connect(address))
        self._open.append(made)
        return made

    def ask(self, address: str, path: str = "/livez", token: str = "") -> bytes:
        """Return the status line of an answer on a new connection."""
        made = self.handshake(address)
        made.sendall(f"GET {path} HTTP/1.1\r\nHost: vane\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
        return made.recv(1 << 16).partition(b"\r\n")[0]

    def close(self) -> None:
        for one in self._open:
            one.close()


@pytest.fixture
def clients() -> Iterator[Callable[[PageServer], Clients]]:
    with ExitStack() as stack:

        def of(server: PageServer) -> Clients:
            made = Clients(server)
            stack.callback(made.close)
            return made

        yield of


def is_ended(connection: socket.socket) -> bool:
    """Return whether the other end has closed it by now."""
    connection.settimeout(0.01)
    try:
        return connection.recv(1 << 16) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def n_ended(connections: list[ssl.SSLSocket]) -> int:
    return sum(map(is_ended, connections))


def test_strangers_hold_no_more_than_the_limit_and_probes_are_answered(
    serve: Serve, clients: Callable[[PageServer], Clients]
) -> None:
    server = serve()
    of = clients(server)
    idle = [of.handshake(STRANGER) for _ in range(20)]
    wait_until(lambda: n_ended(idle) == 16, 10.0, "all but four ended")
    assert not is_ended(idle[-1]), "the oldest go first"
    assert of.ask(KUBELET) == of.ask(STRANGER) == b"HTTP/1.1 200 OK"
    assert of.ask(KUBELET, "/metrics") == b"HTTP/1.1 401 Unauthorized"


def test_who_holds_most_gives_way(serve: Serve, clients: Callable[[PageServer], Clients]) -> None:
    of = clients(serve())
    scraper, many = of.handshake(ANOTHER), [of.handshake(STRANGER) for _ in range(30)]
    assert of.ask(KUBELET) == b"HTTP/1.1 200 OK"
    assert not is_ended(scraper)
    wait_until(lambda: n_ended(many) >= 28, 10.0, "the stranger's own ended")


def test_connections_without_a_handshake_take_no_place_from_others(
    serve: Serve, clients: Callable[[PageServer], Clients]
) -> None:
    of = clients(serve())
    silent = [of.connect(STRANGER) for _ in range(20)]
    assert of.ask(KUBELET) == b"HTTP/1.1 200 OK"
    wait_until(lambda: sum(map(is_ended, silent)) >= 16, 10.0, "all but some ended")


@pytest.mark.parametrize("limit", ["handshake_s", "first_request_s"])
def test_neither_handshake_nor_first_request_may_take_long(
    serve: Serve, clients: Callable[[PageServer], Clients], limit: str
) -> None:
    of = clients(serve(**{limit: 0.3}))
    slow = of.connect(STRANGER) if limit == "handshake_s" else of.handshake(STRANGER)
    if limit == "first_request_s":
        slow.sendall(b"GET /livez HTTP/1.1\r\nHost: va")  # which is never finished
    wait_until(lambda: is_ended(slow), 10.0, "the end of it")


def test_a_connection_that_has_asked_is_kept(serve: Serve, clients: Callable[[PageServer], Clients]) -> None:
    of = clients(serve(first_request_s=0.2))
    kept, waiting = of.handshake(KUBELET), of.handshake(KUBELET)
    for _ in range(2):
        kept.sendall(b"GET /livez HTTP/1.1\r\nHost: vane\r\n\r\n")
        assert kept.recv(1 << 16).startswith(b"HTTP/1.1 200 OK")
        wait_until(lambda: is_ended(waiting), 10.0, "the end of the other one")


def test_a_page_that_is_being_made_is_not_given_up_for_its_own_address(
    serve: Serve, clients: Callable[[PageServer], Clients]
) -> None:
    reviews = ScriptedReviews()
    asked, answer = threading.Event(), threading.Event()

    def hold_up() -> None:
        asked.set()
        answer.wait(30.0)

    reviews.wait = hold_up
    of = clients(serve(reviews))
    with ThreadPoolExecutor(1) as pool:
        page = pool.submit(of.ask, ANOTHER, "/metrics", "scraper")
        assert asked.wait(10.0)
        many = [of.handshake(ANOTHER) for _ in range(12)]
        wait_until(lambda: n_ended(many) == 9, 10.0, "idle ones give way first")
        answer.set()
        assert page.result(10.0) == b"HTTP/1.1 200 OK"


def test_the_limits_in_force() -> None:
    assert LIMITS.number * 0.3 <= 20, "MB"
    assert LIMITS.handshake_s + LIMITS.first_request_s <= 10
