from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest

from scheduler.kube.binder.binds import MAX_BINDS
from scheduler.kube.binder.client import BinderTimes
from scheduler.kube.binder.event_writer import MAX_QUEUED, N_WRITERS
from scheduler.kube.binder.failure_reports import MAX_REPORTS
from scheduler.kube.binder.messages import BindRequest, EventRequest, FailureReport, PodRef
from scheduler.kube.config import Connection
from scheduler.kube.credentials import Credentials, Token, token_from_file
from tests.kube.binder.running_binder import BIND_PATH, CREATED, EVENTS_PATH, POD, POD_PATH, STATUS_PATH, Running
from tests.kube.conftest import connection_to
from tests.kube.fake_api import Exchange, FakeApi, cuts, hangs, pod, raw, replies, resets, status
from tests.support.clocks import OwnTime
from tests.support.waiting import wait_until

CONFLICT = replies(409, status(409, "Conflict", 'pod a is already assigned to node "n?"'))


def report(message: str = "0/1 nodes are available.", **changes: Any) -> FailureReport:
    fields: dict[str, Any] = {"pod": POD, "scheduler_name": "vane", "reason": "Unschedulable", "generation": 1}
    return FailureReport(**{**fields, "message": message, **changes})


def test_binds_and_writes_the_event(server: FakeApi, running: Running) -> None:
    server.script("POST", BIND_PATH, CREATED)
    result = running.bind()
    assert (result.uid, result.outcome, result.node_name, result.code) == ("uid-a", "bound", "n1", 201)
    assert 0 < result.duration_s < 5
    running.drain()
    (request,) = server.of("POST", BIND_PATH)
    assert request.json["metadata"] == {"name": "a", "namespace": "default", "uid": "uid-a"}
    assert request.json["target"] == {"apiVersion": "v1", "kind": "Node", "name": "n1"}
    assert request.headers["Authorization"] == "Bearer A"
    assert request.headers["User-Agent"].startswith("vane/")
    (event,) = server.of("POST", EVENTS_PATH)
    assert event.json["note"] == "Successfully assigned default/a to n1"
    assert {(one.verb, one.code) for one in running.requests} == {("POST", "201")}


def test_what_is_flushed_waits_for_no_company(
    server: FakeApi, connection: Connection, start: Callable[..., Running]
) -> None:
    server.script("POST", BIND_PATH, CREATED)
    server.script("POST", EVENTS_PATH, CREATED)
    running = start(connection, times=BinderTimes(batch_wait_s=60.0))
    running.binder.bind(BindRequest(pod=POD, node_name="n1", scheduler_name="vane"))
    running.binder.flush()
    wait_until(lambda: running.results, timeout=10)


@pytest.mark.parametrize(
    ("found", "outcome", "node"),
    [
        pytest.param(replies(200, pod("a", nodeName="n1")), "conflict_same_node", "n1", id="same node"),
        pytest.param(replies(200, pod("a", nodeName="n2")), "conflict_other_node", "n2", id="lost race"),
        pytest.param(replies(404, status(404, "NotFound", "gone")), "deleted", "n1", id="gone"),
        pytest.param(
            replies(200, {"metadata": {"uid": "other"}, "spec": {"nodeName": "n1"}}), "deleted", "n1", id="recreated"
        ),
        pytest.param(
            replies(200, {"metadata": {"uid": "uid-a", "deletionTimestamp": "2026-01-01T00:00:00Z"}}),
            "deleted",
            "n1",
            id="going",
        ),
        pytest.param(replies(200, pod("a", schedulingGates=[{"name": "g"}])), "gated", "n1", id="gated"),
    ],
)
def test_a_conflict_is_looked_into(server: FakeApi, running: Running, found: Any, outcome: str, node: str) -> None:
    server.script("POST", BIND_PATH, CONFLICT)
    server.script("GET", POD_PATH, found)
    result = running.bind()
    assert (result.outcome, result.node_name, result.code) == (outcome, node, 409)
    running.drain()
    assert len(server.of("POST", BIND_PATH)) == 1
    assert server.of("POST", EVENTS_PATH) == []


