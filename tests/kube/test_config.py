from __future__ import annotations

import socket
import ssl
import stat
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler.errors import ConfigError
from scheduler.kube.config import Connection, ServiceAccount, load_connection
from scheduler.kube.credentials import Credentials, CredentialsError, Token, token_from_file
from scheduler.kube.endpoint import socket_options
from scheduler.kube.transport import ApiError, Transport, TransportError
from tests.kube.conftest import connection_to
from tests.kube.fake_api import FakeApi, hangs, replies, status, streams
from tests.support.clocks import OwnTime
from tests.support.pki import CertificateAuthority


def write_kubeconfig(folder: Path, user: dict[str, Any], **cluster: Any) -> str:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:6443", **cluster}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [
            {"name": "first", "context": {"cluster": "c", "user": "u"}},
            {"name": "anonymous", "context": {"cluster": "c"}},
        ],
        "current-context": "first",
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return str(path)


def load(path: str | None, **options: Any) -> Connection:
    return load_connection(path, **{"environ": {}, **options})


def test_token_and_context(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path, {"token": "secret"})
    connection = load(path)
    assert connection.host == "https://127.0.0.1:6443"
    assert connection.authorization_header() == "Bearer secret"
    assert load(path, context="anonymous").authorization_header() is None
    assert load(None, environ={"KUBECONFIG": path}).authorization_header() == "Bearer secret"


def test_user_and_password(tmp_path: Path) -> None:
    header = load(write_kubeconfig(tmp_path, {"username": "a", "password": "b"})).authorization_header()
    assert header == "Basic YTpi"


def test_a_user_without_credentials_has_none(tmp_path: Path) -> None:
    assert load(write_kubeconfig(tmp_path, {})).authorization_header() is None


def test_tls_settings(tmp_path: Path) -> None:
    authority = CertificateAuthority()
    (tmp_path / "ca.crt").write_bytes(authority.pem)
    certificate, key = authority.issue_client("vane")
    (tmp_path / "c.crt").write_bytes(certificate)
    (tmp_path / "c.key").write_bytes(key)
    user = {"client-certificate": "c.crt", "client-key": "c.key"}  # relative to the kubeconfig
    tls = {"certificate-authority": "ca.crt", "tls-server-name": "kubernetes.default"}
    connection = load(write_kubeconfig(tmp_path, user, **tls))
    assert connection.endpoint.server_name == "kubernetes.default"
    assert connection.tls is not None
    context = connection.tls.context()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert len(context.get_ca_certs()) == 1
    assert connection.authorization_header() is None
    assert connection.binder_connection().endpoint.cert_file == str(tmp_path / "c.crt")


