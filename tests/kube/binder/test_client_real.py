from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from scheduler.kube.binder.client import BinderClient
from scheduler.kube.binder.messages import BindRequest, BindResult, EventRequest, FailureReport, PodRef
from scheduler.kube.config import Connection, load_connection
from tests.support.controlplane import ControlPlane
from tests.support.kubeapi import KubeApi
from tests.support.waiting import wait_until

Json = dict[str, Any]


@pytest.fixture
def connection(control_plane: ControlPlane, api: KubeApi) -> Connection:
    return load_connection(str(control_plane.kubeconfig_path))


@pytest.fixture
def results() -> list[BindResult]:
    return []


@pytest.fixture
def binder(connection: Connection, results: list[BindResult]) -> Iterator[BinderClient]:
    made = BinderClient(connection, results.extend, pytest.fail)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def bind(binder: BinderClient, results: list[BindResult]) -> Callable[..., BindResult]:
    def bind_and_wait(pod: PodRef, node: str = "n1") -> BindResult:
        before = len(results)
        binder.bind(BindRequest(pod=pod, node_name=node, scheduler_name="vane"))
        wait_until(lambda: len(results) > before)
        assert binder.drain(60)
        return results[-1]

    return bind_and_wait


def ref(pod: Json) -> PodRef:
    metadata = pod["metadata"]
    return PodRef(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
    )


def events_of(api: KubeApi, pod: str) -> list[Json]:
    path = "/apis/events.k8s.io/v1/namespaces/default/events"
    return [event for event in api.list(path) if event["regarding"]["name"] == pod]


def condition_of(api: KubeApi, pod: str) -> Json:
    conditions = api.pod(pod).get("status", {}).get("conditions", [])
    return next((one for one in conditions if one["type"] == "PodScheduled"), {})


def test_client_certificates_bind_too(api: KubeApi, control_plane: ControlPlane, results: list[BindResult]) -> None:
    api.create_node("n1")
    pod = ref(api.create_pod("a"))
    kubeconfig = control_plane.make_kubeconfig("system:kube-scheduler")
    binder = BinderClient(load_connection(str(kubeconfig)), results.extend, pytest.fail)
    binder.start()
    binder.bind(BindRequest(pod=pod, node_name="n1", scheduler_name="vane"))
    assert binder.drain(60)
    binder.stop()
    assert [one.outcome for one in results] == ["bound"]


def test_bind(api: KubeApi, bind: Callable[..., BindResult]) -> None:
    api.create_node("n1")
    pod = ref(api.create_pod("a"))
    assert bind(pod).outcome == "bound"
    assert api.pod("a")["spec"]["nodeName"] == "n1"
    assert condition_of(api, "a")["status"] == "True"
    again = bind(pod)
    assert (again.outcome, again.node_name, again.code) == ("conflict_same_node", "n1", 409)
    other = bind(pod, "n2")
    assert (other.outcome, other.node_name, other.code) == ("conflict_other_node", "n1", 409)
    assert len(events_of(api, "a")) == 1


def test_another_pod_of_that_name_is_not_bound(api: KubeApi, bind: Callable[..., BindResult]) -> None:
    api.create_node("n1")
    old = ref(api.create_pod("a"))
    api.delete_pod("a", grace=0)
    assert bind(old).outcome == "deleted"
    api.create_pod("a")
    assert bind(old).outcome == "deleted"
    assert "nodeName" not in api.pod("a")["spec"]
    gated = ref(api.create_pod("gated", spec={"schedulingGates": [{"name": "example.com/wait"}]}))
    assert bind(gated).outcome == "gated"


def report(pod: PodRef, message: str, **changes: Any) -> FailureReport:
    fields: Json = {"pod": pod, "scheduler_name": "vane", "reason": "Unschedulable", "generation": 1}
    return FailureReport(**{**fields, "message": message, **changes})


