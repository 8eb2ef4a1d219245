"""The notifier against real HTTP receivers: what is sent, what is tried again, what is given up, what is bounded."""

from __future__ import annotations

import json
import logging
import ssl
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from scheduler.framework.instructions import Notify, Receiver
from scheduler.metrics import Metrics
from scheduler.serve.cloud_event import Event
from scheduler.serve.notifier import Notifier, NotifierLimits
from tests.kube.fake_api import Exchange, FakeApi, Responder, cuts, fake_api, hangs, replies
from tests.support.clocks import OwnTime
from tests.support.pki import CertificateAuthority
from tests.support.ports import free_port
from tests.support.waiting import wait_until

NOW_NS = 1_790_000_000_123_000_000
FAST = NotifierLimits(first_pause_s=0.01, timeout_s=0.5)
OK = replies(200, {})


class Running:
    def __init__(self, limits: NotifierLimits = FAST) -> None:
        self.metrics = Metrics(CollectorRegistry())
        self.notifier = Notifier("/vane/test", self.metrics, lambda: NOW_NS, lambda: 1.0, limits)
        self.notifier.start()

    def count(self, result: str) -> float:
        return float(self.metrics.registry.get_sample_value("vane_notifications_total", {"result": result}) or 0)

    @property
    def n_pending(self) -> float:
        return float(self.metrics.registry.get_sample_value("vane_notifications_pending") or 0)

    def wait(self, **counts: int) -> None:
        wait_until(lambda: {name: self.count(name) for name in counts} == counts, 20.0, f"{counts}")
        assert self.n_pending == 0


StartNotifier = Callable[..., Running]


@pytest.fixture
def start() -> Iterator[StartNotifier]:
    started: list[Running] = []

    def begin(limits: NotifierLimits = FAST) -> Running:
        started.append(Running(limits))
        return started[-1]

    yield begin
    for one in started:
        one.notifier.stop(0.0)
    assert "notifier" not in [thread.name for thread in threading.enumerate()]


@pytest.fixture
def receiver() -> Iterator[FakeApi]:
    with fake_api() as running:
        running.script("POST", "/hook", OK)
        yield running


def event(server: FakeApi, number: int = 0, **files: str) -> Event:
    return event_to(f"{server.host}/hook?key=secret", number, **files)


def event_to(url: str, number: int = 0, **files: str) -> Event:
    data = {"name": "web", "uid": f"u-{number}"}
    return Event.of(Notify(Receiver(url, **files), f"u-{number}.n1", "dev.vane.pod.bound", "shop/web", data))


def test_a_cloud_event_in_structured_json(start: StartNotifier, receiver: FakeApi) -> None:
    running = start()
    running.notifier.submit(event(receiver))
    running.wait(delivered=1)
    (request,) = receiver.of("POST", "/hook")
    assert request.query == {"key": "secret"}
    assert request.headers["Content-Type"] == "application/cloudevents+json; charset=utf-8"
    assert request.headers["User-Agent"].startswith("vane/")
    assert "Authorization" not in request.headers
    assert request.json == {
        "specversion": "1.0",
        "id": "u-0.n1",
        "source": "/vane/test",
        "type": "dev.vane.pod.bound",
        "subject": "shop/web",
        "time": "2026-09-21T14:13:20.123Z",
        "datacontenttype": "application/json",
        "data": {"name": "web", "uid": "u-0"},
    }
    assert datetime.fromisoformat(request.json["time"]) == datetime.fromtimestamp(NOW_NS / 1e9, UTC)


@pytest.mark.parametrize("data", [{"a": object()}, {"a": {1j}}, {(): 1}], ids=["object", "complex", "key"])
def test_what_json_cannot_hold_is_refused_where_it_is_made(data: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        Event.of(Notify(Receiver("http://h"), "1", "t", "s", data))


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(replies(500, ""), id="500"),
        pytest.param(replies(503, ""), id="503"),
        pytest.param(replies(408, ""), id="408"),
        pytest.param(replies(429, ""), id="429"),
        pytest.param(cuts, id="closed"),
        pytest.param(hangs, id="slow"),
    ],
)
def test_what_may_pass_is_tried_again_with_the_same_event(
    start: StartNotifier, receiver: FakeApi, fault: Responder
) -> None:
    running = start()
    receiver.script("POST", "/hook", fault, fault, OK)
    running.notifier.submit(event(receiver))
    running.wait(delivered=1, failed=0, dropped=0)
    bodies = [one.body for one in receiver.of("POST", "/hook")]
    assert len(bodies) == 3
    assert len(set(bodies)) == 1


