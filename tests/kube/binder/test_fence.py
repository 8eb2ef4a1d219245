from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable

import pytest

from scheduler.kube.binder import fence
from scheduler.kube.binder.connections import fenced_socket
from scheduler.kube.binder.fence import Fence
from scheduler.kube.binder.messages import BindRequest, LeaseUntil
from scheduler.kube.config import Connection
from scheduler.kube.credentials import Credentials, Token
from scheduler.kube.endpoint import Endpoint, client_tls
from tests.kube.binder.running_binder import BIND_PATH, CREATED, POD, Running
from tests.kube.conftest import connection_to
from tests.kube.fake_api import Exchange, FakeApi, Responder, hangs, replies, status
from tests.support.clocks import OwnTime
from tests.support.waiting import wait_until

ENDED = ["the binder process ended with the lease"]


def ends_the_term(running: Running, after_s: float, then: Responder) -> Responder:
    """Answer so, once the bind has come and nothing may begin from `after_s` later on."""

    def respond(exchange: Exchange) -> None:
        running.lead_for(after_s)
        then(exchange)

    return respond


def slowly(exchange: Exchange) -> None:
    time.sleep(0.5)
    exchange.json(201, {})


def test_without_leader_election_there_is_no_deadline(server: FakeApi, running: Running) -> None:
    server.script("POST", BIND_PATH, CREATED)
    assert running.bind().outcome == "bound"


def test_no_bind_begins_past_the_deadline(server: FakeApi, running: Running) -> None:
    server.script("POST", BIND_PATH, CREATED)
    running.lead_for(-0.001)
    result = running.bind()
    assert (result.outcome, result.message) == ("expired", "not sent: the lease's deadline has passed")
    assert server.of("POST", BIND_PATH) == []
    running.lead_for(30.0)
    assert running.bind().outcome == "bound"


def test_a_retry_past_the_deadline_is_not_sent_either(server: FakeApi, running: Running) -> None:
    busy = replies(429, status(429, "TooManyRequests", ""), {"Retry-After": "1"})
    server.script("POST", BIND_PATH, ends_the_term(running, 0.5, busy))
    running.lead_for(30.0)
    assert running.bind().outcome == "expired"
    assert len(server.of("POST", BIND_PATH)) == 1


def test_a_renewal_lifts_the_deadline_of_what_waits(server: FakeApi, running: Running) -> None:
    timer = threading.Timer(0.3, running.lead_for, [30.0])

    def busy_until_after_the_renewal(exchange: Exchange) -> None:
        running.lead_for(0.5)
        timer.start()
        replies(429, status(429, "TooManyRequests", ""), {"Retry-After": "1"})(exchange)

    server.script("POST", BIND_PATH, busy_until_after_the_renewal, CREATED)
    running.lead_for(30.0)
    assert running.bind().outcome == "bound"
    timer.join()


def test_a_bind_under_way_at_the_deadline_may_end(server: FakeApi, running: Running) -> None:
    server.script("POST", BIND_PATH, ends_the_term(running, 0.1, slowly))
    running.lead_for(30.0)
    assert running.bind().outcome == "bound"


def test_new_credentials_do_not_lift_the_deadline(server: FakeApi, start: Callable[..., Running]) -> None:
    first = iter([True])

    def fetch() -> Token:
        if not next(first, False):
            time.sleep(1.0)
        return Token("Bearer A")

    running = start(connection_to(server.host, Credentials(fetch)))
    refused = replies(401, status(401, "Unauthorized", "Unauthorized"))
    server.script("POST", BIND_PATH, ends_the_term(running, 0.5, refused))
    running.lead_for(30.0)
    assert running.bind().outcome == "expired"
    assert len(server.of("POST", BIND_PATH)) == 1


def test_a_connection_that_comes_too_late_carries_nothing(start: Callable[..., Running]) -> None:
    # A server that accepts and then says nothing: the TLS handshake waits until the deadline.
    with socket.create_server(("127.0.0.1", 0)) as listener:
        endpoint = Endpoint(host=f"https://127.0.0.1:{listener.getsockname()[1]}", verify=False)
        credentials = Credentials(lambda: Token("Bearer A"))
        running = start(Connection(endpoint, credentials, client_tls(endpoint), "test"))
        running.lead_for(0.5)
        took = OwnTime([os.getpid(), running.binder.pid])
        assert running.bind().outcome == "expired"
        assert took.seconds < 2.0


def test_the_process_ends_with_the_lease(server: FakeApi, running: Running) -> None:
    server.script("POST", BIND_PATH, hangs)
    running.binder.bind(BindRequest(pod=POD, node_name="n1", scheduler_name="vane"))
    wait_until(lambda: server.of("POST", BIND_PATH))
    began_s, took = time.monotonic(), OwnTime()
    running.lead_for(0.2, ends_s=0.5)
    assert wait_until(lambda: running.deaths) == ENDED
    assert time.monotonic() - began_s >= 0.5
    assert took.seconds < 1.0
    assert running.results == []


def test_a_term_that_has_ended_already_ends_the_process(running: Running) -> None:
    running.lead_for(-2.0, ends_s=-1.0)
    assert wait_until(lambda: running.deaths) == ENDED


