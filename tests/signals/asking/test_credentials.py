"""Being let in by a real Prometheus behind TLS, client certificates and a user's password."""

from __future__ import annotations

import base64
import logging
import os
import ssl
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler.app.prometheus_servers import make_clients
from scheduler.model.identity import NodeIdentity
from scheduler.model.rules import ByKind, RuleSet, Signal
from scheduler.settings.prometheus import PrometheusSettings
from scheduler.signals.answers import SignalAnswer
from scheduler.signals.asking.client import ClientSettings, PrometheusClient
from scheduler.signals.asking.credentials import Access
from scheduler.signals.asking.query_errors import (
    CertificateRefused,
    CredentialsUnreadable,
    QueryError,
    UnauthorizedError,
)
from scheduler.signals.asking.servers import Servers
from tests.signals.asking.scripted import NoObserver
from tests.support.pki import CertificateAuthority
from tests.support.plugin import StartPrometheus
from tests.support.prometheus import PrometheusServer, WebAccess
from tests.support.waiting import wait_until

USER, PASSWORD = "vane", "open: sésame 1"
# bcrypt of PASSWORD, with the lowest cost.
HASHED = "$2b$04$abcdefghijklmnopqrstuu9Jo9/SsBtYLtpwBzj.xPJkZKtZ8iQ.6"


@dataclass
class Guarded:
    """A Prometheus behind a guard, and what opens it."""

    server: PrometheusServer
    access: Access
    folder: Path
    authority: CertificateAuthority

    def client(self, **changes: Any) -> PrometheusClient:
        return PrometheusClient(ClientSettings(self.server.url, replace(self.access, **changes)))


@pytest.fixture
def guarded(tmp_path: Path, start_prometheus: StartPrometheus) -> Guarded:
    """A Prometheus that wants TLS, a certificate of the client and a password."""
    authority = CertificateAuthority()
    (tmp_path / "ca.crt").write_bytes(authority.pem)
    for name, (certificate, key) in {
        "server": authority.issue_server([], ["127.0.0.1"]),
        "client": authority.issue_client("vane"),
    }.items():
        (tmp_path / f"{name}.crt").write_bytes(certificate)
        (tmp_path / f"{name}.key").write_bytes(key)
    (tmp_path / "password").write_text(f"{PASSWORD}\n")
    tls = {
        "cert_file": str(tmp_path / "server.crt"),
        "key_file": str(tmp_path / "server.key"),
        "client_auth_type": "RequireAndVerifyClientCert",
        "client_ca_file": str(tmp_path / "ca.crt"),
    }
    web = tmp_path / "web.yml"
    web.write_text(yaml.safe_dump({"tls_server_config": tls, "basic_auth_users": {USER: HASHED}}))
    context = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
    context.load_cert_chain(tmp_path / "client.crt", tmp_path / "client.key")
    pair = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    server = start_prometheus(
        flags=[f"--web.config.file={web}"], web=WebAccess(context, {"Authorization": f"Basic {pair}"})
    )
    access = Access(
        ca_file=tmp_path / "ca.crt",
        username=USER,
        password_file=tmp_path / "password",
        cert_file=tmp_path / "client.crt",
        key_file=tmp_path / "client.key",
    )
    return Guarded(server, access, tmp_path, authority)


def refusal(client: PrometheusClient) -> QueryError:
    with pytest.raises(QueryError) as caught:
        client.query("vector(1)")
    assert caught.value.is_outage
    assert PASSWORD not in str(caught.value)
    return caught.value


def test_who_has_all_is_let_in_and_who_lacks_one_is_told_which(guarded: Guarded) -> None:
    assert guarded.client().query("vector(1)").series
    unknown = refusal(guarded.client(ca_file=None))
    assert isinstance(unknown, CertificateRefused)
    assert str(unknown).endswith("the server's certificate is not trusted; set caFile to its authority")
    bare = refusal(guarded.client(cert_file=None, key_file=None))
    assert isinstance(bare, CertificateRefused)
    assert "another client certificate" in str(bare)
    nobody = refusal(guarded.client(username="", password_file=None))
    assert isinstance(nobody, UnauthorizedError)
    assert "HTTP 401" in str(nobody)
    assert "requires another token, user or tenant" in str(nobody)
    assert isinstance(refusal(guarded.client(username="somebody")), UnauthorizedError)


