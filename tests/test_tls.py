"""Whom Vane trusts, wherever it connects to a server: the API server, Prometheus, a webhook, another Vane."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from cryptography.hazmat.primitives import serialization

from scheduler.cli.top_client import ServerAccess, SignalsReader, TopError
from scheduler.framework.instructions import Receiver
from scheduler.kube.config import Connection
from scheduler.kube.credentials import Credentials, Token
from scheduler.kube.endpoint import Endpoint, client_tls
from scheduler.kube.transport import Transport, TransportError
from scheduler.serve.poster import Poster
from scheduler.signals.asking.client import ClientSettings, PrometheusClient
from scheduler.signals.asking.credentials import Access
from scheduler.signals.asking.query_errors import CertificateRefused
from scheduler.tls import ClientTls, TlsFiles, TlsFilesError
from tests.cli.top_page import PAGE
from tests.kube.binder.running_binder import BIND_PATH, EVENTS_PATH, Running
from tests.kube.fake_api import FakeApi, fake_api, replies
from tests.support.pki import CertificateAuthority, server_context

PACKAGE: Final = Path(__file__).parents[1] / "scheduler"

Ask = Callable[[], bool]
"""Asks a server once; False where its certificate is not trusted."""

Asking = Callable[[str, Path | None], contextlib.AbstractContextManager[Ask]]
"""A part of Vane that asks the server at a URL, whose authority is in a file, None for those of the system."""


@contextlib.contextmanager
def serving(folder: Path, authority: CertificateAuthority) -> Iterator[FakeApi]:
    """A server that has an answer for each part of Vane; `ca.crt` is in the folder."""
    vector = {"resultType": "vector", "result": [{"metric": {}, "value": [1.0, "1"]}]}
    answers = {
        ("GET", "/version"): {},
        ("POST", BIND_PATH): {"kind": "Status", "status": "Success"},
        ("POST", EVENTS_PATH): {},
        ("POST", "/api/v1/query"): {"status": "success", "data": vector},
        ("POST", "/hook"): {},
        ("GET", "/signals"): PAGE,
    }
    with fake_api(server_context(authority, folder)) as server:
        for (method, path), answer in answers.items():
            # So that each is on a connection of its own. Only webhooks are left to close theirs, which waits for that.
            headers = {} if path == "/hook" else {"Connection": "close"}
            server.script(method, path, replies(200, answer, headers))
        yield server


def text(path: Path | None) -> str | None:
    return None if path is None else str(path)


def connection_to(url: str, ca: Path | None) -> Connection:
    endpoint = Endpoint(host=url, ca_file=text(ca))
    return Connection(endpoint, Credentials(lambda: Token("Bearer A")), client_tls(endpoint), "test")


@contextlib.contextmanager
def reading_the_api_server(url: str, ca: Path | None) -> Iterator[Ask]:
    transport = Transport(connection_to(url, ca))

    def ask() -> bool:
        try:
            return transport.get("/version") == b"{}"
        except TransportError as error:
            if "certificate verify failed" not in str(error):
                raise
            return False

    yield ask
    transport.close()


@contextlib.contextmanager
def binding(url: str, ca: Path | None) -> Iterator[Ask]:
    running = Running(connection_to(url, ca))
    running.lead_for(60.0)
    try:
        yield lambda: running.bind().outcome == "bound"
    finally:
        running.binder.stop()


@contextlib.contextmanager
def asking_prometheus(url: str, ca: Path | None) -> Iterator[Ask]:
    client = PrometheusClient(ClientSettings(url, Access(ca_file=ca)))

    def ask() -> bool:
        try:
            return bool(client.query("up").series)
        except CertificateRefused:
            return False

    yield ask
    client.close()


@contextlib.contextmanager
def posting_events(url: str, ca: Path | None) -> Iterator[Ask]:
    async def made() -> Poster:
        return Poster(timeout_s=10.0)

    with asyncio.Runner() as runner:
        poster = runner.run(made())

        def ask() -> bool:
            failure = runner.run(poster.post(Receiver(f"{url}/hook", ca_file=text(ca)), b"{}"))
            assert failure is None or "certificate verify failed" in failure.text, failure
            return failure is None

        try:
            yield ask
        finally:
            runner.run(poster.close())


@contextlib.contextmanager
def reading_signals(url: str, ca: Path | None) -> Iterator[Ask]:
    reader = SignalsReader(ServerAccess(url, ca_file=ca))

    def ask() -> bool:
        try:
            return bool(reader.read())
        except TopError as error:
            if "is not trusted" not in str(error):
                raise
            return False

    yield ask


every_part = pytest.mark.parametrize(
    "asking", [reading_the_api_server, binding, asking_prometheus, posting_events, reading_signals]
)


@every_part
def test_an_authority_without_key_identifiers_is_as_good_as_any(tmp_path: Path, asking: Asking) -> None:
    """As that of an EKS cluster."""
    authority = CertificateAuthority(key_identifiers=False)
    with serving(tmp_path, authority) as server, asking(server.host, tmp_path / "ca.crt") as ask:
        assert ask()


@every_part
def test_a_new_authority_is_trusted_without_a_restart_and_the_old_one_no_more(tmp_path: Path, asking: Asking) -> None:
    ca = tmp_path / "ca.crt"
    (tmp_path / "new").mkdir()
    new = CertificateAuthority()
    with serving(tmp_path, CertificateAuthority()) as server, asking(server.host, ca) as ask:
        assert ask()
        ca.write_bytes(b"half of it")  # as between the two steps of a careless rotation
        assert ask(), "what was read before stays in force"
        ca.write_bytes(new.pem)
        assert not ask()
        server.context = server_context(new, tmp_path / "new")
        assert ask()


@every_part
def test_the_authorities_of_the_system_are_those_of_its_own_store(
    tmp_path: Path, asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.crt"))
    with serving(tmp_path, CertificateAuthority()) as server, asking(server.host, None) as ask:
        assert ask()


def test_the_bundle_of_requests_stands_for_the_system_where_prometheus_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other.crt"
    other.write_bytes(CertificateAuthority().pem)
    with serving(tmp_path, CertificateAuthority()) as server:
        ours = tmp_path / "ca.crt"
        for bundle, system, is_trusted in ((ours, other, True), (other, ours, False)):
            monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(bundle))
            monkeypatch.setenv("SSL_CERT_FILE", str(system))
            with asking_prometheus(server.host, None) as ask:
                assert ask() is is_trusted
        with asking_prometheus(server.host, ours) as ask:
            assert ask(), "a file that is named precedes both"


@pytest.fixture
def files(tmp_path: Path) -> TlsFiles:
    """Those of a client, in the folder of the test."""
    authority = CertificateAuthority()
    (tmp_path / "ca.crt").write_bytes(authority.pem)
    certificate, key = authority.issue_client("vane")
    (tmp_path / "c.crt").write_bytes(certificate)
    (tmp_path / "c.key").write_bytes(key)
    return TlsFiles(*(str(tmp_path / name) for name in ("ca.crt", "c.crt", "c.key")))


def test_files_that_stay_are_read_once(files: TlsFiles) -> None:
    tls = ClientTls(files)
    assert tls.context() is tls.context()


def test_of_two_files_that_change_one_after_the_other_none_is_missed(
    files: TlsFiles, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tls = ClientTls(files)
    before = tls.context()
    certificate, key = CertificateAuthority().issue_client("vane")
    (tmp_path / "c.crt").write_bytes(certificate)
    for _ in range(3):
        assert tls.context() is before, "with the key of another it is of no use"
    assert len(caplog.records) == 1
    assert f"client certificate {files.cert} with key {files.key} cannot be used" in caplog.text
    assert "what was read before stays in force" in caplog.text
    (tmp_path / "c.key").write_bytes(key)
    assert tls.context() is not before


@pytest.mark.parametrize("name", ["ca.crt", "c.crt", "c.key"])
def test_a_file_that_goes_and_comes_again_ends_nothing(
    files: TlsFiles, tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    tls = ClientTls(files)
    before = tls.context()
    (tmp_path / name).rename(tmp_path / "away")
    assert tls.context() is tls.context() is before
    said = f"{named(name)} {tmp_path / name} cannot be read: No such file or directory"
    assert [record.message for record in caplog.records] == [f"{said}; what was read before stays in force"]
    (tmp_path / "away").rename(tmp_path / name)
    assert tls.context() is not before


@pytest.mark.parametrize("name", ["ca.crt", "c.crt", "c.key"])
@pytest.mark.parametrize("content", [None, b"", b"garbage"], ids=["missing", "empty", "garbage"])
def test_a_file_that_cannot_be_used_is_named(files: TlsFiles, tmp_path: Path, name: str, content: bytes | None) -> None:
    if content is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(TlsFilesError) as caught:
        ClientTls(files)
    assert str(tmp_path / name) in str(caught.value)
    assert ("cannot be read" if content is None else "cannot be used") in str(caught.value)


def named(name: str) -> str:
    return {"ca.crt": "certificate authority", "c.crt": "client certificate", "c.key": "client key"}[name]


def test_an_encrypted_key_is_refused_without_asking_at_the_terminal(files: TlsFiles, tmp_path: Path) -> None:
    key = serialization.load_pem_private_key((tmp_path / "c.key").read_bytes(), None)
    locked = serialization.BestAvailableEncryption(b"password")
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    (tmp_path / "c.key").write_bytes(key.private_bytes(pem, pkcs8, locked))
    with pytest.raises(TlsFilesError, match="the key is encrypted"):
        ClientTls(files)


def test_another_certificate_that_cannot_be_used_leaves_the_old_one(files: TlsFiles, tmp_path: Path) -> None:
    tls = ClientTls(files)
    before = tls.context()
    with pytest.raises(TlsFilesError):
        tls.present(str(tmp_path / "none"), files.key)
    assert tls.context() is before
    tls.present(files.cert, files.key)
    assert tls.context() is before
    (tmp_path / "again.crt").write_bytes((tmp_path / "c.crt").read_bytes())
    tls.present(str(tmp_path / "again.crt"), files.key)
    assert tls.context() is not before


def test_contexts_of_clients_are_made_in_one_place() -> None:
    made = re.compile(r"create_\w*context|SSLContext\(|PROTOCOL_TLS_CLIENT|ca_certs|\bssl=True")
    found = {str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py") if made.search(path.read_text())}
    assert found == {"tls.py", "serve/tls.py"}, "the second is the server's"