def test_unverified_tls_is_possible_and_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    connection = load(write_kubeconfig(tmp_path, {"token": "t"}, **{"insecure-skip-tls-verify": True}))
    assert connection.tls is not None
    assert connection.tls.context().verify_mode is ssl.CERT_NONE
    assert [record.message for record in caplog.records if "not verified" in record.message]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param("", "file is empty", id="empty"),
        pytest.param("a: [", "line 1", id="not YAML"),
        pytest.param("just a text", "write a kubeconfig", id="a text"),
        pytest.param("[1, 2]", "write a kubeconfig", id="a list"),
        pytest.param("clusters: []", "current-context", id="no context"),
        pytest.param("current-context: x\ncontexts: []\nclusters: []\nusers: []\n", "name x", id="unknown context"),
        pytest.param("current-context: x\ncontexts: 3\n", "write a kubeconfig", id="contexts is a number"),
        pytest.param("\x00", "write a kubeconfig", id="binary"),
    ],
)
def test_a_wrong_kubeconfig_is_one_message(tmp_path: Path, content: str, expected: str) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(content)
    with pytest.raises(ConfigError) as caught:
        load(str(path))
    message = str(caught.value)
    assert str(path) in message
    assert expected in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("user", "cluster", "expected"),
    [
        pytest.param({"token": "t"}, {"server": ""}, "write server: https://HOST:PORT", id="no server"),
        pytest.param({"token": "t"}, {"server": "host:6443"}, "has no scheme", id="no scheme"),
        pytest.param({"token": "t"}, {"certificate-authority": "nope.crt"}, "nope.crt", id="no CA file"),
        pytest.param({"token": "t"}, {"certificate-authority-data": "aGk="}, "certificate authority", id="no CA"),
        pytest.param({"token": "t"}, {"proxy-url": "socks5://x:1"}, "socks5 is not supported", id="SOCKS"),
        pytest.param({"token": "t"}, {"proxy-url": "u:pw@x:1"}, "without a scheme is not supported", id="proxy"),
        pytest.param({"token": "t"}, {"proxy-url": True}, "without a scheme is not supported", id="proxy of no text"),
        pytest.param({"exec": None}, {}, "exec plugin None gave no credentials", id="empty plugin"),
        pytest.param({"exec": "aws"}, {}, "exec plugin 'aws' gave no credentials", id="plugin of no mapping"),
        pytest.param({"token": "secret\n"}, {}, "look for a line break", id="token with a line break"),
        pytest.param({"token": "secret\N{EURO SIGN}"}, {}, "plain characters", id="token of odd characters"),
        pytest.param({"client-certificate": "c", "client-key": "k"}, {}, "does not exist", id="no certificate"),
        pytest.param({"tokenFile": "nope"}, {}, "nope", id="no token file"),
        pytest.param(
            {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/false"}},
            {},
            "'/bin/false' gave no credentials",
            id="failing plugin",
        ),
    ],
)
def test_wrong_settings_are_one_message(
    tmp_path: Path, user: dict[str, Any], cluster: dict[str, Any], expected: str
) -> None:
    with pytest.raises(ConfigError, match="kubeconfig") as caught:
        load(write_kubeconfig(tmp_path, user, **cluster))
    assert expected in str(caught.value)
    assert "secret" not in str(caught.value)


def test_no_settings_at_all(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file; write --kubeconfig"):
        load(str(tmp_path / "none"))
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(ConfigError, match="Is a directory"):
        load(str(folder))


def test_service_account_token_is_read_again(tmp_path: Path) -> None:
    token, authority = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("one\n")
    authority.write_bytes(CertificateAuthority().pem)
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    account = ServiceAccount(str(token), str(authority))
    connection = load(None, environ=environ, service_account=account)
    assert connection.host == "https://[fd00::1]:443"
    assert connection.authorization_header() == "Bearer one"
    token.write_text("two\n")
    assert connection.authorization_header() == "Bearer one"
    connection.invalidate("Bearer other")
    assert connection.authorization_header() == "Bearer one"
    connection.invalidate("Bearer one")
    assert connection.authorization_header() == "Bearer two"
    token.unlink()
    with pytest.raises(ConfigError, match="automountServiceAccountToken"):
        load(None, environ=environ, service_account=account)


def test_token_file_of_a_kubeconfig_is_read_again_and_precedes_the_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("one\n")
    connection = load(write_kubeconfig(tmp_path, {"tokenFile": "token", "token": "old"}))
    assert connection.authorization_header() == "Bearer one"
    (tmp_path / "token").write_text("two\n")
    connection.invalidate("Bearer one")
    assert connection.authorization_header() == "Bearer two"


def exec_plugin(folder: Path, lifetime: timedelta | None, now: datetime) -> dict[str, Any]:
    """A plugin that counts its runs and gives the count as token."""
    log = folder / "runs"
    expiry = "" if lifetime is None else f', "expirationTimestamp": "{(now + lifetime).isoformat()}"'
    script = folder / "plugin"
    script.write_text(
        f"#!/bin/sh\necho x >> {log}\nsleep 0.1\nn=$(wc -l < {log})\n"
        'echo \'{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": '
        f'{{"token": "\'$n\'"{expiry}}}}}\'\n'
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(script)}}


