"""Patches and binds with annotations on a real API server, with the least rights; binds on a second real one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scheduler.kube.binder.messages import PodRef
from scheduler.kube.config import load_connection
from tests.kube.binder.running_binder import Running
from tests.support.controlplane import ControlPlane
from tests.support.kubeapi import KubeApi

PATCH_STATUS = {"apiGroups": [""], "resources": ["pods/status"], "verbs": ["patch"]}
BIND = {"apiGroups": [""], "resources": ["pods/binding"], "verbs": ["create"]}
GET = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
EVENTS = {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]}


def ref(pod: dict[str, Any]) -> PodRef:
    metadata = pod["metadata"]
    return PodRef(namespace=metadata["namespace"], name=metadata["name"], uid=metadata["uid"])


def annotations_of(api: KubeApi, name: str) -> dict[str, str]:
    return dict(api.pod(name)["metadata"].get("annotations", {}))


@pytest.fixture
def running(control_plane: ControlPlane, api: KubeApi, start: Callable[..., Running]) -> Running:
    api.grant("vane", [PATCH_STATUS, EVENTS])
    return start(load_connection(str(control_plane.make_kubeconfig("vane"))))


def test_the_right_to_patch_the_status_is_enough_for_annotations(api: KubeApi, running: Running) -> None:
    api.create_node("n1")
    created = api.create_pod("a", annotations={"keep": "me", "drop": "me"}, labels={"app": "web"})

    result = running.patch({"vane.dev/node": "n1", "drop": None, "not-there": None}, "n1", ref(created))

    assert (result.outcome, result.message) == ("patched", "")
    pod = api.pod("a")
    assert pod["metadata"]["annotations"] == {"keep": "me", "vane.dev/node": "n1"}
    assert pod["status"]["nominatedNodeName"] == "n1"
    assert pod["metadata"]["labels"] == {"app": "web"}
    assert pod["spec"] == created["spec"]
    assert running.patch({}, "", ref(created)).outcome == "patched"
    assert "nominatedNodeName" not in api.pod("a")["status"]
    assert annotations_of(api, "a") == {"keep": "me", "vane.dev/node": "n1"}


def test_without_that_right_it_fails_with_the_servers_words(api: KubeApi, running: Running) -> None:
    pod = api.create_pod("a")
    api.delete("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/test:vane")

    def forbidden() -> bool:  # the authorizer learns of it by a watch
        return running.patch({"a": "b"}, pod=ref(pod)).outcome == "failed"

    api.wait_for(forbidden)
    assert 'cannot patch resource "pods/status"' in running.patched[-1].message


def test_a_pod_that_is_gone_or_another_one_is_not_touched(api: KubeApi, running: Running) -> None:
    old = ref(api.create_pod("a"))
    api.delete_pod("a", grace=0)
    assert running.patch({"a": "b"}, pod=old).outcome == "deleted"
    api.create_pod("a")
    result = running.patch({"a": "b"}, "n1", pod=old)
    assert (result.outcome, annotations_of(api, "a")) == ("deleted", {})


def test_what_is_no_annotation_is_refused_and_changes_nothing(api: KubeApi, running: Running) -> None:
    pod = ref(api.create_pod("a"))
    result = running.patch({"no good": "b", "good": "b"}, pod=pod)
    assert result.outcome == "failed"
    assert "no good" in result.message
    assert annotations_of(api, "a") == {}


def test_a_bind_brings_its_annotations_in_the_same_write(
    api: KubeApi, control_plane: ControlPlane, start: Callable[..., Running]
) -> None:
    api.grant("vane", [BIND, EVENTS])
    api.create_node("n1")
    pod = api.create_pod("a", annotations={"keep": "me"})
    watch = api.watch("/api/v1/namespaces/default/pods", pod["metadata"]["resourceVersion"])
    running = start(load_connection(str(control_plane.make_kubeconfig("vane"))))

    assert running.bind(pod=ref(pod), annotations={"vane.dev/why": "idle"}).outcome == "bound"

    first = next(iter(watch))["object"]
    assert first["spec"]["nodeName"] == "n1"
    assert first["metadata"]["annotations"] == {"keep": "me", "vane.dev/why": "idle"}


@pytest.fixture
def west(other_api: KubeApi) -> KubeApi:
    other_api.grant("vane", [GET, BIND])
    return other_api


def test_bound_in_another_cluster(
    api: KubeApi,
    control_plane: ControlPlane,
    west: KubeApi,
    other_control_plane: ControlPlane,
    start: Callable[..., Running],
    tmp_path: Path,
) -> None:
    api.grant("vane", [EVENTS])
    here = load_connection(str(control_plane.make_kubeconfig("vane", path=tmp_path / "here")))
    there = load_connection(str(other_control_plane.make_kubeconfig("vane", path=tmp_path / "there")))
    running = start(here, clusters={"west": there})
    west.create_node("n1")
    pod = ref(api.create_pod("a"))

    early = running.bind(pod=pod, cluster="west")
    assert (early.outcome, early.message) == ("failed", "there is no Pod default/a in cluster west (yet)")

    theirs = west.create_pod("a")
    assert theirs["metadata"]["uid"] != pod.uid
    assert running.bind(pod=pod, cluster="west").outcome == "bound"
    running.drain()
    assert west.pod("a")["spec"]["nodeName"] == "n1"
    assert "nodeName" not in api.pod("a")["spec"]
    assert west.events("a", reason="Scheduled") == []
    (event,) = api.events("a", reason="Scheduled")
    assert event["message"] == "Successfully assigned default/a to n1 in cluster west"

    assert running.bind(pod=pod, cluster="west").outcome == "conflict_same_node"
    other = running.bind("n2", pod=pod, cluster="west")
    assert (other.outcome, other.message) == ("failed", "Pod default/a in cluster west is on node n1 already")