def test_a_conflict_that_explains_nothing_is_tried_again(server: FakeApi, running: Running) -> None:
    server.script("POST", BIND_PATH, CONFLICT, CREATED)
    server.script("GET", POD_PATH, replies(200, pod("a")))
    assert running.bind().outcome == "bound"


def test_deleted_pod(server: FakeApi, running: Running) -> None:
    server.script("POST", BIND_PATH, replies(404, status(404, "NotFound", 'pods "a" not found')))
    result = running.bind()
    assert (result.outcome, result.message) == ("deleted", 'pods "a" not found')


def test_a_404_for_a_pod_that_is_there_is_tried_again(server: FakeApi, running: Running) -> None:
    unknown = raw(404, b"<html>404 page not found</html>")
    server.script("POST", BIND_PATH, unknown, unknown, CREATED)
    server.script("GET", POD_PATH, replies(200, pod("a")))
    assert running.bind().outcome == "bound"
    server.script("POST", BIND_PATH, unknown)
    result = running.bind()
    assert (result.outcome, result.code) == ("failed", 404)


@pytest.mark.parametrize("lost", [pytest.param(cuts, id="closed"), pytest.param(resets, id="reset")])
def test_a_lost_answer_is_asked_for_again(server: FakeApi, running: Running, lost: Any) -> None:
    server.script("POST", BIND_PATH, lost, CONFLICT)
    server.script("GET", POD_PATH, replies(200, pod("a", nodeName="n1")))
    assert running.bind().outcome == "conflict_same_node"
    running.drain()
    assert len(server.of("POST", BIND_PATH)) == 2
    assert len(server.of("POST", EVENTS_PATH)) == 1  # the first request did bind, so this was us
    assert "<error>" in {one.code for one in running.requests}


def test_a_lost_question_is_no_lost_bind(server: FakeApi, running: Running) -> None:
    server.script("POST", BIND_PATH, CONFLICT)
    server.script("GET", POD_PATH, cuts, cuts, replies(200, pod("a", nodeName="n1")))
    assert running.bind().outcome == "conflict_same_node"
    running.drain()
    assert server.of("POST", EVENTS_PATH) == [], "it was not us who bound it"


def test_an_error_that_is_no_text_is_an_outcome_too(server: FakeApi, running: Running) -> None:
    server.script("POST", BIND_PATH, raw(403, b'{"message":"d\xe9fendu"}'), CREATED)
    result = running.bind()
    assert (result.outcome, result.code) == ("failed", 403)
    assert "fendu" in result.message
    assert running.bind().outcome == "bound"


def test_reports_that_are_told_to_wait_hold_up_no_bind(server: FakeApi, running: Running) -> None:
    busy = replies(429, status(429, "TooManyRequests", "slow down"), {"Retry-After": "60"})
    pods = [PodRef(namespace="default", name=f"p{i}", uid=f"uid-p{i}") for i in range(MAX_BINDS + MAX_REPORTS)]
    for one in pods:
        server.script("PATCH", f"{one.path}/status", busy)
        server.script("POST", f"{one.path}/binding", CREATED)
        running.binder.report_failure(report(pod=one))
    wait_until(
        lambda: sum(one.method == "PATCH" for one in server.received) == MAX_REPORTS, 10.0, "all slots of reports taken"
    )
    for one in pods:
        running.binder.bind(BindRequest(pod=one, node_name="n1", scheduler_name="vane"))

    wait_until(lambda: len(running.results) == len(pods), 10.0, "all binds")

    assert {one.outcome for one in running.results} == {"bound"}
    last = {}
    for request in server.received:
        last[request.path.removesuffix("/binding").removesuffix("/status")] = request.method
    assert {last[one.path] for one in pods} == {"POST"}, "nothing is reported of a Pod that is bound"


