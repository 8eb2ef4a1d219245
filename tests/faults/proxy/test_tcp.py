from __future__ import annotations

import contextlib
import errno
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from tests.faults.proxy.tcp import ProxyLoop, TcpProxy
from tests.support.waiting import wait_until


class Echo:
    """Answers each message with its name and the message."""

    def __init__(self, name: str) -> None:
        self._name = name.encode()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.received: list[bytes] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            while message := connection.recv(1 << 16):
                self.received.append(message)
                connection.sendall(self._name + message)


@pytest.fixture
def echo() -> Iterator[Echo]:
    echo = Echo("a")
    yield echo
    echo.close()


@pytest.fixture
def loop() -> Iterator[ProxyLoop]:
    loop = ProxyLoop()
    loop.start()
    yield loop
    loop.stop()


@pytest.fixture
def proxy(loop: ProxyLoop, echo: Echo) -> Iterator[TcpProxy]:
    proxy = TcpProxy(loop, [echo.port])
    proxy.start()
    yield proxy
    proxy.stop()


@contextlib.contextmanager
def client(proxy: TcpProxy) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=5.0) as connection:
        yield connection


def ask(connection: socket.socket, message: bytes) -> bytes:
    connection.sendall(message)
    return connection.recv(1 << 16)


def hears_nothing(connection: socket.socket, seconds: float = 0.2) -> bool:
    connection.settimeout(seconds)
    try:
        return not connection.recv(1)
    except TimeoutError:
        return True


def test_what_is_whole_passes(proxy: TcpProxy) -> None:
    with client(proxy) as connection:
        assert ask(connection, b"hello") == b"ahello"


def test_each_chunk_is_late_by_the_latency_both_ways(proxy: TcpProxy) -> None:
    proxy.line.latency_s = 0.1
    with client(proxy) as connection:
        begun_s = time.monotonic()
        assert ask(connection, b"hello") == b"ahello"
        assert time.monotonic() - begun_s >= 0.2


def test_no_more_bytes_pass_than_are_let_through(proxy: TcpProxy) -> None:
    proxy.line.bytes_per_s = 10_000
    with client(proxy) as connection:
        begun_s = time.monotonic()
        assert len(ask(connection, b"x" * 1000)) == 1001
        assert time.monotonic() - begun_s >= 0.2


def test_a_reset_reaches_the_client(proxy: TcpProxy) -> None:
    with client(proxy) as connection:
        ask(connection, b"hello")
        proxy.reset_all()
        with pytest.raises(ConnectionResetError):
            connection.recv(1)


def test_a_server_that_vanishes_acknowledges_nothing(proxy: TcpProxy) -> None:
    with client(proxy) as connection:
        ask(connection, b"hello")
        proxy.vanish()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 300)
        connection.sendall(b"lost")
        connection.settimeout(5.0)
        with pytest.raises(TimeoutError) as told:
            connection.recv(1)
        assert told.value.errno == errno.ETIMEDOUT
        with client(proxy) as other:
            assert ask(other, b"new") == b"anew"


def test_of_a_half_open_connection_the_client_is_not_told(proxy: TcpProxy, echo: Echo) -> None:
    with client(proxy) as connection:
        ask(connection, b"hello")
        proxy.lose_all()
        connection.sendall(b"lost")
        assert hears_nothing(connection)
        with client(proxy) as other:
            assert ask(other, b"new") == b"anew"
    assert b"lost" not in b"".join(echo.received)


def test_through_a_black_hole_nothing_comes_and_nothing_comes_later(proxy: TcpProxy, echo: Echo) -> None:
    with client(proxy) as before, contextlib.ExitStack() as stack:
        ask(before, b"hello")
        proxy.blackhole()
        during = stack.enter_context(client(proxy))
        for connection in (before, during):
            connection.sendall(b"lost")
            assert hears_nothing(connection)
        proxy.heal()
        before.settimeout(0.2)
        during.settimeout(0.2)
        assert hears_nothing(before)
        with client(proxy) as after:
            assert ask(after, b"back") == b"aback"
    assert b"lost" not in b"".join(echo.received)


def test_who_is_refused_is_told(proxy: TcpProxy) -> None:
    proxy.line.is_refusing = True
    with pytest.raises(ConnectionError), client(proxy) as connection:
        ask(connection, b"hello")


def test_a_byte_is_changed_and_none_is_lost(proxy: TcpProxy) -> None:
    proxy.line.corrupt_share = 1.0
    with client(proxy) as connection:
        heard = ask(connection, b"hello")
    assert len(heard) == 6
    assert heard != b"ahello"


def test_connections_take_turns_and_pass_over_who_has_gone(loop: ProxyLoop, echo: Echo) -> None:
    other = Echo("b")
    proxy = TcpProxy(loop, [echo.port, other.port])
    proxy.start()

    def heard() -> set[bytes]:
        found = set()
        for _ in range(2):
            with client(proxy) as connection:
                found.add(ask(connection, b"!"))
        return found

    assert heard() == {b"a!", b"b!"}
    other.close()
    wait_until(lambda: heard() == {b"a!"}, 5.0, "the end of one upstream")
    proxy.stop()
