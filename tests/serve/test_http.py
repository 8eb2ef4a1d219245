from __future__ import annotations

import asyncio
import gzip
import ssl
import threading
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from http.client import HTTPSConnection
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from scheduler.errors import ConfigError
from scheduler.serve.answered_page import ANSWER_LIMIT_S
from scheduler.serve.health import HEALTH_KINDS, Check
from scheduler.serve.http import PageServer
from scheduler.settings.settings import ServingSettings
from tests.serve.source import Source
from tests.support.clocks import OwnTime
from tests.support.pki import CertificateAuthority
from tests.support.ports import free_port
from tests.support.waiting import wait_until


def any_certificate() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Message
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


def request(
    server: PageServer,
    path: str,
    method: str = "GET",
    context: ssl.SSLContext | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    host = server.url.removeprefix("https://")
    connection = HTTPSConnection(host, timeout=10, context=context or any_certificate())
    try:
        connection.request(method, path, headers=headers or {})
        response = connection.getresponse()
        return Answer(response.status, response.headers, response.read())
    finally:
        connection.close()


def get(server: PageServer, path: str) -> tuple[int, str]:
    answer = request(server, path)
    return answer.status, answer.text


@pytest.mark.parametrize("kind", HEALTH_KINDS)
def test_health_is_ok_in_one_word(server: PageServer, source: Source, kind: str) -> None:
    assert get(server, f"/{kind}") == (200, "ok")
    assert source.asked == [kind]


def test_verbose_health_lists_the_checks(server: PageServer, source: Source) -> None:
    source.checks = [Check("ping", True, ""), Check("watches", True, "5 of 5")]
    assert get(server, "/readyz?verbose") == (200, "[+]ping ok\n[+]watches ok\nreadyz check passed\n")


def test_failing_health_says_which_check_and_why(server: PageServer, source: Source) -> None:
    source.checks = [Check("ping", True, ""), Check("watches", False, "pods are not listed yet")]
    expected = "[+]ping ok\n[-]watches failed: pods are not listed yet\nlivez check failed\n"
    assert get(server, "/livez") == (500, expected)


def test_metrics_come_as_they_are(server: PageServer) -> None:
    response = request(server, "/metrics")
    assert response.status == 200
    assert response.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert get(server, "/metrics") == (200, "# TYPE a gauge\na 1.0\n")


def test_a_failing_source_is_a_page_and_not_the_end(server: PageServer, source: Source) -> None:
    source.page = RuntimeError("secret detail")
    assert get(server, "/metrics") == (500, "/metrics: failed with RuntimeError; see the log\n")
    source.page = asyncio.CancelledError()
    assert get(server, "/metrics")[0] == 500
    source.checks = KeyError("x")
    assert get(server, "/livez") == (500, "/livez: failed with KeyError; see the log\n")
    source.page = b"a 2\n"
    assert get(server, "/metrics") == (200, "a 2\n")


def test_a_stuck_source_is_given_up_and_hinders_no_other(server: PageServer, source: Source) -> None:
    source.page = None
    answers: list[tuple[int, str]] = []
    thread = threading.Thread(target=lambda: answers.append(get(server, "/metrics")))
    before_s, took = time.monotonic(), OwnTime()
    thread.start()
    assert get(server, "/livez") == (200, "ok")
    thread.join()
    assert answers == [(503, "/metrics: no answer in 2 s\n")]
    assert time.monotonic() - before_s >= ANSWER_LIMIT_S
    assert took.seconds < ANSWER_LIMIT_S + 2


def test_every_answer_of_a_check_is_on_the_slis_page(server: PageServer, source: Source) -> None:
    assert "{" not in get(server, "/metrics/slis")[1]
    source.checks = [Check("ping", True, ""), Check("watches", False, "not listed yet")]
    for page in ("readyz", "readyz", "livez"):
        get(server, f"/{page}")
    source.checks = [Check("ping", True, ""), Check("watches", True, "")]
    get(server, "/readyz")
    source.checks = RuntimeError("no answer")
    get(server, "/livez")

    samples = {line for line in get(server, "/metrics/slis")[1].splitlines() if not line.startswith("#")}

    assert samples == {
        'kubernetes_healthcheck{name="ping",type="readyz"} 1.0',
        'kubernetes_healthcheck{name="watches",type="readyz"} 1.0',
        'kubernetes_healthcheck{name="ping",type="livez"} 0.0',
        'kubernetes_healthcheck{name="watches",type="livez"} 0.0',
        'kubernetes_healthchecks_total{name="ping",status="success",type="readyz"} 3.0',
        'kubernetes_healthchecks_total{name="watches",status="error",type="readyz"} 2.0',
        'kubernetes_healthchecks_total{name="watches",status="success",type="readyz"} 1.0',
        'kubernetes_healthchecks_total{name="ping",status="success",type="livez"} 1.0',
        'kubernetes_healthchecks_total{name="ping",status="error",type="livez"} 1.0',
        'kubernetes_healthchecks_total{name="watches",status="error",type="livez"} 2.0',
    }


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_a_page_in_pieces_arrives_whole(server: PageServer, source: Source, encoding: str) -> None:
    source.pieces = [b"# TYPE a gauge\n", b"a 1.0\n" * 100_000, b"b 2.0\n"]
    response = request(server, "/metrics/resources", headers={"Accept-Encoding": encoding})
    assert response.headers.get("Content-Encoding", "identity") == encoding
    body = gzip.decompress(response.body) if encoding == "gzip" else response.body
    assert body == b"".join(source.pieces)
    assert response.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert request(server, "/metrics/resources", "HEAD").status == 200


def test_other_pages_and_methods_are_refused_clearly(server: PageServer) -> None:
    assert get(server, "/nothing?x=<b>") == (
        404,
        "no such page. Pages: /decisions /healthz /livez /metrics /metrics/resources /metrics/slis /readyz /signals\n",
    )
    response = request(server, "/livez", "POST")
    assert (response.status, response.headers["Allow"]) == (405, "GET, HEAD")
    assert response.text == "/livez: POST is not allowed here. Use GET, HEAD\n"
    assert request(server, "/metrics", "POST").status == 401
    assert request(server, "/livez", "HEAD").status == 200


def test_answers_are_not_stored_and_name_no_software(server: PageServer) -> None:
    headers = request(server, "/livez").headers
    assert headers["Cache-Control"] == "no-cache, private"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Server"] == "vane"


def test_plain_http_is_not_answered(server: PageServer) -> None:
    with pytest.raises(OSError, match=r"."):
        urllib.request.urlopen(server.url.replace("https", "http") + "/livez", timeout=5)


def test_old_tls_is_refused(server: PageServer) -> None:
    context = any_certificate()
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.minimum_version = ssl.TLSVersion.TLSv1_1
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(ssl.SSLError):
        request(server, "/livez", context=context)
    context = any_certificate()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    assert request(server, "/livez", context=context).status == 200


def test_the_self_signed_certificate_holds_for_this_host(source: Source) -> None:
    settings = ServingSettings(secure_port=free_port())
    server = PageServer(settings, source)
    server.start()
    try:
        pem = ssl.get_server_certificate(("127.0.0.1", settings.secure_port))
        context = ssl.create_default_context(cadata=pem)
        assert request(server, "/livez", context=context).status == 200
    finally:
        server.stop()


def test_a_given_certificate_is_used_and_changed_without_a_restart(source: Source, tmp_path: Path) -> None:
    old, new = CertificateAuthority(), CertificateAuthority()
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    put(tmp_path, *old.issue_server(["localhost"], ["127.0.0.1"]))
    settings = ServingSettings(secure_port=free_port(), tls_cert_file=certificate, tls_private_key_file=key)
    server = PageServer(settings, source, certificate_look_s=0.05)
    server.start()
    try:
        trusts_old, trusts_new = (ssl.create_default_context(cadata=ca.pem.decode()) for ca in (old, new))
        assert request(server, "/livez", context=trusts_old).status == 200
        with pytest.raises(ssl.SSLError):
            request(server, "/livez", context=trusts_new)

        certificate.write_text("half of it")  # as between the two writes of a rotation
        time.sleep(0.2)
        assert request(server, "/livez", context=trusts_old).status == 200

        put(tmp_path, *new.issue_server(["localhost"], ["127.0.0.1"]))
        wait_until(lambda: succeeds(server, trusts_new), what="the new certificate")
        assert not succeeds(server, trusts_old)
    finally:
        server.stop()


def put(folder: Path, certificate: bytes, key: bytes) -> None:
    for name, content in (("tls.crt", certificate), ("tls.key", key)):
        scratch = folder / f".{name}"
        scratch.write_bytes(content)
        scratch.rename(folder / name)


def succeeds(server: PageServer, context: ssl.SSLContext) -> bool:
    try:
        return request(server, "/livez", context=context).status == 200
    except ssl.SSLError:
        return False


def test_a_port_in_use_is_a_mistake_in_the_settings(server: PageServer, source: Source) -> None:
    port = int(server.url.rpartition(":")[2])
    second = PageServer(ServingSettings(secure_port=port), source)
    with pytest.raises(ConfigError) as caught:
        second.start()
    assert str(caught.value).startswith(f"--bind-address 127.0.0.1, --secure-port {port}: cannot listen there, got ")
    second.stop()
    assert get(server, "/livez") == (200, "ok")


@pytest.mark.parametrize("broken", ["missing", "garbage", "other key", "encrypted"])
def test_a_certificate_that_cannot_be_used_is_a_mistake_in_the_settings(
    source: Source, tmp_path: Path, broken: str
) -> None:
    authority = CertificateAuthority()
    put(tmp_path, *authority.issue_server(["localhost"], []))
    key = tmp_path / "tls.key"
    if broken == "missing":
        key.unlink()
    elif broken == "garbage":
        key.write_text("garbage")
    elif broken == "other key":
        key.write_bytes(authority.issue_server(["localhost"], [])[1])
    else:
        pem = serialization.load_pem_private_key(key.read_bytes(), None).private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"password"),
        )
        key.write_bytes(pem)
    settings = ServingSettings(
        secure_port=free_port(), tls_cert_file=tmp_path / "tls.crt", tls_private_key_file=tmp_path / "tls.key"
    )
    with pytest.raises(ConfigError, match=r"--tls-cert-file .*: must be a certificate and its key \(PEM\), got "):
        PageServer(settings, source).start()


def test_port_0_serves_nothing(source: Source) -> None:
    threads = threading.active_count()
    server = PageServer(ServingSettings(secure_port=0), source)
    server.start()
    assert threading.active_count() == threads
    server.stop()


def test_stop_closes_the_port_and_the_thread(source: Source) -> None:
    server = PageServer(ServingSettings(secure_port=free_port()), source)
    server.start()
    assert get(server, "/livez") == (200, "ok")
    server.stop()
    server.stop()
    assert "serve" not in [thread.name for thread in threading.enumerate()]
    with pytest.raises(OSError, match="refused"):
        get(server, "/livez")


def test_ipv6(source: Source) -> None:
    if not Path("/proc/net/if_inet6").exists() or not Path("/proc/net/if_inet6").read_text():
        pytest.skip("this machine has no IPv6")
    server = PageServer(ServingSettings(secure_port=free_port(), bind_address="::1"), source)
    server.start()
    assert get(server, "/livez") == (200, "ok")
    server.stop()