def test_server_errors_are_retried_three_times(server: FakeApi, running: Running) -> None:
    error = replies(500, status(500, "InternalError", "etcd timeout"))
    server.script("POST", BIND_PATH, error, error, error, CREATED)
    assert running.bind().outcome == "bound"
    server.script("POST", BIND_PATH, error)
    before = len(server.of("POST", BIND_PATH))
    result = running.bind()
    assert (result.outcome, result.code, result.message) == ("failed", 500, "etcd timeout")
    tries = server.of("POST", BIND_PATH)[before:]
    assert len(tries) == 4
    gaps = [after.at_s - before.at_s for before, after in pairwise(tries)]
    assert all(gap >= least for gap, least in zip(gaps, (0.010, 0.050, 0.250), strict=True))


def test_a_refusal_is_not_retried(server: FakeApi, running: Running) -> None:
    server.script("POST", BIND_PATH, replies(403, status(403, "Forbidden", "a webhook says no")))
    result = running.bind()
    assert (result.outcome, result.code, result.message) == ("failed", 403, "a webhook says no")
    assert len(server.of("POST", BIND_PATH)) == 1


def test_nobody_listens(server: FakeApi, start: Callable[..., Running]) -> None:
    result = start(connection_to("http://127.0.0.1:1")).bind()
    assert (result.outcome, result.code) == ("failed", 0)
    assert "127.0.0.1" in result.message


def test_retry_after_is_honoured(server: FakeApi, running: Running) -> None:
    busy = replies(429, status(429, "TooManyRequests", "slow down"), {"Retry-After": "1"})
    server.script("POST", BIND_PATH, busy, CREATED)
    assert running.bind().outcome == "bound"
    first, second = server.of("POST", BIND_PATH)
    assert 1.0 <= second.at_s - first.at_s < 1.5


def test_slow_binds_hold_nothing_else_up(server: FakeApi, running: Running) -> None:
    server.script("POST", BIND_PATH, hangs)
    fast = PodRef(namespace="default", name="b", uid="uid-b")
    server.script("POST", "/api/v1/namespaces/default/pods/b/binding", CREATED)
    running.binder.bind(BindRequest(pod=POD, node_name="n1", scheduler_name="vane"))
    running.binder.bind(BindRequest(pod=fast, node_name="n1", scheduler_name="vane"))
    wait_until(lambda: [one.uid for one in running.results] == ["uid-b"])
    assert not running.binder.drain(0.2)


def test_401_is_tried_once_more_with_the_new_token(server: FakeApi, start: Callable[..., Running]) -> None:
    tokens = iter(["Bearer A", "Bearer B"])
    running = start(connection_to(server.host, Credentials(lambda: Token(next(tokens)))))

    def only_b(exchange: Exchange) -> None:
        if exchange.received.headers["Authorization"] == "Bearer B":
            exchange.json(201, {})
        else:
            exchange.json(401, status(401, "Unauthorized", "Unauthorized"))

    server.script("POST", BIND_PATH, only_b)
    server.script("POST", EVENTS_PATH, replies(201, {}))
    assert running.bind().outcome == "bound"
    assert [one.headers["Authorization"] for one in server.of("POST", BIND_PATH)] == ["Bearer A", "Bearer B"]


def test_a_rotated_token_is_handed_over_before_anyone_refuses_the_old_one(
    server: FakeApi, start: Callable[..., Running], tmp_path: Path
) -> None:
    # As kubelet does it: `token` is a link into `..data`, which is swapped for another folder.
    for name in ("A", "B"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "token").write_text(name)
    (tmp_path / "..data").symlink_to("A")
    path = str(tmp_path / "..data" / "token")
    credentials = Credentials(lambda: token_from_file(path, lifetime_s=0.05))
    running = start(connection_to(server.host, credentials), times=BinderTimes(credentials_check_s=0.05))
    server.script("POST", BIND_PATH, CREATED)
    server.script("POST", EVENTS_PATH, replies(201, {}))
    assert running.bind().outcome == "bound"
    (tmp_path / "new").symlink_to("B")
    (tmp_path / "new").rename(tmp_path / "..data")
    OwnTime([os.getpid(), running.binder.pid]).sleep(0.5)
    assert running.bind().outcome == "bound"
    assert [one.headers["Authorization"] for one in server.of("POST", BIND_PATH)] == ["Bearer A", "Bearer B"]