@pytest.mark.parametrize("code", [301, 400, 401, 404, 410])
def test_a_refusal_is_final(start: StartNotifier, receiver: FakeApi, code: int) -> None:
    running = start()
    receiver.script("POST", "/hook", replies(code, "", {"Location": f"{receiver.host}/other"}))
    running.notifier.submit(event(receiver))
    running.wait(failed=1)
    assert len(receiver.received) == 1


def test_pauses_double_and_after_five_tries_it_is_given_up(
    start: StartNotifier, receiver: FakeApi, caplog: pytest.LogCaptureFixture
) -> None:
    running = start(NotifierLimits(first_pause_s=0.05))
    receiver.script("POST", "/hook", replies(500, ""))
    running.notifier.submit(event(receiver))
    running.wait(failed=1)
    tries = receiver.of("POST", "/hook")
    assert len(tries) == 5
    gaps = [after.at_s - before.at_s for before, after in pairwise(tries)]
    assert all(gap >= least for gap, least in zip(gaps, (0.05, 0.1, 0.2, 0.4), strict=True))
    assert "secret" not in caplog.text


def test_retry_after_is_honoured(start: StartNotifier, receiver: FakeApi) -> None:
    running, took = start(), OwnTime()
    receiver.script("POST", "/hook", replies(429, "", {"Retry-After": "1"}), OK)
    running.notifier.submit(event(receiver))
    running.wait(delivered=1)
    first, second = receiver.of("POST", "/hook")
    assert 1.0 <= second.at_s - first.at_s < 1.5 + took.waited_s


