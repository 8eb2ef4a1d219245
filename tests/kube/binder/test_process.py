from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from scheduler.kube.binder import messages
from scheduler.kube.binder.binds import MAX_BINDS
from scheduler.kube.binder.client import BinderTimes
from scheduler.kube.binder.http import ApiHttp
from scheduler.kube.binder.messages import (
    BinderConnection,
    BindRequest,
    BindResult,
    CredentialsRefused,
    EventRequest,
    LogLine,
    PatchResult,
    RequestsDone,
)
from scheduler.kube.credentials import Credentials, Token
from scheduler.kube.endpoint import Endpoint
from tests.kube.binder.running_binder import BIND_PATH, CREATED, EVENTS_PATH, POD, POD_PATH, Running
from tests.kube.conftest import connection_to
from tests.kube.fake_api import Exchange, FakeApi, hangs, replies, status
from tests.support.clocks import OwnTime
from tests.support.waiting import wait_until


def test_the_death_of_the_process_is_told(running: Running) -> None:
    os.kill(running.binder.pid, signal.SIGKILL)
    assert wait_until(lambda: running.deaths) == ["the binder process ended by itself (exit code -9)"]
    took = OwnTime()
    assert not running.binder.drain(5.0)
    assert took.seconds < 1.0


NO_TEXT: Any = "\ud800"
A_NUMBER: Any = {"vane.dev/n": 3}


def test_a_request_that_cannot_be_sent_fails_alone(server: FakeApi, running: Running) -> None:
    server.script("POST", BIND_PATH, CREATED)
    why = "the request cannot be sent: UnicodeEncodeError: 'utf-8' codec can't encode character '\\ud800' in position 0"
    result = running.bind(NO_TEXT)
    assert (result.uid, result.outcome, result.code) == (POD.uid, "failed", 0)
    assert result.message.startswith(why)
    assert running.bind(annotations=A_NUMBER).message.startswith(
        "the request cannot be sent: ValidationError: Expected"
    )
    for ended in (running.patch({"a": NO_TEXT}), running.patch(A_NUMBER), running.evict(node_name=NO_TEXT)):
        assert (ended.outcome, ended.message[:26]) == ("failed", "the request cannot be sent")
    event = EventRequest(pod=POD, scheduler_name="vane", type="Normal", reason="r", action="a", note=NO_TEXT)
    running.binder.event(event)
    wait_until(lambda: running.dropped == [1], 10.0, "the lost Event")

    assert running.bind().outcome == "bound"
    assert running.deaths == []


def test_those_beside_a_request_that_cannot_be_sent_are_sent() -> None:
    requests = [BindRequest(pod=POD, node_name=node, scheduler_name="vane") for node in ("a", NO_TEXT, "c")]
    frame, ended = messages.encode_requests(requests)
    assert messages.decode_to_child(frame[messages.LENGTH_BYTES :]) == [requests[0], requests[2]]
    assert [type(one) for one in ended] == [BindResult]


def test_a_result_is_sent_whatever_the_api_server_said() -> None:
    result = PatchResult(number=7, outcome="failed", message=f"no {NO_TEXT}")
    lines: list[messages.FromChild] = [
        LogLine(level=20, text=NO_TEXT),
        RequestsDone(verb="POST", code="201", durations_s=[0.5]),
        result,
    ]
    frame = messages.encode_results(lines)
    assert messages.decode_from_child(frame[messages.LENGTH_BYTES :]) == [
        LogLine(level=20, text="?"),
        lines[1],
        PatchResult(number=7, outcome="failed", message="no ?"),
    ]