def test_a_failure_is_reported_once_and_its_repeats_become_a_series(server: FakeApi, running: Running) -> None:
    server.script("PATCH", STATUS_PATH, replies(200, {}))
    for _ in range(3):
        running.binder.report_failure(report())
        running.drain()
    (patch,) = server.of("PATCH", STATUS_PATH)
    assert patch.headers["Content-Type"] == "application/strategic-merge-patch+json"
    assert patch.json["status"]["conditions"][0]["reason"] == "Unschedulable"
    # The fake knows no such Event, so the series is created under the first one's name; the third is only counted.
    first, again = (one.json for one in server.of("POST", EVENTS_PATH))
    assert first["reason"] == "FailedScheduling"
    assert "series" not in first
    assert again["metadata"] == first["metadata"]
    assert again["series"]["count"] == 2
    assert len(server.of("PATCH", f"{EVENTS_PATH}/{first['metadata']['name']}")) == 1


def test_condition_patches_are_retried_on_conflict_but_not_for_another_pod(server: FakeApi, running: Running) -> None:
    server.script("PATCH", STATUS_PATH, replies(409, status(409, "Conflict", "modified")), replies(200, {}))
    running.binder.report_failure(report("first"))
    running.drain()
    assert len(server.of("PATCH", STATUS_PATH)) == 2
    other = "Precondition failed: UID in precondition: uid-a, UID in object meta: uid-b"
    server.script("PATCH", STATUS_PATH, replies(409, status(409, "Conflict", other)))
    running.binder.report_failure(report("second"))
    running.drain()
    assert len(server.of("PATCH", STATUS_PATH)) == 3


def test_a_report_under_way_ends_before_the_bind(server: FakeApi, running: Running) -> None:
    order: list[str] = []

    def slow_patch(exchange: Exchange) -> None:
        time.sleep(0.3)
        order.append("condition")
        exchange.json(200, {})

    def bind(exchange: Exchange) -> None:
        order.append("bind")
        exchange.json(201, {})

    server.script("PATCH", STATUS_PATH, slow_patch)
    server.script("POST", BIND_PATH, bind)
    running.binder.report_failure(report())
    wait_until(lambda: server.of("PATCH", STATUS_PATH))
    assert running.bind().outcome == "bound"
    assert order == ["condition", "bind"]


def test_events_that_hang_hold_no_bind_up_and_the_queue_is_bounded(server: FakeApi, running: Running) -> None:
    server.script("POST", EVENTS_PATH, hangs)
    server.script("POST", BIND_PATH, CREATED)
    for number in range(MAX_QUEUED + 100):
        ref = PodRef(namespace="default", name=f"p{number}", uid=f"u{number}")
        running.binder.event(
            EventRequest(pod=ref, scheduler_name="vane", type="Normal", reason="R", action="A", note="n")
        )
        if number % 1000 == 0:
            time.sleep(0.05)
    assert running.bind().outcome == "bound"
    wait_until(lambda: sum(running.dropped) >= 100 - N_WRITERS)
    assert sum(running.dropped) <= 101


def test_requests_of_many_threads_all_arrive(server: FakeApi, running: Running) -> None:
    numbers = count()
    paths = {}
    for number in range(400):
        path = f"/api/v1/namespaces/default/pods/p{number}/binding"
        paths[number] = path
        server.script("POST", path, CREATED)

    def work() -> None:
        while (number := next(numbers)) < 400:
            ref = PodRef(namespace="default", name=f"p{number}", uid=f"u{number}")
            running.binder.bind(BindRequest(pod=ref, node_name="n", scheduler_name="vane"))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    running.drain()
    assert {one.uid for one in running.results} == {f"u{number}" for number in range(400)}
    assert {one.outcome for one in running.results} == {"bound"}
