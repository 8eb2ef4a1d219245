from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from scheduler.kube.binder.connections import IDLE_S, ConnectionPool
from scheduler.kube.binder.response import BrokenError, Response, ResponseReader
from scheduler.kube.endpoint import Endpoint, socket_options
from scheduler.tls import ClientTls, TlsFiles
from tests.support import pki

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
REQUEST = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"


def test_what_a_vanished_peer_left_unanswered_is_not_sent_again_over_another_of_its_connections() -> None:
    lost_after_s = dict((option, value) for _, option, value in socket_options())[socket.TCP_USER_TIMEOUT] / 1000
    assert lost_after_s >= IDLE_S


@pytest.mark.parametrize(
    ("raw", "response", "keeps_open"),
    [
        pytest.param(OK, Response(200, b"hi", None), True, id="length"),
        pytest.param(OK.replace(b"Content-Length", b"content-length"), Response(200, b"hi", None), True, id="case"),
        pytest.param(
            b"HTTP/1.1 201 Created\r\nTransfer-Encoding: Chunked\r\n\r\n2\r\nHi\r\nA;x=1\r\n0123456789\r\n0\r\n\r\n",
            Response(201, b"Hi0123456789", None),
            True,
            id="chunks",
        ),
        pytest.param(b"HTTP/1.1 204 No Content\r\n\r\n", Response(204, b"", None), True, id="no content"),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n" + OK, Response(200, b"hi", None), True, id="interim"),
        pytest.param(
            b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 3\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            Response(429, b"", "3"),
            False,
            id="close",
        ),
        pytest.param(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", Response(200, b"hi", None), False, id="1.0"),
    ],
)
@pytest.mark.parametrize("step", [1, 7, 1_000])
def test_a_response_may_come_in_any_pieces(raw: bytes, response: Response, keeps_open: bool, step: int) -> None:
    reader = ResponseReader()
    pieces = [raw[i : i + step] for i in range(0, len(raw), step)]
    assert [reader.feed(piece) for piece in pieces[:-1]] == [None] * (len(pieces) - 1)
    assert reader.feed(pieces[-1]) == response
    assert reader.keeps_open == keeps_open


def test_a_response_without_a_length_ends_with_the_connection() -> None:
    reader = ResponseReader()
    assert reader.feed(b"HTTP/1.1 502 Bad Gateway\r\n\r\n<html>") is None
    assert reader.ended() == Response(502, b"<html>", None)


@pytest.mark.parametrize("raw", [b"", b"HTTP/1.1 200 OK\r\n", OK[:-1], b"HTTP/1.1 200 OK\r\n\r\n"[:-1]])
def test_half_a_response_is_none(raw: bytes) -> None:
    reader = ResponseReader()
    assert reader.feed(raw) is None
    assert reader.ended() is None


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"SSH-2.0-OpenSSH\r\n\r\n", id="not HTTP"),
        pytest.param(b"HTTP/1.1 abc\r\n\r\n", id="no code"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", id="length"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", id="chunk"),
        pytest.param(OK + b"more", id="two at once"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX: " + b"a" * 70_000, id="endless"),
    ],
)
def test_what_is_no_response_breaks_the_connection(raw: bytes) -> None:
    with pytest.raises(BrokenError):
        ResponseReader().feed(raw)


Serve = Callable[[socket.socket], None]


