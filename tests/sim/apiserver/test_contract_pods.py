"""What a scheduler does to Pods, and how they go; the same on both API servers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sim.apiserver.cluster import NODES, PODS, Cluster, plain, watched
from tests.support.kubeapi import MERGE_PATCH, STRATEGIC_MERGE_PATCH
from tests.support.manifests import Json


def binding(name: str, node: str = "n1", **metadata: Any) -> Json:
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, **metadata}, "target": target}


def test_a_binding_sets_node_condition_and_annotations_in_one_write(cluster: Cluster) -> None:
    cluster.api.create_pod("a", annotations={"keep": "me"})
    pod = cluster.api.patch(f"{PODS}/a/status", {"status": {"nominatedNodeName": "n2"}})
    uid, version = pod["metadata"]["uid"], pod["metadata"]["resourceVersion"]
    answer = cluster.ask("POST", f"{PODS}/a/binding", binding("a", uid=uid, annotations={"vane.dev/why": "idle"}))
    assert (answer.code, answer.body["status"]) == (201, "Success")

    (changed,) = [line["object"] for line in watched(cluster, PODS, version, 1)]
    assert plain(changed) == plain(cluster.api.pod("a"))
    assert changed["spec"] == {**pod["spec"], "nodeName": "n1"}
    assert changed["metadata"]["annotations"] == {"keep": "me", "vane.dev/why": "idle"}
    assert changed["metadata"]["generation"] == 1
    assert "nominatedNodeName" not in changed["status"]
    late = cluster.ask("PATCH", f"{PODS}/a/status", {"status": {"nominatedNodeName": "n2"}}, content_type=MERGE_PATCH)
    assert (late.code, late.body["details"]["causes"][0]["field"]) == (422, "status.nominatedNodeName")
    (condition,) = changed["status"]["conditions"]
    assert condition.pop("lastTransitionTime")
    assert condition == {"type": "PodScheduled", "status": "True", "lastProbeTime": None}


def test_a_binding_that_cannot_be_is_a_conflict(cluster: Cluster) -> None:
    cluster.api.create_pod("a")
    stranger = cluster.ask("POST", f"{PODS}/a/binding", binding("a", uid="another"))
    assert (stranger.code, stranger.reason) == (409, "Conflict")
    assert "Precondition failed: UID in precondition: another" in stranger.message
    cluster.api.bind("a", "n1")
    for node in ("n1", "n2"):
        again = cluster.ask("POST", f"{PODS}/a/binding", binding("a", node))
        assert (again.code, again.reason) == (409, "Conflict")
        assert again.message == (
            'Operation cannot be fulfilled on pods/binding "a": pod a is already assigned to node "n1"'
        )
        assert again.body["details"] == {"name": "a", "kind": "pods/binding"}
    assert cluster.ask("POST", f"{PODS}/none/binding", binding("none")).code == 404
    cluster.api.create_pod("gated", spec={"schedulingGates": [{"name": "x.io/wait"}]})
    gated = cluster.ask("POST", f"{PODS}/gated/binding", binding("gated"))
    assert (gated.code, gated.message.endswith("pod gated has non-empty .spec.schedulingGates")) == (409, True)
    cluster.api.create_pod("b")
    assert cluster.ask("POST", f"{PODS}/b/binding", binding("b", "")).message == "target.name: Required value"


def test_the_condition_of_a_failed_attempt_merges_into_the_status(cluster: Cluster) -> None:
    pod = cluster.api.create_pod("a", labels={"app": "web"})
    failed = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/1",
        "lastProbeTime": None,
    }
    patch = {
        "metadata": {"uid": pod["metadata"]["uid"]},
        "status": {"conditions": [failed], "nominatedNodeName": "n1"},
        "spec": {"nodeName": "n2"},
    }
    changed = cluster.api.patch(f"{PODS}/a/status", patch, STRATEGIC_MERGE_PATCH)
    assert changed["spec"] == pod["spec"]
    assert changed["status"]["nominatedNodeName"] == "n1"
    assert changed["status"]["conditions"] == [{**failed, "lastTransitionTime": None}]

    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z"}
    patch = {"status": {"conditions": [ready, {"type": "PodScheduled", "message": "0/2"}], "nominatedNodeName": None}}
    changed = cluster.api.patch(f"{PODS}/a/status", patch, STRATEGIC_MERGE_PATCH)
    assert "nominatedNodeName" not in changed["status"]
    conditions = {one["type"]: one for one in changed["status"]["conditions"]}
    assert conditions["PodScheduled"] == {**failed, "message": "0/2", "lastTransitionTime": None}
    assert conditions["Ready"] == {**ready, "lastProbeTime": None}

    patch = {"metadata": {"annotations": {"vane.dev/node": "n1"}}}
    changed = cluster.api.patch(f"{PODS}/a/status", patch, STRATEGIC_MERGE_PATCH)
    assert changed["metadata"]["annotations"] == {"vane.dev/node": "n1"}


def test_a_patch_with_the_uid_of_another_pod_is_refused(cluster: Cluster) -> None:
    cluster.api.create_pod("a")
    patch = {"metadata": {"uid": "another"}, "status": {"nominatedNodeName": "n1"}}
    refused = cluster.ask("PATCH", f"{PODS}/a/status", patch, content_type=STRATEGIC_MERGE_PATCH)
    assert (refused.code, refused.reason) == (422, "Invalid")
    assert "metadata.uid" in refused.message
    bad = {"metadata": {"annotations": {"no good": "x"}}}
    refused = cluster.ask("PATCH", f"{PODS}/a/status", bad, content_type=STRATEGIC_MERGE_PATCH)
    assert (refused.code, [one["field"] for one in refused.body["details"]["causes"]]) == (
        422,
        ["metadata.annotations"],
    )


def test_status_and_spec_are_written_apart(cluster: Cluster) -> None:
    pod = cluster.api.create_pod("a")
    running = {**pod, "status": {"phase": "Running", "hostIP": "10.0.0.1"}, "spec": {**pod["spec"], "nodeName": "n2"}}
    changed = cluster.api.put(f"{PODS}/a/status", running)
    assert (changed["spec"], changed["status"]["phase"]) == (pod["spec"], "Running")
    patched = cluster.api.patch(f"{PODS}/a", {"status": {"phase": "Failed"}}, MERGE_PATCH)
    assert patched["status"]["phase"] == "Running"


def _story(cluster: Cluster, version: str, n: int) -> list[tuple[str, str, int | None]]:
    """Return type, name and seconds of grace of the next changes of Pods after a version."""
    found = []
    for line in watched(cluster, PODS, version, n):
        metadata = line["object"]["metadata"]
        assert ("deletionTimestamp" in metadata) is ("deletionGracePeriodSeconds" in metadata)
        found.append((line["type"], metadata["name"], metadata.get("deletionGracePeriodSeconds")))
    return found


@pytest.mark.parametrize("phase", ["Pending", "Succeeded"])
def test_a_pod_that_does_not_run_is_gone_at_once(cluster: Cluster, phase: str) -> None:
    version = cluster.api.create_pod("a")["metadata"]["resourceVersion"]
    if phase != "Pending":
        cluster.api.bind("a", "n1")
        version = cluster.api.patch(f"{PODS}/a/status", {"status": {"phase": phase}})["metadata"]["resourceVersion"]
    answer = cluster.ask("DELETE", f"{PODS}/a")
    assert (answer.code, answer.body["kind"], answer.body["metadata"]["deletionGracePeriodSeconds"]) == (200, "Pod", 0)
    assert _story(cluster, version, 2) == [("MODIFIED", "a", 0), ("DELETED", "a", 0)]


def test_a_running_pod_goes_through_its_grace(cluster: Cluster) -> None:
    """The embedded server ends it by itself at once; at the real one it is the kubelet that says the Pod has ended."""
    cluster.api.create_pod("a")
    cluster.api.bind("a", "n1")
    version = cluster.api.pod("a")["metadata"]["resourceVersion"]
    answer = cluster.ask("DELETE", f"{PODS}/a", {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 7})
    assert (answer.code, answer.body["metadata"]["deletionGracePeriodSeconds"]) == (200, 7)
    assert answer.body["metadata"]["generation"] == 2
    if cluster.name == "real":
        cluster.api.delete_pod("a", grace=0)
    assert _story(cluster, version, 3) == [("MODIFIED", "a", 7), ("MODIFIED", "a", 0), ("DELETED", "a", 0)]
    assert cluster.ask("GET", f"{PODS}/a").code == 404


def test_a_pod_deleted_without_grace_is_gone_at_once_too(cluster: Cluster) -> None:
    cluster.api.create_pod("a")
    cluster.api.bind("a", "n1")
    version = cluster.api.pod("a")["metadata"]["resourceVersion"]
    cluster.api.delete_pod("a", grace=0)
    assert _story(cluster, version, 2) == [("MODIFIED", "a", 0), ("DELETED", "a", 0)]
    assert cluster.api.create_pod("a")["metadata"]["generation"] == 1


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ({"fieldSelector": "spec.nodeName=n1"}, "b"),
        ({"fieldSelector": "spec.nodeName="}, "ac"),
        ({"fieldSelector": "spec.schedulerName=vane"}, "c"),
        ({"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"}, "ac"),
        ({"fieldSelector": "metadata.name=a"}, "a"),
        ({"fieldSelector": "metadata.namespace==default,metadata.name!=a"}, "bc"),
        ({"labelSelector": "app=web"}, "ab"),
        ({"labelSelector": "app!=web"}, "c"),
        ({"labelSelector": "app in (web, db),tier"}, "b"),
        ({"labelSelector": "app notin (web)"}, "c"),
        ({"labelSelector": "!tier"}, "ac"),
        ({"labelSelector": "app=web", "fieldSelector": "spec.nodeName=n1"}, "b"),
    ],
)
def test_selectors(cluster: Cluster, selector: dict[str, str], found: str) -> None:
    cluster.api.create_pod("a", labels={"app": "web"})
    cluster.api.create_pod("b", labels={"app": "web", "tier": "1"}, node_name="n1")
    cluster.api.patch(f"{PODS}/b/status", {"status": {"phase": "Succeeded"}})
    cluster.api.create_pod("c", scheduler_name="vane")
    names = [pod["metadata"]["name"] for pod in cluster.api.pods("default", **selector)]
    assert "".join(names) == found


def test_an_unknown_field_or_a_broken_selector_is_refused(cluster: Cluster) -> None:
    answer = cluster.ask("GET", f"{PODS}?fieldSelector=spec.nope%3Dx")
    assert (answer.code, answer.message) == (400, "field label not supported: spec.nope")
    assert cluster.ask("GET", f"{PODS}?labelSelector=a%3D%3D%3Db").code == 400
    assert cluster.ask("GET", f"{NODES}?limit=many").code == 400


def test_nodes_are_selected_by_whether_they_take_pods(cluster: Cluster) -> None:
    cluster.api.create_node("n1")
    cluster.api.create_node("n2", unschedulable=True)
    for value, name in (("true", "n2"), ("false", "n1")):
        found = cluster.api.list(NODES, fieldSelector=f"spec.unschedulable={value}")
        assert [node["metadata"]["name"] for node in found] == [name]