def test_credentials_are_asked_for_again_after_a_fault(server: FakeApi, start: Callable[..., Running]) -> None:
    fetched: Iterator[Token | Exception] = iter(
        [Token("Bearer A", 0.0), Token("Bearer A", 0.0), ZeroDivisionError("a bug"), Token("Bearer B")]
    )

    def fetch() -> Token:
        found = next(fetched)
        if isinstance(found, Exception):
            raise found
        return found

    server.script("POST", BIND_PATH, CREATED)
    server.script("POST", EVENTS_PATH, replies(201, {}))
    running = start(connection_to(server.host, Credentials(fetch)), times=BinderTimes(credentials_check_s=0.05))

    def last_header() -> str:
        running.bind()
        return server.of("POST", BIND_PATH)[-1].headers["Authorization"]

    wait_until(lambda: last_header() == "Bearer B")


def test_other_credentials_are_asked_for_again_when_none_came(server: FakeApi) -> None:
    server.script("GET", POD_PATH, replies(401, status(401, "Unauthorized", "Unauthorized")))
    asked: list[str | None] = []

    async def run() -> list[int]:
        http = ApiHttp(
            Endpoint(host=server.host), "Bearer A", lambda *_: None, asked.append, "vane/test", renewal_s=0.05
        )
        codes = [(await http.request("GET", POD_PATH)).code for _ in range(2)]
        await http.close()
        return codes

    assert asyncio.run(run()) == [401, 401]
    assert asked == ["Bearer A", "Bearer A"]


def test_no_repr_shows_a_header() -> None:
    secret = "Bearer secret"
    endpoint = Endpoint(host="https://h", proxy="http://user:secret@proxy:1")
    for shown in (
        Token(secret),
        BinderConnection(endpoint=endpoint, header=secret),
        messages.NewCredentials(header=secret),
        CredentialsRefused(header=secret),
        endpoint,
        connection_to("http://h", Credentials(lambda: Token(secret))),
    ):
        assert "secret" not in repr(shown)


def test_signals_to_the_child_are_left_to_the_parent(server: FakeApi, running: Running) -> None:
    server.script("POST", BIND_PATH, CREATED)
    assert running.bind().outcome == "bound"  # it is up
    os.kill(running.binder.pid, signal.SIGTERM)
    os.kill(running.binder.pid, signal.SIGINT)
    assert running.bind().outcome == "bound"


def test_stop_is_quick_and_asks_no_one(server: FakeApi, running: Running) -> None:
    server.script("POST", BIND_PATH, hangs)
    running.binder.bind(BindRequest(pod=POD, node_name="n1", scheduler_name="vane"))
    wait_until(lambda: server.of("POST", BIND_PATH))
    pid = running.binder.pid
    took = OwnTime()
    running.binder.stop()
    assert took.seconds < 2.0
    assert not _exists(pid)
    assert running.deaths == []


_PARENT = """
import os, sys, time
from scheduler.kube.binder.client import BinderClient
from scheduler.kube.binder.event_writer import MAX_QUEUED, N_WRITERS
from scheduler.kube.binder.binds import MAX_BINDS
from scheduler.kube.binder.messages import BindRequest, PodRef
from tests.kube.conftest import connection_to

binder = BinderClient(connection_to(sys.argv[1]), lambda results: None, lambda why: None)
binder.start()
for number in range(200):
    pod = PodRef(namespace="default", name="a", uid=f"u{number}")
    binder.bind(BindRequest(pod=pod, node_name="n1", scheduler_name="vane"))
print(binder.pid, flush=True)
time.sleep(60)
"""


def test_the_child_ends_with_its_parent_and_flushes_nothing(server: FakeApi) -> None:
    release = threading.Event()

    def slow(exchange: Exchange) -> None:
        release.wait(20)
        exchange.json(201, {})

    server.script("POST", BIND_PATH, slow)
    argv = [sys.executable, "-c", _PARENT, server.host]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        wait_until(lambda: len(server.of("POST", BIND_PATH)) == MAX_BINDS)  # all slots taken, the rest waits
        parent.kill()
    wait_until(lambda: not _exists(child))
    release.set()
    time.sleep(0.2)
    assert len(server.of("POST", BIND_PATH)) == MAX_BINDS


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
