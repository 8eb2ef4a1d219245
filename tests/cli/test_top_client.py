"""`vane top` against a real HTTPS server: whom it trusts, and what it says where there is no page."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler.cli.top_client import is_loopback
from scheduler.serve.http import PageServer
from scheduler.settings.settings import ServingSettings
from tests.cli.top_page import PAGE, Top
from tests.serve.source import Source
from tests.serve.test_access import ScriptedReviews
from tests.support.pki import CertificateAuthority
from tests.support.ports import free_port, own_address


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("http://127.0.0.1:1", "--url: must be https and a host, got 'http://127.0.0.1:1'"),
        ("https://user@127.0.0.1:1", "--url: must be https and a host"),
        ("https://", "--url: must be https and a host"),
        ("https://127.0.0.1:x", "--url 'https://127.0.0.1:x'"),
        ("https://127.0.0.1:1", "nothing listens at https://127.0.0.1:1. Is `vane run` up there"),
    ],
)
def test_an_address_without_a_vane_is_told(url: str, problem: str) -> None:
    top = Top(url)
    assert top() == 1
    assert problem in top.err


def test_a_page_of_somebody_else_is_told(top: Top, source: Source) -> None:
    source.signals_page = b'{"status":"ok"}'
    assert top() == 1
    assert "is not the page of Vane" in top.err
    source.signals_page = b"<html>"
    assert top() == 1
    assert "is not JSON" in top.err
    top.url += "/elsewhere"
    assert top() == 1
    assert "has no page /signals: HTTP 404" in top.err


def test_a_server_without_tls_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        top = Top(f"https://127.0.0.1:{listening.getsockname()[1]}")
        assert top() == 1
        thread.join()
    assert "does not speak TLS as expected" in top.err


@pytest.fixture
def signed(tmp_path: Path, source: Source) -> Iterator[tuple[PageServer, Path]]:
    """A server with a certificate of an authority, and the file of that."""
    authority = CertificateAuthority()
    certificate, key = authority.issue_server(["localhost"], ["127.0.0.1"])
    files = [tmp_path / name for name in ("ca.crt", "tls.crt", "tls.key")]
    for file, content in zip(files, (authority.pem, certificate, key), strict=True):
        file.write_bytes(content)
    settings = ServingSettings(secure_port=free_port(), tls_cert_file=files[1], tls_private_key_file=files[2])
    server = PageServer(settings, source)
    server.start()
    yield server, files[0]
    server.stop()


def test_a_certificate_of_an_unknown_authority_is_not_taken(signed: tuple[PageServer, Path], source: Source) -> None:
    source.signals_page = json.dumps(PAGE).encode()
    server, authority = signed
    top = Top(server.url)
    assert top() == 1
    assert f"the certificate of {server.url} is not trusted" in top.err
    assert "--ca-file" in top.err
    assert source.signal_queries == []

    assert top("--ca-file", str(authority)) == 0
    assert top.err == ""
    assert top("--insecure-skip-tls-verify") == 0
    assert top.err == "vane top: the certificate is not verified\n"


def test_a_token_is_not_sent_to_whoever_has_signed_for_himself(top: Top, source: Source, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret\n")
    assert top("--token-file", str(token)) == 1
    assert "a token is not sent to a server that is not trusted" in top.err
    assert source.signal_queries == []
    assert top("--token-file", str(token), "--insecure-skip-tls-verify") == 0


@pytest.mark.parametrize("content", [None, "", "two words", "\x00"])
def test_a_file_without_a_token_is_told(top: Top, tmp_path: Path, content: str | None) -> None:
    token = tmp_path / "token"
    if content is not None:
        token.write_text(content)
    assert top("--token-file", str(token), "--insecure-skip-tls-verify") == 1
    assert f"--token-file {token}" in top.err


def test_a_server_elsewhere_wants_a_token_that_may_read(tmp_path: Path, source: Source) -> None:
    address = own_address()
    server = PageServer(ServingSettings(bind_address=address, secure_port=free_port()), source, ScriptedReviews())
    server.start()
    try:
        top = Top(server.url)
        assert top() == 1
        assert "is not trusted: self-signed" in top.err
        assert top("--insecure-skip-tls-verify") == 1
        assert "requires a token" in top.err
        assert "--token-file" in top.err
        token = tmp_path / "token"
        token.write_text("nobody")
        assert top("--insecure-skip-tls-verify", "--token-file", str(token)) == 1
        assert "refuses this token" in top.err
        token.write_text("scraper")
        assert top("--insecure-skip-tls-verify", "--token-file", str(token)) == 1
        assert "prometheus may not get /signals" in top.err
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("host", "is_ours"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True), ("10.0.0.1", False), ("x.y", False)],
)
def test_loopback_is_this_machine(host: str, is_ours: bool) -> None:
    assert is_loopback(host) is is_ours
