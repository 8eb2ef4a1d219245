"""Objects of any kind: created, read, listed, replaced, patched and deleted; the same on both API servers."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.sim.apiserver.cluster import LEASES, NODES, PODS, Cluster, plain, timeless
from tests.support import manifests
from tests.support.kubeapi import MERGE_PATCH, STRATEGIC_MERGE_PATCH
from tests.support.manifests import Json


def test_a_created_pod_has_the_defaults_that_vane_and_kubectl_look_at(cluster: Cluster) -> None:
    body = manifests.pod("a", requests={"memory": "64Mi"}, limits={"cpu": "200m", "nvidia.com/gpu": "1"}, cpu=None)
    answer = cluster.ask("POST", PODS, body)

    assert answer.code == 201
    pod = plain(answer.body)
    metadata = pod.pop("metadata")
    assert re.fullmatch(r"[0-9a-f-]{36}", metadata.pop("uid"))
    assert metadata.pop("resourceVersion").isdecimal()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", metadata.pop("creationTimestamp"))
    assert metadata == {"name": "a", "namespace": "default", "generation": 1}
    toleration = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    assert pod == {
        "kind": "Pod",
        "apiVersion": "v1",
        "spec": {
            "containers": [
                {
                    "name": "app",
                    "image": "pause:3.10",
                    "resources": {
                        "limits": {"cpu": "200m", "nvidia.com/gpu": "1"},
                        "requests": {"cpu": "200m", "memory": "64Mi", "nvidia.com/gpu": "1"},
                    },
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                    "imagePullPolicy": "IfNotPresent",
                }
            ],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "securityContext": {},
            "schedulerName": "default-scheduler",
            "tolerations": [{"key": f"node.kubernetes.io/{key}", **toleration} for key in ("not-ready", "unreachable")],
            "priority": 0,
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
        },
        "status": {"phase": "Pending", "qosClass": "Burstable"},
    }
    assert plain(cluster.api.pod("a")) == plain(answer.body)


@pytest.mark.parametrize(
    ("shape", "qos"),
    [
        pytest.param({"cpu": None, "memory": None}, "BestEffort", id="nothing"),
        pytest.param({"limits": {"cpu": "100m", "memory": "128Mi"}}, "Guaranteed", id="limits as requests"),
        pytest.param({"limits": {"cpu": "200m", "memory": "128Mi"}}, "Burstable", id="a higher limit"),
    ],
)
def test_the_quality_of_service_follows_from_requests_and_limits(cluster: Cluster, shape: Any, qos: str) -> None:
    assert cluster.api.create_pod("a", **shape)["status"] == {"phase": "Pending", "qosClass": qos}


def test_scheduling_gates_and_own_tolerations_are_kept(cluster: Cluster) -> None:
    own = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    pod = cluster.api.create_pod("a", spec={"schedulingGates": [{"name": "x.io/wait"}], "tolerations": [own]})
    assert pod["spec"]["schedulingGates"] == [{"name": "x.io/wait"}]
    assert [one["key"] for one in pod["spec"]["tolerations"]] == [own["key"], "node.kubernetes.io/unreachable"]
    (condition,) = pod["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "SchedulingGated")


def test_a_node_keeps_the_status_it_is_created_with(cluster: Cluster) -> None:
    node = cluster.api.create_node("n1", cpu="4", labels={"zone": "a"})
    assert node["status"]["allocatable"]["cpu"] == "4"
    assert node["status"]["nodeInfo"]["kubeletVersion"] == ""
    assert node["status"]["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 0}}
    assert plain(cluster.api.node("n1")) == plain(node)
    assert "generation" not in node["metadata"]


def test_there_are_the_namespaces_of_every_cluster(cluster: Cluster) -> None:
    names = {one["metadata"]["name"] for one in cluster.api.list("/api/v1/namespaces")}
    assert {"default", "kube-system", "kube-public", "kube-node-lease"} <= names
    created = timeless(cluster.api.create_namespace("team-a", labels={"x": "y"}))
    assert created["metadata"]["labels"] == {"kubernetes.io/metadata.name": "team-a", "x": "y"}
    assert (created["spec"], created["status"]) == ({"finalizers": ["kubernetes"]}, {"phase": "Active"})


def test_names_are_generated(cluster: Cluster) -> None:
    body = manifests.pod("")
    body["metadata"] = {"generateName": "web-"}
    names = {cluster.api.post(PODS, body)["metadata"]["name"] for _ in range(3)}
    assert len(names) == 3
    assert all(re.fullmatch(r"web-[a-z0-9]{5}", name) for name in names)


def test_versions_grow_over_all_kinds_of_objects(cluster: Cluster) -> None:
    versions = [
        int(obj["metadata"]["resourceVersion"])
        for obj in (cluster.api.create_node("n1"), cluster.api.create_pod("a"), cluster.api.create_node("n2"))
    ]
    assert versions == sorted(set(versions))
    assert int(cluster.api.get(NODES)["metadata"]["resourceVersion"]) >= versions[-1]


def _pod(**fields: Any) -> Json:
    return {**manifests.pod("a"), **fields}


def _container(**fields: Any) -> Json:
    return _pod(spec={"containers": [{"name": "app", "image": "i", **fields}]})


def _labelled(labels: Any) -> Json:
    return _pod(metadata={"name": "a", "labels": labels})


def _too_much() -> Json:
    return _container(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}})


@pytest.mark.parametrize(
    ("body", "code", "reason", "fields"),
    [
        pytest.param(_pod(metadata={"name": "No_Name"}), 422, "Invalid", ["metadata.name"], id="bad name"),
        pytest.param(_pod(metadata={}, spec={}), 422, "Invalid", ["metadata.name", "spec.containers"], id="nothing"),
        pytest.param(_container(image=""), 422, "Invalid", ["spec.containers[0].image"], id="no image"),
        pytest.param(_container(name="A"), 422, "Invalid", ["spec.containers[0].name"], id="bad container name"),
        pytest.param(_too_much(), 422, "Invalid", ["spec.containers[0].resources.requests"], id="request over limit"),
        pytest.param(
            _pod(metadata={"name": "a", "labels": {"no label": ""}}),
            422,
            "Invalid",
            ["metadata.labels"],
            id="bad label",
        ),
        pytest.param(_container(resources={"requests": {"cpu": "much"}}), 400, "BadRequest", [], id="no quantity"),
        pytest.param(_pod(spec={"containers": "app"}), 400, "BadRequest", [], id="no list"),
        pytest.param(_labelled({"a": 1}), 400, "BadRequest", [], id="label is no text"),
        pytest.param(_pod(kind="Node"), 400, "BadRequest", [], id="another kind"),
        pytest.param(_pod(metadata={"name": "a", "namespace": "other"}), 400, "BadRequest", [], id="other namespace"),
        pytest.param("{nonsense", 400, "BadRequest", [], id="no JSON"),
        pytest.param([1], 400, "BadRequest", [], id="no object"),
    ],
)
def test_an_impossible_pod_is_refused_with_the_fields_named(
    cluster: Cluster, body: Any, code: int, reason: str, fields: list[str]
) -> None:
    answer = cluster.ask("POST", PODS, body)
    assert (answer.code, answer.reason, answer.body["code"]) == (code, reason, code)
    assert (answer.body["kind"], answer.body["status"]) == ("Status", "Failure")
    causes = answer.body.get("details", {}).get("causes", ())
    assert [cause["field"] for cause in causes] == fields
    assert cluster.api.pods("default") == []


def test_refusals_are_worded_alike(cluster: Cluster) -> None:
    cluster.api.create_pod("a")
    taken = cluster.ask("POST", PODS, manifests.pod("a"))
    assert (taken.code, taken.reason, taken.message) == (409, "AlreadyExists", 'pods "a" already exists')
    assert taken.body["details"] == {"name": "a", "kind": "pods"}
    none = cluster.ask("GET", f"{LEASES}/none")
    assert (none.code, none.message) == (404, 'leases.coordination.k8s.io "none" not found')
    assert none.body["details"] == {"name": "none", "group": "coordination.k8s.io", "kind": "leases"}
    nowhere = cluster.ask("POST", "/api/v1/namespaces/nope/pods", manifests.pod("a", namespace="nope"))
    assert (nowhere.code, nowhere.message) == (404, 'namespaces "nope" not found')
    nameless = cluster.ask("POST", PODS, _pod(metadata={}))
    assert nameless.message == 'Pod "" is invalid: metadata.name: Required value: name or generateName is required'
    misspelt = cluster.ask("POST", f"{PODS}?fieldValidation=Strict", _container(imagePullPolicies="Never"))
    assert misspelt.code == 400
    assert misspelt.message == (
        'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field '
        '"spec.containers[0].imagePullPolicies"'
    )


def test_an_update_needs_the_version_it_replaces(cluster: Cluster) -> None:
    first = cluster.api.create_node("n1")
    second = cluster.api.put(f"{NODES}/n1", {**first, "spec": {"unschedulable": True}})
    assert second["spec"] == {"unschedulable": True}
    assert int(second["metadata"]["resourceVersion"]) > int(first["metadata"]["resourceVersion"])
    assert second["status"] == first["status"]

    late = cluster.ask("PUT", f"{NODES}/n1", {**first, "spec": {}})
    assert (late.code, late.reason) == (409, "Conflict")
    assert late.message.startswith('Operation cannot be fulfilled on nodes "n1": the object has been modified;')
    other = {**second, "metadata": {**second["metadata"], "uid": "another"}}
    assert cluster.ask("PUT", f"{NODES}/n1", other).code == 409
    assert cluster.ask("PUT", f"{NODES}/n2", second).code == 400
    assert plain(cluster.api.node("n1")) == plain(second)


def test_a_write_that_changes_nothing_makes_no_version(cluster: Cluster) -> None:
    pod = cluster.api.create_pod("a", labels={"x": "y"})
    same = cluster.api.patch(f"{PODS}/a", {"metadata": {"labels": {"x": "y"}}})
    assert same["metadata"]["resourceVersion"] == pod["metadata"]["resourceVersion"]


def test_the_spec_of_a_pod_stays_but_for_what_may_change(cluster: Cluster) -> None:
    cluster.api.create_pod("a", node_name="n1")
    refused = cluster.ask("PATCH", f"{PODS}/a", {"spec": {"nodeName": "n2"}}, content_type=MERGE_PATCH)
    assert (refused.code, refused.reason) == (422, "Invalid")
    assert [cause["field"] for cause in refused.body["details"]["causes"]] == ["spec"]

    other: Json
    for other in ({"terminationGracePeriodSeconds": 5}, {"schedulerName": "other"}, {"containers": []}):
        assert cluster.ask("PATCH", f"{PODS}/a", {"spec": other}, content_type=MERGE_PATCH).code == 422, other
    for wrong, field in (
        ({"spec": {"containers": [{"name": "app", "image": ""}]}}, "spec.containers[0].image"),
        ({"metadata": {"labels": {"no label": ""}}}, "metadata.labels"),
        ({"metadata": {"uid": "another"}}, "metadata.uid"),
    ):
        refused = cluster.ask("PATCH", f"{PODS}/a", wrong, content_type=STRATEGIC_MERGE_PATCH)
        assert (refused.code, refused.body["details"]["causes"][0]["field"]) == (422, field)
    renamed = cluster.ask("PATCH", f"{PODS}/a", {"metadata": {"name": "b"}}, content_type=MERGE_PATCH)
    assert renamed.message == "the name of the object (b) does not match the name on the URL (a)"
    image = {"spec": {"containers": [{"name": "app", "image": "pause:3.11"}]}}
    patched = cluster.api.patch(f"{PODS}/a", image, STRATEGIC_MERGE_PATCH)
    (container,) = patched["spec"]["containers"]
    assert (container["image"], container["resources"]["requests"]["cpu"]) == ("pause:3.11", "100m")
    assert patched["metadata"]["generation"] == 2


def test_gates_are_taken_away_and_tolerations_added(cluster: Cluster) -> None:
    pod = cluster.api.create_pod("a", spec={"schedulingGates": [{"name": "x.io/a"}, {"name": "x.io/b"}]})
    patch = {"spec": {"schedulingGates": [{"name": "x.io/b"}]}}
    assert cluster.api.patch(f"{PODS}/a", patch)["spec"]["schedulingGates"] == patch["spec"]["schedulingGates"]
    more = {"spec": {"schedulingGates": [{"name": "x.io/b"}, {"name": "x.io/c"}]}}
    assert cluster.ask("PATCH", f"{PODS}/a", more, content_type=MERGE_PATCH).code == 422
    assert "schedulingGates" not in cluster.api.patch(f"{PODS}/a", {"spec": {"schedulingGates": None}})["spec"]
    again = cluster.api.patch(f"{PODS}/a", {"spec": {"tolerations": []}})
    assert again["spec"]["tolerations"] == pod["spec"]["tolerations"]
    added = [*pod["spec"]["tolerations"], {"key": "x", "operator": "Exists"}]
    changed = cluster.api.patch(f"{PODS}/a", {"spec": {"tolerations": added}})
    assert changed["spec"]["tolerations"] == added
    assert cluster.ask("PATCH", f"{PODS}/a", {"spec": {"tolerations": added[:2]}}, content_type=MERGE_PATCH).code == 422
    assert changed["metadata"]["generation"] == 4


def test_a_merge_patch_replaces_lists_and_takes_away_what_is_null(cluster: Cluster) -> None:
    taints = [{"key": key, "effect": "NoSchedule"} for key in ("a", "b")]
    cluster.api.create_node("n1", labels={"x": "1", "y": "2"}, taints=taints)
    patch = {"metadata": {"labels": {"x": None, "z": "3"}}, "spec": {"taints": taints[:1]}}
    node = cluster.api.patch(f"{NODES}/n1", patch, MERGE_PATCH)
    labels = node["metadata"]["labels"]
    assert (labels["y"], labels["z"], "x" in labels) == ("2", "3", False)
    assert node["spec"]["taints"] == taints[:1]


def test_a_strategic_merge_patch_merges_lists_by_their_key(cluster: Cluster) -> None:
    cluster.api.create_node("n1")
    pressure = {"type": "DiskPressure", "status": "True", "reason": "Full"}
    node = cluster.api.patch(f"{NODES}/n1/status", {"status": {"conditions": [pressure]}}, STRATEGIC_MERGE_PATCH)
    assert {one["type"] for one in node["status"]["conditions"]} == {"Ready", "DiskPressure"}
    gone = {"$patch": "delete", "type": "DiskPressure"}
    node = cluster.api.patch(f"{NODES}/n1/status", {"status": {"conditions": [gone]}}, STRATEGIC_MERGE_PATCH)
    assert [one["type"] for one in node["status"]["conditions"]] == ["Ready"]
    ready = {"$patch": "replace"}, {"type": "Ready", "status": "False"}
    node = cluster.api.patch(f"{NODES}/n1/status", {"status": {"conditions": list(ready)}}, STRATEGIC_MERGE_PATCH)
    assert [(one["type"], one.get("reason")) for one in node["status"]["conditions"]] == [("Ready", None)]
    keyless = {"status": {"conditions": [{"status": "True"}]}}
    assert cluster.ask("PATCH", f"{NODES}/n1/status", keyless, content_type=STRATEGIC_MERGE_PATCH).code >= 400


def test_patches_of_other_kinds_are_refused(cluster: Cluster) -> None:
    cluster.api.create_pod("a")
    refused = cluster.ask("PATCH", f"{PODS}/a", {"spec": {}}, content_type="application/strange")
    assert (refused.code, refused.reason) == (415, "UnsupportedMediaType")


def test_delete_of_what_is_no_pod_answers_with_its_uid(cluster: Cluster) -> None:
    node = cluster.api.create_node("n1")
    wrong = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "another"}}
    assert cluster.ask("DELETE", f"{NODES}/n1", wrong).code == 409
    gone = cluster.ask("DELETE", f"{NODES}/n1")
    assert (gone.code, gone.body["status"]) == (200, "Success")
    assert gone.body["details"] == {"name": "n1", "kind": "nodes", "uid": node["metadata"]["uid"]}
    assert cluster.ask("DELETE", f"{NODES}/n1").code == 404


def test_deletecollection_takes_what_is_selected(cluster: Cluster) -> None:
    for name, app in (("a", "web"), ("b", "web"), ("c", "db")):
        cluster.api.create_pod(name, labels={"app": app})
    gone = cluster.api.delete(PODS, labelSelector="app=web")
    assert gone["kind"] == "PodList"
    assert sorted(one["metadata"]["name"] for one in gone["items"]) == ["a", "b"]
    assert [one["metadata"]["name"] for one in cluster.api.pods("default")] == ["c"]


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("PUT", PODS, 405),
        ("PATCH", PODS, 405),
        ("POST", f"{PODS}/a", 405),
        ("POST", "/api/v1/pods", 405),
        ("GET", "/api/v1/namespaces/default/foos", 404),
        ("GET", "/apis/nope.example/v1/things", 404),
        ("GET", f"{PODS}/a/nope", 404),
        ("GET", "/api/v1/namespaces/default/nodes", 404),
    ],
)
def test_what_is_not_served_is_said_with_a_status(cluster: Cluster, method: str, path: str, code: int) -> None:
    cluster.api.create_pod("a")
    answer = cluster.ask(method, path, {} if method != "GET" else None, content_type=MERGE_PATCH)
    assert answer.code == code
    if isinstance(answer.body, dict):
        assert (answer.body["kind"], answer.body["code"]) == ("Status", code)
