from __future__ import annotations

import logging

import pytest

from scheduler.kube.backoff import BackoffSettings
from scheduler.kube.ended_pods import ENDED_PODS, EndedPods
from scheduler.kube.reflector import ReflectorSettings
from scheduler.kube.resources import PODS
from scheduler.kube.transport import Transport
from scheduler.kube.watch_stream import Replaced
from tests.kube.fake_api import FakeApi, hangs, pod, pod_list, replies, resets, status
from tests.support.waiting import wait_until

FAST = ReflectorSettings(page_size=2, list_timeout_s=2.0, backoff=BackoffSettings(first_s=0.02, longest_s=0.1))
EMPTY = replies(200, pod_list())


def test_both_kinds_of_ended_pods_come_in_one_list(server: FakeApi, transport: Transport) -> None:
    more = replies(200, pod_list(pod("a"), pod("b"), token="more"))
    server.script("GET", PODS.path, more, replies(200, pod_list(pod("c"))), replies(200, pod_list(pod("d"))))
    heard: list[Replaced] = []

    EndedPods(transport, heard.append, FAST).run()

    (message,) = heard
    assert message.kind == ENDED_PODS
    assert [one.metadata.name for one in message.objects] == ["a", "b", "c", "d"]
    asked = [one.query for one in server.of("GET", PODS.path)]
    succeeded, failed = "status.phase=Succeeded", "status.phase=Failed"
    assert [query["fieldSelector"] for query in asked] == [succeeded, succeeded, failed]
    assert [query.get("continue") for query in asked] == [None, "more", None]


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(replies(500, status(500, "InternalError", "no")), id="refused"),
        pytest.param(resets, id="reset"),
        pytest.param(replies(200, {"kind": "PodList", "items": 7}), id="no list"),
    ],
)
def test_after_a_fault_it_begins_again(
    fault: object, server: FakeApi, transport: Transport, caplog: pytest.LogCaptureFixture
) -> None:
    page = replies(200, pod_list(pod("a"), token="more"))
    server.script("GET", PODS.path, page, fault, replies(200, pod_list(pod("a"))), EMPTY)  # type: ignore[arg-type]
    heard: list[Replaced] = []

    with caplog.at_level(logging.WARNING):
        EndedPods(transport, heard.append, FAST).run()

    assert [[one.metadata.name for one in message.objects] for message in heard] == [["a"]]
    assert "Pods that have ended: " in caplog.text


def test_once_stopped_it_tells_nothing(server: FakeApi, transport: Transport) -> None:
    server.script("GET", PODS.path, hangs)
    heard: list[Replaced] = []
    ended = EndedPods(transport, heard.append, FAST)
    ended.start()
    wait_until(lambda: server.of("GET", PODS.path))

    ended.stop()

    assert heard == []