def test_failure_reports(api: KubeApi, binder: BinderClient) -> None:
    pod = ref(api.create_pod("a"))
    binder.report_failure(report(pod, "first"))
    assert binder.drain(60)
    first = condition_of(api, "a")
    assert (first["status"], first["reason"], first["message"]) == ("False", "Unschedulable", "first")
    assert first["lastTransitionTime"]
    version = api.pod("a")["metadata"]["resourceVersion"]
    binder.report_failure(report(pod, "first"))
    assert binder.drain(60)
    assert api.pod("a")["metadata"]["resourceVersion"] == version

    changed = report(
        pod, "second", current_status="False", current_reason="Unschedulable", current_message="first",
        nominated_node_name="n1",
    )  # fmt: skip
    binder.report_failure(changed)
    assert binder.drain(60)
    second = condition_of(api, "a")
    assert second == {**first, "message": "second"}
    assert api.pod("a")["status"]["nominatedNodeName"] == "n1"
    binder.report_failure(report(pod, "third", nominated_node_name=""))
    assert binder.drain(60)
    assert "nominatedNodeName" not in api.pod("a")["status"]


def test_a_report_does_not_touch_another_pod_of_that_name(api: KubeApi, binder: BinderClient) -> None:
    old = ref(api.create_pod("a"))
    api.delete_pod("a", grace=0)
    api.create_pod("a")
    binder.report_failure(report(old, "late"))
    assert binder.drain(60)
    assert condition_of(api, "a") == {}


def test_a_repeated_event_becomes_a_series(api: KubeApi, binder: BinderClient) -> None:
    pod = ref(api.create_pod("a"))
    request = EventRequest(
        pod=pod, scheduler_name="vane", type="Warning", reason="FailedScheduling", action="Scheduling", note="x"
    )
    for _ in range(3):
        binder.event(request)
        assert binder.drain(60)
    (event,) = events_of(api, "a")
    assert event["series"]["count"] == 2  # as client-go: the third is written with the series' end


def shape(event: Json, pod: str, scheduler: str) -> Json:
    """Blank what must differ between two Pods and two schedulers: names, times, uids, versions."""
    text = {key: value for key, value in event.items() if key not in ("eventTime", "note")}
    metadata = {key: type(value).__name__ for key, value in event["metadata"].items() if key != "managedFields"}
    prefix, _, suffix = event["metadata"]["name"].rpartition(".")
    assert prefix == pod
    assert 0 < int(suffix, 16) < 2**63
    assert len(event["eventTime"]) == len("2006-01-02T15:04:05.000000Z")
    assert event["reportingController"] == scheduler
    text["reportingController"] = "S"
    assert event["reportingInstance"].startswith(f"{scheduler}-")
    text["reportingInstance"] = event["reportingInstance"].removeprefix(f"{scheduler}-")
    assert event["regarding"]["resourceVersion"].isdigit()
    text["regarding"] = {**event["regarding"], "name": "P", "uid": "U", "resourceVersion": "V"}
    return {**text, "metadata": metadata, "note": event["note"].replace(f"default/{pod}", "default/P")}


def only_event(api: KubeApi, pod: str, reason: str) -> Json:
    def found() -> list[Json]:
        return [event for event in events_of(api, pod) if event["reason"] == reason]

    return wait_until(found, what=f"{reason} of {pod}")[0]


def test_events_and_condition_equal_kube_schedulers(
    api: KubeApi, control_plane: ControlPlane, binder: BinderClient, bind: Callable[..., BindResult]
) -> None:
    api.create_node("n1", cpu="1")
    ours_bound = ref(api.create_pod("ours", scheduler_name="vane"))
    ours_full = ref(api.create_pod("ours-full", scheduler_name="vane", cpu="4"))
    with control_plane.start_kube_scheduler():
        api.create_pod("theirs")
        api.create_pod("theirs-full", cpu="4")
        api.wait_bound("theirs")
        wait_until(lambda: condition_of(api, "theirs-full"))
        theirs = only_event(api, "theirs", "Scheduled"), only_event(api, "theirs-full", "FailedScheduling")
    bind(ours_bound)
    binder.report_failure(report(ours_full, theirs[1]["note"]))
    assert binder.drain(60)
    ours = only_event(api, "ours", "Scheduled"), only_event(api, "ours-full", "FailedScheduling")

    assert shape(ours[0], "ours", "vane") == shape(theirs[0], "theirs", "default-scheduler")
    assert shape(ours[1], "ours-full", "vane") == shape(theirs[1], "theirs-full", "default-scheduler")

    def timeless(pod: str) -> Json:
        return {key: value for key, value in condition_of(api, pod).items() if key != "lastTransitionTime"}

    assert timeless("ours-full") == timeless("theirs-full")
    assert condition_of(api, "ours-full").keys() == condition_of(api, "theirs-full").keys()
    assert timeless("ours") == timeless("theirs")