@contextmanager
def serving(serve: Serve) -> Iterator[int]:
    """Hand each connection to `serve` in a thread of its own; yields the port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=handle, args=(connection,), daemon=True).start()

        def handle(connection: socket.socket) -> None:
            with connection:
                try:
                    serve(connection)
                except OSError:
                    pass

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def answering(seen: list[bytes]) -> Serve:
    """Answer each request, noting the connection it came by."""

    def serve(connection: socket.socket) -> None:
        while request := connection.recv(1 << 16):
            seen.append(str(connection.getpeername()[1]).encode() + b" " + request)
            connection.sendall(OK)

    return serve


async def ask(connections: ConnectionPool) -> Response:
    connection = await connections.take(5.0)
    try:
        return await connection.exchange(REQUEST, 5.0)
    finally:
        connections.give_back(connection)


def test_a_connection_is_kept_until_it_is_retired() -> None:
    seen: list[bytes] = []

    async def run(port: int) -> None:
        connections = ConnectionPool(Endpoint(host=f"http://127.0.0.1:{port}"), None)
        for _ in range(3):
            assert (await ask(connections)).body == b"hi"
        connections.retire()
        await ask(connections)
        connections.retire()

    with serving(answering(seen)) as port:
        asyncio.run(run(port))
    ports = [line.split()[0] for line in seen]
    assert ports[0] == ports[1] == ports[2] != ports[3]


def test_one_that_the_server_has_closed_is_not_used_again() -> None:
    closed = threading.Event()

    def serve_once(connection: socket.socket) -> None:
        connection.recv(1 << 16)
        connection.sendall(OK)
        connection.shutdown(socket.SHUT_RDWR)
        closed.set()

    async def run(port: int) -> None:
        connections = ConnectionPool(Endpoint(host=f"http://127.0.0.1:{port}"), None)
        for _ in range(3):
            assert (await ask(connections)).body == b"hi"
            assert await asyncio.to_thread(closed.wait, 30.0)
            closed.clear()
            await asyncio.sleep(0.05)

    with serving(serve_once) as port:
        asyncio.run(run(port))


def test_a_response_that_does_not_come_closes_the_connection() -> None:
    ended = threading.Event()

    def hang(connection: socket.socket) -> None:
        connection.recv(1 << 16)
        try:
            connection.recv(1)  # ends with the reset
        finally:
            ended.set()

    async def run(port: int) -> None:
        connections = ConnectionPool(Endpoint(host=f"http://127.0.0.1:{port}"), None)
        connection = await connections.take(5.0)
        with pytest.raises(TimeoutError):
            await connection.exchange(REQUEST, 0.05)
        assert not connection.is_open
        connections.give_back(connection)
        await asyncio.sleep(0.05)

    with serving(hang) as port:
        asyncio.run(run(port))
        assert ended.wait(30.0)


def test_a_new_connection_in_place_of_stale_ones_has_its_time_limit(tmp_path: Path) -> None:
    tls, server_side = tls_of(pki.CertificateAuthority(), tmp_path)
    seen: list[bytes] = []
    n_connections = 0

    def answer_the_first(connection: socket.socket) -> None:
        nonlocal n_connections
        n_connections += 1
        if n_connections > 1:
            connection.recv(1 << 16)
            connection.recv(1 << 16)  # no word of the handshake: ends with the reset
            return
        with server_side.wrap_socket(connection, server_side=True) as wrapped:
            answering(seen)(wrapped)

    async def run(port: int) -> None:
        endpoint = Endpoint(host=f"https://127.0.0.1:{port}", server_name="api.test")
        connections = ConnectionPool(endpoint, tls)
        kept = await connections.take(5.0)
        await kept.exchange(REQUEST, 5.0)
        connections.give_back(kept)
        kept.idle_since_s -= IDLE_S
        taking = asyncio.create_task(connections.take(0.05))
        await asyncio.wait([taking], timeout=10.0)
        assert taking.done()
        assert isinstance(taking.exception(), TimeoutError)
        assert not kept.is_open

    with serving(answer_the_first) as port:
        asyncio.run(run(port))
    assert n_connections == 2


def tls_of(authority: pki.CertificateAuthority, folder: Path) -> tuple[ClientTls, ssl.SSLContext]:
    """Return what a client and a server named api.test connect with."""
    certificate, key = authority.issue_server(["api.test"], [])
    for name, content in (("ca", authority.pem), ("crt", certificate), ("key", key)):
        (folder / name).write_bytes(content)
    server_side = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server_side.load_cert_chain(folder / "crt", folder / "key")
    return ClientTls(TlsFiles(str(folder / "ca"))), server_side


def pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(1 << 16):
            target.sendall(data)
    except OSError:
        pass


def test_a_proxy_opens_a_tunnel_for_tls(tmp_path: Path) -> None:
    tls, server_side = tls_of(pki.CertificateAuthority(), tmp_path)
    seen: list[bytes] = []
    asked: list[bytes] = []

    def serve_tls(connection: socket.socket) -> None:
        with server_side.wrap_socket(connection, server_side=True) as wrapped:
            answering(seen)(wrapped)

    with serving(serve_tls) as server:

        def proxy(connection: socket.socket) -> None:
            asked.append(connection.recv(1 << 16))
            with socket.create_connection(("127.0.0.1", server)) as further:
                connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                threading.Thread(target=pump, args=(further, connection), daemon=True).start()
                pump(connection, further)

        async def run(port: int) -> Response:
            endpoint = Endpoint(host="https://api.test", proxy=f"http://us%65r:pw@127.0.0.1:{port}")
            connections = ConnectionPool(endpoint, tls)
            response = await ask(connections)
            connections.retire()
            return response

        with serving(proxy) as port:
            assert asyncio.run(run(port)).body == b"hi"
    assert asked[0].startswith(b"CONNECT api.test:443 HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic dXNlcjpwdw==\r\n" in asked[0]
    assert seen[0].endswith(REQUEST)


def test_a_proxy_may_refuse() -> None:
    def refuse(connection: socket.socket) -> None:
        connection.recv(1 << 16)
        connection.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 4\r\n\r\nsorry")

    async def run(port: int) -> None:
        connections = ConnectionPool(Endpoint(host="http://api.test", proxy=f"http://127.0.0.1:{port}"), None)
        with pytest.raises(BrokenError):
            await connections.take(5.0)

    with serving(refuse) as port:
        asyncio.run(run(port))
