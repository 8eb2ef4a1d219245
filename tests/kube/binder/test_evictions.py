"""Victims of preemption: told why, deleted, and an Event about it, against a scripted API server."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.kube.binder.running_binder import EVENTS_PATH, POD_PATH, STATUS_PATH, Running
from tests.kube.fake_api import Exchange, FakeApi, cuts, replies, resets, status
from tests.support.waiting import wait_until

OK = replies(200, {})
OTHER_UID = "Precondition failed: UID in precondition: uid-a, UID in object meta: uid-b"


def test_the_condition_comes_before_the_deletion_and_an_event_after_it(server: FakeApi, running: Running) -> None:
    server.script("PATCH", STATUS_PATH, OK)
    server.script("DELETE", POD_PATH, OK)

    assert running.evict(generation=3).outcome == "evicted"

    (patch,) = server.of("PATCH", STATUS_PATH)
    (condition,) = patch.json["status"]["conditions"]
    assert condition.pop("lastTransitionTime").endswith("Z")
    assert patch.headers["Content-Type"] == "application/strategic-merge-patch+json"
    assert patch.json["metadata"] == {"uid": "uid-a"}
    assert condition == {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": "vane: preempting to accommodate a higher priority pod",
        "lastProbeTime": None,
        "observedGeneration": 3,
    }
    (deletion,) = server.of("DELETE", POD_PATH)
    assert deletion.json == {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "uid-a"}}
    (event,) = wait_until(lambda: server.of("POST", EVENTS_PATH), timeout=10)
    assert (event.json["reason"], event.json["action"], event.json["type"]) == ("Preempted", "Preempting", "Normal")
    assert event.json["note"] == "Preempted by pod uid-big on node n1"
    assert (event.json["regarding"]["uid"], event.json["related"]["uid"]) == ("uid-a", "uid-big")


def test_a_condition_that_is_true_already_keeps_its_time(server: FakeApi, running: Running) -> None:
    server.script("PATCH", STATUS_PATH, OK)
    server.script("DELETE", POD_PATH, OK)

    running.evict(is_marked=True)

    (patch,) = server.of("PATCH", STATUS_PATH)
    assert "lastTransitionTime" not in patch.json["status"]["conditions"][0]


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        pytest.param(replies(404, status(404, "NotFound", 'pods "a" not found')), "gone", id="not found"),
        pytest.param(replies(409, status(409, "Conflict", OTHER_UID)), "gone", id="another Pod"),
        pytest.param(replies(403, status(403, "Forbidden", "no")), "failed", id="forbidden"),
    ],
)
def test_what_is_final(server: FakeApi, running: Running, method: str, answer: object, outcome: str) -> None:
    path = {"PATCH": STATUS_PATH, "DELETE": POD_PATH}[method]
    server.script("PATCH", STATUS_PATH, OK)
    server.script("DELETE", POD_PATH, OK)
    server.script(method, path, answer)  # type: ignore[arg-type]

    assert running.evict().outcome == outcome

    assert len(server.of(method, path)) == 1
    assert len(server.of("DELETE", POD_PATH)) == (method == "DELETE")
    running.drain()
    assert server.of("POST", EVENTS_PATH) == []


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(replies(500, status(500, "InternalError", "etcd")), id="500"),
        pytest.param(cuts, id="closed"),
        pytest.param(resets, id="reset"),
    ],
)
def test_what_may_pass_is_tried_again(
    server: FakeApi, running: Running, method: str, fault: Callable[[Exchange], None]
) -> None:
    path = {"PATCH": STATUS_PATH, "DELETE": POD_PATH}[method]
    server.script("PATCH", STATUS_PATH, OK)
    server.script("DELETE", POD_PATH, OK)
    server.script(method, path, fault, OK)

    assert running.evict().outcome == "evicted"

    assert len(server.of(method, path)) == 2


def test_nothing_is_begun_past_the_deadline_of_the_lease(server: FakeApi, running: Running) -> None:
    running.lead_for(-1.0)

    assert running.evict().outcome == "expired"
    assert server.of("PATCH", STATUS_PATH) == []
    assert server.of("DELETE", POD_PATH) == []
