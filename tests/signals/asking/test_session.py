from __future__ import annotations

import gzip
import ssl
import time
import traceback
from collections.abc import Mapping
from pathlib import Path

import pytest

from scheduler.signals.asking.client import ClientSettings, PrometheusClient
from scheduler.signals.asking.credentials import Access, SecretFile
from scheduler.signals.asking.query_errors import (
    BadAnswer,
    CredentialsUnreadable,
    PrometheusUnreachable,
    QueryError,
    QueryRejected,
    QueryTimeout,
    RedirectRefused,
    TooMuchData,
    WrongResultType,
)
from scheduler.signals.asking.session import Bounds, parse_answer
from tests.signals.asking.scripted import Clock, Exchange, Script, always, scripted, vector
from tests.support.clocks import OwnTime
from tests.support.pki import CertificateAuthority
from tests.support.ports import free_port

GOOD = vector([({"node": "a"}, "1")])
N_CONNECTIONS = ClientSettings("http://p").n_connections
QUICK = Bounds(connect_s=0.3, read_s=0.4, deadline_s=0.6, max_bytes=4096)


def client_of(
    url: str, access: Access | None = None, max_series: int = 100, bounds: Bounds | None = None
) -> PrometheusClient:
    bounds = bounds or Bounds(max_bytes=QUICK.max_bytes)
    return PrometheusClient(ClientSettings(url, access or Access(), bounds, max_series))


def hang(exchange: Exchange, _form: Mapping[str, str]) -> None:
    time.sleep(1.0)


def drip(exchange: Exchange, _form: Mapping[str, str]) -> None:
    exchange.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    for _ in range(20):
        exchange.wfile.write(b"{")
        time.sleep(0.1)


def hang_up(exchange: Exchange, _form: Mapping[str, str]) -> None:
    exchange.close_connection = True


def half(exchange: Exchange, _form: Mapping[str, str]) -> None:
    content = GOOD.encode()
    exchange.wfile.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content[:40])
    exchange.close_connection = True


def no_utf8(exchange: Exchange, _form: Mapping[str, str]) -> None:
    exchange.answer(GOOD.encode().replace(b"node", b"\xff\xfeno"))


PROBLEM = '{"status":"error","errorType":"bad_data","error":"unknown function"}'
ABORTED = '{"status":"error","errorType":"timeout","error":"query timed out in expression evaluation"}'
MATRIX = '{"status":"success","data":{"resultType":"matrix","result":[]}}'
STRING = '{"status":"success","data":{"resultType":"string","result":[1,"a"]}}'


@pytest.mark.parametrize(
    ("script", "kind", "is_outage", "words"),
    [
        pytest.param(hang, QueryTimeout, True, "0.4 s", id="no answer"),
        pytest.param(drip, QueryTimeout, True, "not complete within 0.6 s", id="an answer byte by byte"),
        pytest.param(hang_up, PrometheusUnreachable, True, "", id="connection cut before the answer"),
        pytest.param(half, PrometheusUnreachable, True, "IncompleteRead", id="half an answer"),
        pytest.param(always(PROBLEM, 400), QueryRejected, False, "bad_data: unknown function", id="400"),
        pytest.param(always(ABORTED, 503), QueryRejected, False, "timed out", id="503 because the query is slow"),
        pytest.param(always("<html>gone</html>", 503), QueryRejected, True, "gone", id="503 of a proxy"),
        pytest.param(always("", 500), QueryRejected, False, "HTTP 500", id="500 without a word"),
        pytest.param(always("<html>log in</html>"), BadAnswer, False, "log in", id="a page in place of JSON"),
        pytest.param(always('{"status":"success"'), BadAnswer, False, "", id="JSON cut off"),
        pytest.param(always('{"status":"success"}'), BadAnswer, False, "", id="no data"),
        pytest.param(always("[]"), BadAnswer, False, "", id="JSON of another form"),
        pytest.param(no_utf8, BadAnswer, False, "", id="no UTF-8"),
        pytest.param(always(MATRIX), WrongResultType, False, "matrix", id="a matrix"),
        pytest.param(always(STRING), WrongResultType, False, "string", id="a string"),
        pytest.param(always(GOOD + " " * 5000), TooMuchData, False, "4096 bytes", id="too many bytes"),
        pytest.param(
            always("", 302, {"Location": "http://elsewhere/"}), RedirectRefused, True, "elsewhere", id="a redirect"
        ),
        pytest.param(always("", 301), RedirectRefused, True, "301", id="a redirect to nowhere"),
    ],
)
def test_faults_of_a_server_are_told_apart_and_bounded_in_time(
    script: object, kind: type[QueryError], is_outage: bool, words: str
) -> None:
    with scripted(script) as server:  # type: ignore[arg-type]  # a table of scripts
        took = OwnTime()
        with pytest.raises(kind, match=words or None) as caught:
            client_of(server.url, bounds=QUICK).query("up")
    assert took.seconds < 2.0
    assert caught.value.is_outage == is_outage