def test_a_certificate_of_another_authority_is_refused(guarded: Guarded) -> None:
    certificate, key = CertificateAuthority().issue_client("vane")
    (guarded.folder / "client.crt").write_bytes(certificate)
    (guarded.folder / "client.key").write_bytes(key)
    assert isinstance(refusal(guarded.client()), CertificateRefused)


def test_a_new_password_is_read_at_once_after_a_refusal(guarded: Guarded) -> None:
    path = guarded.folder / "password"
    path.write_text("wrong")
    client = guarded.client()
    assert isinstance(refusal(client), UnauthorizedError)
    path.write_text(PASSWORD)
    assert client.query("vector(1)").series


def test_a_certificate_is_read_again_when_its_file_changes(guarded: Guarded) -> None:
    client = guarded.client()
    assert client.query("vector(1)").series
    good = {name: (guarded.folder / name).read_bytes() for name in ("client.crt", "client.key")}
    foreign = dict(zip(good, CertificateAuthority().issue_client("vane"), strict=True))
    swap(guarded.folder, foreign)
    assert isinstance(refusal(client), CertificateRefused), "the kept connection had the old one"
    swap(guarded.folder, good)
    assert client.query("vector(1)").series


@pytest.mark.parametrize("name", ["client.crt", "client.key", "ca.crt", "password"])
def test_a_missing_file_is_named(guarded: Guarded, name: str) -> None:
    path = guarded.folder / name
    path.unlink()
    found = refusal(guarded.client())
    assert isinstance(found, CredentialsUnreadable)
    assert f"{path} cannot be read: No such file or directory" in str(found)


def test_a_key_of_another_certificate_is_refused(guarded: Guarded) -> None:
    _, key = guarded.authority.issue_client("vane")
    (guarded.folder / "client.key").write_bytes(key)
    assert isinstance(refusal(guarded.client()), CertificateRefused)


def swap(folder: Path, contents: dict[str, bytes]) -> None:
    """Write files anew, as a mounted Secret is: each by a name of its own, then moved into place."""
    for name, content in contents.items():
        (folder / "new").write_bytes(content)
        os.replace(folder / "new", folder / name)


def test_settings_reach_the_server_and_a_wrong_password_is_said_once_with_signal_and_server(
    guarded: Guarded, start_prometheus: StartPrometheus, caplog: pytest.LogCaptureFixture
) -> None:
    near = start_prometheus()
    access = guarded.access
    far = {
        "name": "far",
        "url": guarded.server.url,
        "username": access.username,
        "passwordFile": access.password_file,
        "caFile": access.ca_file,
        "certFile": access.cert_file,
        "keyFile": access.key_file,
    }
    (guarded.folder / "password").write_text("wrong")
    settings = PrometheusSettings.model_validate({"url": near.url, "servers": [far]})
    assert "wrong" not in repr(settings)
    published: list[SignalAnswer] = []
    servers = Servers(make_clients(settings), published.append, NoObserver())

    def of(name: str) -> list[SignalAnswer]:
        return [answer for answer in published if answer.signal == name]

    one = Signal("one", "vector(1)", by=ByKind.CLUSTER, interval_s=0.2, max_age_s=5.0)
    two = replace(one, name="two", server="far")
    try:
        with caplog.at_level(logging.INFO, "scheduler.signals"):
            servers.set_identity(NodeIdentity())
            servers.swap(RuleSet({"one": one, "two": two}, (), 1), lambda _: None)
            wait_until(lambda: len(of("one")) > 5 and len(of("two")) >= 3, 10.0, "both to have been asked")
            assert all(answer.value == 1.0 for answer in of("one")), "the other server does not matter"
            assert {answer.error_kind for answer in of("two")} == {"unauthorized"}
            # As the kubelet does: whoever reads finds the old one or the new one, never half of it.
            (guarded.folder / "new").write_text(PASSWORD)
            (guarded.folder / "new").replace(guarded.folder / "password")
            wait_until(lambda: of("two")[-1].value == 1.0, 10.0, "the right password")
        said = [record for record in caplog.records if getattr(record, "signal", "") == "two"]
        complaints = [record for record in said if record.levelno == logging.WARNING]
        assert len(complaints) == 1
        assert complaints[0].getMessage() == "signal two of Prometheus far: no answer (unauthorized)"
        assert all(word not in caplog.text for word in (PASSWORD, "wrong"))
        outage = [record.getMessage() for record in caplog.records if "trying again" in record.getMessage()]
        assert outage == ["Prometheus far cannot be queried; trying again less and less often"]
    finally:
        servers.stop()