def test_a_receiver_that_hangs_holds_up_nobody_and_a_bounded_number_of_events(
    start: StartNotifier, receiver: FakeApi
) -> None:
    running = start(NotifierLimits(timeout_s=30.0))
    receiver.script("POST", "/stuck", hangs)
    stuck, took = f"{receiver.host}/stuck", []
    tracemalloc.start()
    for number in range(20_000):
        before = time.perf_counter()
        running.notifier.submit(event_to(stuck, number))
        took.append(time.perf_counter() - before)
    n_bytes = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    running.notifier.submit(event(receiver))

    wait_until(lambda: running.count("delivered") == 1, 10.0, "the other receiver's event")
    wait_until(lambda: len(receiver.of("POST", "/stuck")) == 4, 10.0, "the requests to the stuck receiver")
    assert (running.count("dropped"), running.n_pending) == (19_000, 1_000)
    assert n_bytes < 10_000_000
    assert sorted(took)[len(took) // 2] < 0.001
    assert len(receiver.of("POST", "/stuck")) == 4, "at most four requests at a time"


def test_all_receivers_together_are_bounded_too(start: StartNotifier) -> None:
    running = start(NotifierLimits(max_waiting=10, max_waiting_in_all=25, first_pause_s=60.0))
    nobody = free_port()
    for number in range(60):
        running.notifier.submit(event_to(f"http://127.0.0.1:{nobody}/{number % 6}", number))
    assert (running.count("dropped"), running.n_pending) == (35, 25)


def test_it_is_told_once_that_a_receiver_is_down_and_once_that_it_is_back(
    start: StartNotifier, receiver: FakeApi, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "scheduler")
    running = start()
    receiver.script("POST", "/hook", replies(400, ""))
    for number in range(3):
        running.notifier.submit(event(receiver, number))
    running.wait(failed=3)
    receiver.script("POST", "/hook", OK)
    for number in range(3):
        running.notifier.submit(event(receiver, number))
    running.wait(delivered=3)
    messages = [record.message for record in caplog.records]
    assert messages == [
        "a notification was not delivered; further failures are only counted",
        "notifications are delivered again",
    ]
    assert "secret" not in caplog.text


def test_nobody_listens(start: StartNotifier, caplog: pytest.LogCaptureFixture) -> None:
    running = start()
    running.notifier.submit(event_to(f"http://127.0.0.1:{free_port()}/hook?key=secret"))
    running.wait(failed=1)
    (record,) = caplog.records
    assert "ClientConnectorError" in record.error  # type: ignore[attr-defined]
    assert "secret" not in str(record.__dict__)


def test_the_token_is_read_for_each_request(start: StartNotifier, receiver: FakeApi, tmp_path: Path) -> None:
    running, token = start(), tmp_path / "token"
    for text in ("A\n", "B"):
        token.write_text(text)
        running.notifier.submit(event(receiver, token_file=str(token)))
        wait_until(lambda: running.n_pending == 0)
    assert [one.headers["Authorization"] for one in receiver.received] == ["Bearer A", "Bearer B"]


@pytest.mark.parametrize("content", [None, b"", b"two words", b"\xff"], ids=["missing", "empty", "words", "no text"])
def test_without_a_token_nothing_is_sent(
    start: StartNotifier, receiver: FakeApi, tmp_path: Path, content: bytes | None
) -> None:
    running, token = start(), tmp_path / "token"
    if content is not None:
        token.write_bytes(content)
    running.notifier.submit(event(receiver, token_file=str(token)))
    running.wait(failed=1)
    assert receiver.received == []


def test_a_token_that_comes_late_is_in_time_for_another_try(
    start: StartNotifier, receiver: FakeApi, tmp_path: Path
) -> None:
    running, token = start(NotifierLimits(first_pause_s=0.2)), tmp_path / "token"
    running.notifier.submit(event(receiver, token_file=str(token)))
    token.write_text("A")
    running.wait(delivered=1)


def test_only_the_authorities_of_the_ca_file_are_trusted(start: StartNotifier, tmp_path: Path) -> None:
    running = start(NotifierLimits(first_pause_s=0.01, max_tries=2))
    ours, other, ca = CertificateAuthority(), CertificateAuthority(), tmp_path / "ca.pem"
    with HttpsReceiver(ours, tmp_path) as url:
        running.notifier.submit(event_to(url))
        running.wait(failed=1)
        ca.write_bytes(other.pem)
        running.notifier.submit(event_to(url, ca_file=str(ca)))
        running.wait(failed=2)
        ca.write_bytes(ours.pem + b"\n")  # of another length: files are told apart by time and size
        running.notifier.submit(event_to(url, ca_file=str(ca)))
        running.wait(failed=2, delivered=1)


def test_stop_waits_for_what_can_be_delivered_and_drops_the_rest(start: StartNotifier, receiver: FakeApi) -> None:
    def slow(exchange: Exchange) -> None:
        time.sleep(0.2)
        exchange.json(200, {})

    running = start(NotifierLimits())
    receiver.script("POST", "/hook", slow)
    receiver.script("POST", "/stuck", hangs)
    for number in range(8):
        running.notifier.submit(event(receiver, number))
    running.notifier.stop(5.0)
    assert running.count("delivered") == 8

    running = start(NotifierLimits())
    running.notifier.submit(event_to(f"{receiver.host}/stuck"))
    took = OwnTime()
    running.notifier.stop(0.2)
    assert took.seconds < 2.0
    assert (running.count("dropped"), running.n_pending) == (1, 0)
    running.notifier.submit(event(receiver))
    assert running.count("dropped") == 2


class HttpsReceiver:
    """A receiver over TLS, as a context that gives its URL."""

    def __init__(self, authority: CertificateAuthority, folder: Path) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(202)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        certificate, key = authority.issue_server(["localhost"], ["127.0.0.1"])
        (folder / "server.pem").write_bytes(certificate + key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "server.pem")
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> str:
        self._thread.start()
        return f"https://127.0.0.1:{self._server.server_port}/hook"

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
