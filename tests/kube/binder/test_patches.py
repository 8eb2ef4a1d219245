"""Patches that plugins ask for: annotations and nominations, against a scripted API server."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from scheduler.kube.binder.messages import FailureReport, PatchRequest, PodRef
from tests.kube.binder.running_binder import BIND_PATH, CREATED, POD, STATUS_PATH, Running
from tests.kube.conftest import connection_to
from tests.kube.fake_api import Exchange, FakeApi, cuts, hangs, replies, resets, status
from tests.support.waiting import wait_until

OK = replies(200, {})
OTHER_UID = "Precondition failed: UID in precondition: uid-a, UID in object meta: uid-b"


def test_annotations_and_nomination_in_one_patch_of_the_status(server: FakeApi, running: Running) -> None:
    server.script("PATCH", STATUS_PATH, OK)
    assert running.patch({"vane.dev/node": "n1", "old": None}, "n1").outcome == "patched"
    assert running.patch({}, "").outcome == "patched"
    assert running.patch({"a": "b"}).outcome == "patched"
    requests = server.of("PATCH", STATUS_PATH)
    assert {one.headers["Content-Type"] for one in requests} == {"application/strategic-merge-patch+json"}
    assert [one.json for one in requests] == [
        {
            "metadata": {"uid": "uid-a", "annotations": {"vane.dev/node": "n1", "old": None}},
            "status": {"nominatedNodeName": "n1"},
        },
        {"metadata": {"uid": "uid-a"}, "status": {"nominatedNodeName": None}},
        {"metadata": {"uid": "uid-a", "annotations": {"a": "b"}}},
    ]


@pytest.mark.parametrize(
    ("answer", "outcome", "message"),
    [
        pytest.param(
            replies(404, status(404, "NotFound", 'pods "a" not found')), "deleted", 'pods "a" not found', id="gone"
        ),
        pytest.param(replies(409, status(409, "Conflict", OTHER_UID)), "deleted", OTHER_UID, id="another Pod"),
        pytest.param(replies(403, status(403, "Forbidden", "no")), "failed", "403 no", id="forbidden"),
        pytest.param(
            replies(422, status(422, "Invalid", 'annotations: "guid!" is no name')),
            "failed",
            '422 annotations: "guid!" is no name',
            id="invalid, though it says uid",
        ),
    ],
)
def test_what_is_final(server: FakeApi, running: Running, answer: object, outcome: str, message: str) -> None:
    server.script("PATCH", STATUS_PATH, answer)  # type: ignore[arg-type]
    result = running.patch({"a": "b"})
    assert (result.outcome, result.message) == (outcome, message)
    assert len(server.of("PATCH", STATUS_PATH)) == 1


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(replies(409, status(409, "Conflict", "the object has been modified")), id="conflict"),
        pytest.param(replies(500, status(500, "InternalError", "etcd")), id="500"),
        pytest.param(cuts, id="closed"),
        pytest.param(resets, id="reset"),
    ],
)
def test_what_may_pass_is_tried_again(server: FakeApi, running: Running, fault: Callable[[Exchange], None]) -> None:
    server.script("PATCH", STATUS_PATH, fault, OK)
    assert running.patch({"a": "b"}).outcome == "patched"
    server.script("PATCH", STATUS_PATH, fault)
    before = len(server.of("PATCH", STATUS_PATH))
    assert running.patch({"a": "b"}).outcome == "failed"
    assert len(server.of("PATCH", STATUS_PATH)) - before == 4


def test_nobody_listens(start: Callable[..., Running]) -> None:
    result = start(connection_to("http://127.0.0.1:1")).patch({"a": "b"})
    assert result.outcome == "failed"
    assert "127.0.0.1" in result.message


def test_nothing_is_sent_once_the_lease_may_be_another_replicas(server: FakeApi, running: Running) -> None:
    server.script("PATCH", STATUS_PATH, OK)
    running.lead_for(-1.0)
    result = running.patch({"a": "b"})
    assert (result.outcome, result.message) == ("expired", "not sent: the lease's deadline has passed")
    assert server.of("PATCH", STATUS_PATH) == []
    running.lead_for(30.0)
    assert running.patch({"a": "b"}).outcome == "patched"


def test_patches_of_one_pod_keep_their_order_and_hold_up_no_other_pod(server: FakeApi, running: Running) -> None:
    def slow_error(exchange: Exchange) -> None:
        time.sleep(0.3)
        exchange.json(500, {})

    server.script("PATCH", STATUS_PATH, slow_error, OK)
    other = PodRef(namespace="default", name="b", uid="uid-b")
    server.script("PATCH", "/api/v1/namespaces/default/pods/b/status", OK)
    for number, pod, value in ((1, POD, "n1"), (2, POD, "n2"), (3, other, "n3")):
        running.binder.patch(PatchRequest(number=number, pod=pod, annotations={"vane.dev/node": value}))
    wait_until(lambda: len(running.patched) == 3)
    assert [one.number for one in running.patched] == [3, 1, 2]
    values = [one.json["metadata"]["annotations"]["vane.dev/node"] for one in server.of("PATCH", STATUS_PATH)]
    assert values == ["n1", "n1", "n2"]


def test_a_report_of_an_earlier_attempt_does_not_come_after_the_decision(server: FakeApi, running: Running) -> None:
    server.script("PATCH", STATUS_PATH, OK)
    late = FailureReport(pod=POD, scheduler_name="vane", reason="Unschedulable", message="no room", generation=1)
    running.binder.report_failure(late)
    running.patch({"vane.dev/node": "n1"})
    running.drain()
    last = server.of("PATCH", STATUS_PATH)[-1].json
    assert last["metadata"].get("annotations") == {"vane.dev/node": "n1"}


def test_patches_that_hang_hold_no_bind_up_and_are_waited_for_by_drain(server: FakeApi, running: Running) -> None:
    server.script("POST", BIND_PATH, CREATED)
    for number in range(100):
        path = f"/api/v1/namespaces/default/pods/p{number}/status"
        server.script("PATCH", path, hangs)
        stuck = PodRef(namespace="default", name=f"p{number}", uid=f"u{number}")
        running.binder.patch(PatchRequest(number=number, pod=stuck, annotations={"a": "b"}))
    assert running.bind().outcome == "bound"
    assert not running.binder.drain(0.2)