def runs(folder: Path) -> int:
    return len((folder / "runs").read_text().split())


@pytest.mark.parametrize(
    "lifetime", [pytest.param(None, id="no expiry"), pytest.param(timedelta(minutes=2), id="2 min")]
)
def test_an_exec_plugin_runs_once_for_all_threads(tmp_path: Path, lifetime: timedelta | None) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    connection = load(write_kubeconfig(tmp_path, exec_plugin(tmp_path, lifetime, now)), now=lambda: now)
    headers: list[str | None] = []

    def ask() -> None:
        headers.append(connection.authorization_header())

    def ask_all() -> None:
        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    ask_all()
    assert set(headers) == {"Bearer 1"}
    assert runs(tmp_path) == 1
    connection.invalidate("Bearer 1")
    headers.clear()
    ask_all()
    assert set(headers) == {"Bearer 2"}
    assert runs(tmp_path) == 2


def test_credentials_are_fetched_when_they_end_and_outlive_a_failing_source() -> None:
    now = [0.0]
    answers: list[Token | CredentialsError] = [Token("A", 30.0), CredentialsError("down"), Token("B", 30.0)]

    def fetch() -> Token:
        answer = answers.pop(0)
        if isinstance(answer, CredentialsError):
            raise answer
        return answer

    credentials = Credentials(fetch, lambda: now[0])
    assert credentials.token().header == "A"
    now[0] = 29.9
    assert credentials.token().header == "A"
    now[0] = 30.0
    assert credentials.token().header == "A"  # the plugin is down: the old one may still do
    now[0] = 40.0
    assert credentials.token().header == "B"
    answers.append(CredentialsError("down"))
    credentials.invalidate("B")
    with pytest.raises(CredentialsError):
        credentials.token()


def test_an_empty_token_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("\n")
    with pytest.raises(CredentialsError, match="empty"):
        token_from_file(str(tmp_path / "token"))


def test_a_silent_peer_is_noticed_within_45_s() -> None:
    with socket.socket() as sock:
        for level, option, value in socket_options():
            sock.setsockopt(level, option, value)
        idle, interval, probes = (
            sock.getsockopt(socket.IPPROTO_TCP, option)
            for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        )
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert idle + interval * probes <= 45


def test_a_server_that_hangs_is_given_up(server: FakeApi, transport: Transport) -> None:

    server.script("GET", "/x", hangs)
    took = OwnTime()
    with pytest.raises(TransportError, match="timed out"):
        transport.get("/x", timeout_s=0.2)
    assert took.seconds < 1.0


def test_api_errors_carry_the_status_object(server: FakeApi, transport: Transport) -> None:

    server.script("GET", "/x", replies(429, status(429, "TooManyRequests", "slow down"), {"Retry-After": "7"}))
    with pytest.raises(ApiError, match="429 TooManyRequests: slow down") as caught:
        transport.get("/x")
    assert caught.value.retry_after_s == 7.0


def test_requests_are_observed_and_401_is_tried_once(server: FakeApi) -> None:

    seen: list[tuple[str, str]] = []
    transport = Transport(connection_to(server.host), lambda verb, code, seconds: seen.append((verb, code)))
    server.script("GET", "/x", replies(401, status(401, "Unauthorized", "no")))
    with pytest.raises(ApiError, match="401"):
        transport.get("/x")
    assert seen == [("GET", "401"), ("GET", "401")]
    transport.close()


def test_watches_that_end_together_are_no_reason_for_warnings(
    server: FakeApi, transport: Transport, caplog: pytest.LogCaptureFixture
) -> None:
    server.script("WATCH", "/x", streams(b"{}"))
    opened = [transport.stream("/x", {"watch": "true"}, 10.0) for _ in range(40)]
    for stream in opened:
        assert list(stream.chunks()) == [b"{}"]
    assert caplog.records == []