def test_renewals_keep_the_process(server: FakeApi, running: Running) -> None:
    server.script("POST", BIND_PATH, CREATED)
    for _ in range(12):
        running.lead_for(1.2, ends_s=1.5)
        assert running.bind().outcome == "bound"
        time.sleep(0.15)
    assert running.deaths == []
    assert wait_until(lambda: running.deaths) == ENDED


def test_a_process_stopped_past_the_end_does_nothing_when_it_is_woken(server: FakeApi, running: Running) -> None:
    """It has the requests: in its socket, and in tasks that wait for a slot, for an answer and for a retry."""
    retried = replies(503, status(503, "ServiceUnavailable", ""), {"Retry-After": "1"})
    server.script("POST", BIND_PATH, retried)
    request = BindRequest(pod=POD, node_name="n1", scheduler_name="vane")
    began_s = time.monotonic()
    running.lead_for(20.0, ends_s=3.0)
    for _ in range(60):
        running.binder.bind(request)
    wait_until(lambda: len(server.of("POST", BIND_PATH)) == 40)
    os.kill(running.binder.pid, signal.SIGSTOP)
    for _ in range(100):
        running.binder.bind(request)
    time.sleep(began_s + 3.5 - time.monotonic())
    assert running.deaths == []
    os.kill(running.binder.pid, signal.SIGCONT)
    assert wait_until(lambda: running.deaths) == ENDED
    time.sleep(0.2)
    assert len(server.of("POST", BIND_PATH)) == 40


def test_a_process_stopped_past_the_deadline_only_hands_the_rest_back(server: FakeApi, running: Running) -> None:
    server.script("POST", BIND_PATH, CREATED)
    assert running.bind().outcome == "bound"
    running.lead_for(0.5, ends_s=30.0)
    running.drain()
    os.kill(running.binder.pid, signal.SIGSTOP)
    for _ in range(20):
        running.binder.bind(BindRequest(pod=POD, node_name="n1", scheduler_name="vane"))
    time.sleep(0.6)
    os.kill(running.binder.pid, signal.SIGCONT)
    wait_until(lambda: len(running.results) == 21)
    assert {one.outcome for one in running.results[1:]} == {"expired"}
    assert len(server.of("POST", BIND_PATH)) == 1


class ScriptedKernel:
    """A clock, a timer and an exit; the process is "stopped" for so many seconds before each arming."""

    def __init__(self, *stops_s: float) -> None:
        self.now_s = 100.0
        self.rings_at = 0.0
        self.armed: list[float] = []
        self.exits: list[int] = []
        self._stops_s = list(stops_s)

    def clock(self) -> float:
        return self.now_s

    def arm(self, seconds: float) -> None:
        self.now_s += self._stops_s.pop(0) if self._stops_s else 0.0
        self.armed.append(seconds)
        self.rings_at = self.now_s + seconds

    def left_s(self) -> float:
        return self.rings_at - self.now_s


@pytest.mark.parametrize(
    ("stops_s", "armed", "exits"),
    [
        pytest.param((), [15.0], [], id="at once"),
        pytest.param((4.0,), [15.0, 11.0], [], id="stopped while arming"),
        pytest.param((4.0, 4.0), [15.0, 11.0, 7.0], [], id="stopped twice"),
        pytest.param((16.0,), [15.0], [fence.EXIT_CODE], id="stopped past the end"),
    ],
)
def test_the_timer_never_rings_late(stops_s: tuple[float, ...], armed: list[float], exits: list[int]) -> None:
    kernel = ScriptedKernel(*stops_s)
    made = Fence(kernel, kernel.clock, kernel.exits.append)
    made.extend(LeaseUntil(not_after=110.0, ends_at=115.0))
    assert (kernel.armed, kernel.exits) == (armed, exits)
    assert exits or kernel.rings_at == 115.0
    assert made.is_closed == (kernel.now_s >= 110.0)


def test_a_term_in_force_is_not_armed_again() -> None:
    kernel = ScriptedKernel()
    made = Fence(kernel, kernel.clock, kernel.exits.append)
    for _ in range(3):
        made.extend(LeaseUntil(not_after=110.0, ends_at=115.0))
    assert kernel.armed == [15.0]
    made.extend(LeaseUntil(not_after=112.0, ends_at=117.0))
    assert kernel.rings_at == 117.0


def fill(to: socket.socket) -> int:
    """Send until the buffers of both ends are full, and return how many bytes that were."""
    sent = 0
    while True:
        try:
            sent += to.send(bytes(1 << 16))
        except BlockingIOError:
            return sent


def drain(of: socket.socket) -> tuple[int, bool]:
    """Receive to the end; return how much came, and whether the end was a reset."""
    n_bytes = 0
    try:
        while data := of.recv(1 << 16):
            n_bytes += len(data)
    except ConnectionResetError:
        return n_bytes, True
    return n_bytes, False


def test_what_was_not_sent_yet_does_not_outlive_its_socket() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
        ours = fenced_socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", address))
        ours.connect(address)
        theirs, _ = listener.accept()
        ours.setblocking(False)
        sent = fill(ours)
        ours.close()
        arrived, is_reset = drain(theirs)
        theirs.close()
    assert is_reset
    assert arrived < sent
