"""Events and conditions, field by field as the real kube-scheduler writes them for the same Pods."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.conftest import StartVane
from tests.support.controlplane import ControlPlane
from tests.support.kubeapi import KubeApi
from tests.support.waiting import wait_until

Json = dict[str, Any]

KUBE_SCHEDULER = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "leaderElection": {"leaderElect": False},
    "profiles": [{"schedulerName": "reference"}],
}

TOLERATE = [{"key": "dedicated", "operator": "Exists"}]
PODS: dict[str, Json] = {
    "fits": {"cpu": "100m"},
    "too-big": {"cpu": "64"},
    "too-big-in-two-ways": {"cpu": "64", "memory": "512Gi", "spec": {"tolerations": TOLERATE}},
    "several-reasons": {"cpu": "6", "spec": {"nodeSelector": {"disk": "ssd"}}},
    "nowhere": {"spec": {"nodeSelector": {"disk": "tape"}}},
    "port-taken": {"ports": [{"containerPort": 80, "hostPort": 8080}], "spec": {"nodeSelector": {"disk": "ssd"}}},
    "extended": {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}},
    "on-the-tainted": {"spec": {"tolerations": TOLERATE, "nodeSelector": {"kubernetes.io/hostname": "tainted"}}},
}


@pytest.fixture
def both(api: KubeApi, control_plane: ControlPlane, start_vane: StartVane) -> Iterator[KubeApi]:
    """Five different nodes, one of them full of ports, with both schedulers running."""
    api.create_node("plain-0")
    api.create_node("plain-1", cpu="4")
    api.create_node("fast", labels={"disk": "ssd"}, cpu="4")
    api.create_node("tainted", taints=[{"key": "dedicated", "value": "x", "effect": "NoSchedule"}])
    api.create_node("cordoned", unschedulable=True)
    api.create_pod("holder", ports=[{"containerPort": 80, "hostPort": 8080}], scheduler_name="nobody")
    api.bind("holder", "fast")
    start_vane()
    with control_plane.start_kube_scheduler(KUBE_SCHEDULER):
        yield api


def test_the_same_events_and_conditions(both: KubeApi) -> None:
    for name, shape in PODS.items():
        for scheduler in ("reference", "vane"):
            both.create_pod(f"{name}-{scheduler}", scheduler_name=scheduler, **shape)

    by_reference = {name: _written(both, name, "reference") for name in PODS}
    by_vane = {name: _written(both, name, "vane") for name in PODS}

    assert by_vane == by_reference


def _written(api: KubeApi, name: str, scheduler: str) -> Json:
    """Return the Pod's Event and condition with all that must differ replaced by what it stands for."""
    pod_name = f"{name}-{scheduler}"
    event = wait_until(lambda: _events_v1(api, pod_name), 15.0, f"an Event of {pod_name}")[0]
    condition = wait_until(lambda: _condition(api, pod_name), 15.0, f"the condition of {pod_name}")
    pod = api.pod(pod_name)
    return {
        "event": _normal(event, pod, scheduler),
        "condition": _normal(condition, pod, scheduler),
        "nominated": pod["status"].get("nominatedNodeName"),
    }


def _events_v1(api: KubeApi, name: str) -> list[Json]:
    events = api.list("/apis/events.k8s.io/v1/namespaces/default/events")
    return [event for event in events if event["regarding"]["name"] == name]


def _condition(api: KubeApi, name: str) -> Json | None:
    conditions = api.pod(name)["status"].get("conditions", [])
    return next((condition for condition in conditions if condition["type"] == "PodScheduled"), None)


def _normal(value: Any, pod: Json, scheduler: str) -> Any:
    if isinstance(value, dict):
        return {key: _normal(item, pod, scheduler) for key, item in value.items() if key not in _ALWAYS_DIFFERENT}
    if isinstance(value, list):
        return [_normal(item, pod, scheduler) for item in value]
    if not isinstance(value, str):
        return value
    text = value.replace(pod["metadata"]["uid"], "UID").replace(pod["spec"].get("nodeName", "\0"), "NODE")
    text = text.replace(pod["metadata"]["name"], "POD").replace(scheduler, "SCHEDULER")
    text = re.sub(r"\.[0-9a-f]{16}$", ".TIME", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", "MICROTIME", text)
    return re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME", text)


# Versions and identities that the API server gives to each object on its own.
_ALWAYS_DIFFERENT = {"resourceVersion", "uid", "managedFields"}