def test_refused_connections_fail_at_once_and_without_retry() -> None:
    took = OwnTime()
    with pytest.raises(PrometheusUnreachable, match="refused"):
        client_of(f"http://127.0.0.1:{free_port()}").query("up")
    assert took.seconds < 0.5


def test_a_hanging_server_is_asked_once() -> None:
    with scripted(hang) as server:
        with pytest.raises(QueryTimeout):
            client_of(server.url, bounds=QUICK).query("up")
        assert len(server.requests) == 1


def test_the_query_goes_into_the_body_with_its_bounds() -> None:
    with scripted(always(GOOD)) as server:
        client_of(f"{server.url}/prefix/").query("up{a='+&'}" + " " * 9000, lookback_s=60.0)
        request = server.requests[0]
    assert request.path == "/prefix/api/v1/query"
    assert request.form["query"].startswith("up{a='+&'}")
    assert {key: request.form[key] for key in request.form if key != "query"} == {
        "timeout": "4000ms",
        "limit": "101",
        "lookback_delta": "60000ms",
        "partial_response": "false",
        "dedup": "true",
    }


def test_connections_are_kept() -> None:
    with scripted(always(GOOD)) as server:
        client = client_of(server.url)
        for _ in range(3):
            client.query("up")
        assert len({str(request.peer) for request in server.requests}) == 1


def test_one_series_more_than_allowed_is_an_error_and_no_truncated_answer() -> None:
    body = vector([({"node": str(i)}, "1") for i in range(6)])
    with scripted(always(body)) as server, pytest.raises(TooMuchData, match="more than 5 series"):
        client_of(server.url, max_series=5).query("up")


def test_a_zipped_answer_counts_by_what_it_unpacks_to() -> None:
    bomb = gzip.compress(GOOD.encode() + b" " * 1_000_000)
    assert len(bomb) < 4096

    def script(exchange: Exchange, _form: Mapping[str, str]) -> None:
        exchange.answer(bomb, headers={"Content-Encoding": "gzip"})

    with scripted(script) as server, pytest.raises(TooMuchData):
        client_of(server.url).query("up")


def test_certificates_are_checked_against_the_authority_named(tmp_path: Path) -> None:
    authority = CertificateAuthority()
    certificate, key = authority.issue_server([], ["127.0.0.1"])
    (tmp_path / "ca.pem").write_bytes(authority.pem)
    (tmp_path / "server.pem").write_bytes(certificate + key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    with scripted(always(GOOD)) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        url = server.url.replace("http:", "https:")
        with pytest.raises(PrometheusUnreachable, match="certificate verify failed"):
            client_of(url).query("up")
        assert client_of(url, Access(ca_file=tmp_path / "ca.pem")).query("up").series


def test_headers_are_sent_and_cookies_are_not_kept() -> None:
    with scripted(always(GOOD, headers={"Set-Cookie": "a=b; Path=/"})) as server:
        client = client_of(server.url, Access(headers={"X-Scope-OrgID": "team"}))
        client.query("up")
        client.query("up")
        assert server.requests[1].headers["X-Scope-OrgID"] == "team"
        assert "Cookie" not in server.requests[1].headers


@pytest.mark.parametrize("value", [" secret", "secret\N{EURO SIGN}"])
def test_a_header_that_cannot_be_sent_is_not_shown(value: str) -> None:
    access = Access(headers={"Authorization": value})
    assert "secret" not in repr(access)
    with scripted(always(GOOD)) as server, pytest.raises(CredentialsUnreadable) as caught:
        client_of(server.url, access).query("up")
    assert "secret" not in "".join(traceback.format_exception(caught.value))


def test_the_environment_has_no_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with scripted(always(GOOD)) as server:
        assert client_of(server.url).query("up").series


def test_a_refused_token_is_read_again_and_sent_once_more(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old\n")

    def script(exchange: Exchange, _form: Mapping[str, str]) -> None:
        is_good = exchange.headers["Authorization"] == "Bearer new"
        exchange.answer(GOOD if is_good else "no", 200 if is_good else 401)

    with scripted(script) as server:
        client = client_of(server.url, Access(bearer_token_file=token))
        with pytest.raises(QueryRejected, match="401"):
            client.query("up")
        assert len(server.requests) == 1, "the same token is not tried twice"
        token.write_text("new\n")
        assert client.query("up").series
        assert len(server.requests) == 3


def test_a_token_is_read_again_after_a_minute(tmp_path: Path) -> None:
    path, clock = tmp_path / "token", Clock()
    path.write_text("one")
    token = SecretFile.of_token(path, clock)
    assert token.text() == "one"
    path.write_text("two")
    clock.now_s += 59.0
    assert token.text() == "one"
    clock.now_s += 1.0
    assert token.text() == "two"


@pytest.mark.parametrize("content", [None, b"", b"two words", b"a\nb", b"\xff"])
def test_a_token_file_that_holds_no_token_is_an_error_of_its_own(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(CredentialsUnreadable, match="token"):
        SecretFile.of_token(path, Clock()).text()


def test_no_token_goes_to_where_a_redirect_points(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("secret")
    with scripted(always(GOOD)) as elsewhere:
        with scripted(always("", 307, {"Location": f"{elsewhere.url}/api/v1/query"})) as server:
            with pytest.raises(RedirectRefused) as caught:
                client_of(server.url, Access(bearer_token_file=path)).query("up")
        assert elsewhere.requests == []
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("stats", "n_samples"),
    [
        ('{"timings": {"evalTotalTime": 0.1}, "samples": {"totalQueryableSamples": 42, "peakSamples": 7}}', 42),
        ('{"samples": {}}', None),
        ("null", None),
        ('{"samples": "many"}', None),
        ("[]", None),
    ],
)
def test_what_a_query_has_read(stats: str, n_samples: int | None) -> None:
    body = f'{{"status": "success", "data": {{"resultType": "vector", "result": [], "stats": {stats}}}}}'
    assert parse_answer(body.encode()).n_samples == n_samples


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(always(GOOD + " " * 5_000_000), id="an answer left unread"),
        pytest.param(half, id="half an answer"),
        pytest.param(hang_up, id="connection cut"),
        pytest.param(always("no", 503), id="refused"),
        pytest.param(always("", 302, {"Location": "http://elsewhere/"}), id="a redirect"),
        pytest.param(always("<html>"), id="a page in place of JSON"),
    ],
)
def test_faults_use_up_no_connections(script: Script) -> None:
    with scripted(script) as server:
        client = client_of(server.url)
        for _ in range(2 * N_CONNECTIONS):
            with pytest.raises(QueryError):
                client.query("up")
        server.script = always(GOOD)
        assert client.query("up").series
