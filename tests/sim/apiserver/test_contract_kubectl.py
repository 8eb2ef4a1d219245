"""The real kubectl and the tables it prints; the same on both API servers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.sim.apiserver.cluster import EVENTS, LEASES, NEW_EVENTS, NODES, PODS, TABLE, Cluster, event, new_event
from tests.support import manifests
from tests.support.kubeapi import STRATEGIC_MERGE_PATCH
from tests.support.manifests import Json
from tests.support.waiting import wait_until

_AGE = re.compile(r"\d+(?:s|m\d*s?|h\d*m?|d\d*h?|y\d*d?)(?: ago)?")
CALICO = {"kubeletVersion": "v1.37.1", "osImage": "Linux", "kernelVersion": "6.1", "containerRuntimeVersion": "c://1"}


def run(cluster: Cluster, *arguments: str, code: int = 0) -> str:
    process = cluster.kubectl(*arguments)
    assert process.wait(60) == code, process.log_text()
    return process.log_text()


def ageless(text: str) -> list[list[str]]:
    """Return the cells of what kubectl printed, ages as AGE."""
    rows = [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()]
    return [["AGE" if _AGE.fullmatch(cell) else cell for cell in row] for row in rows]


def table(cluster: Cluster, path: str) -> tuple[list[tuple[str, int]], list[list[Any]]]:
    """Return name and priority of each column, and the cells without ages."""
    answer = cluster.ask("GET", path, accept=f"{TABLE},application/json")
    assert (answer.body["kind"], answer.body["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    columns = [(column["name"], column["priority"]) for column in answer.body["columnDefinitions"]]
    assert all(row["object"]["kind"] == "PartialObjectMetadata" for row in answer.body["rows"])
    return columns, [[_cell(cell) for cell in row["cells"]] for row in answer.body["rows"]]


def _cell(cell: Any) -> Any:
    return "AGE" if isinstance(cell, str) and _AGE.fullmatch(cell) else cell


def columns(shown: str, wide: str) -> list[tuple[str, int]]:
    return [(name, 0) for name in shown.split(",")] + [(name, 1) for name in wide.split(",") if name]


def container_status(name: str, **state: Any) -> Json:
    is_running = "running" in state
    return {"name": name, "image": "i", "imageID": "", "ready": is_running, "restartCount": 2, "state": state}


NOW = "2026-01-02T03:04:05Z"


@pytest.mark.parametrize(
    ("status", "cells"),
    [
        ({}, ["0/1", "Pending", "0", "AGE", "<none>", "n1", "<none>", "<none>"]),
        (
            {
                "phase": "Running",
                "podIP": "10.1.2.3",
                "podIPs": [{"ip": "10.1.2.3"}],
                "containerStatuses": [container_status("app", running={"startedAt": NOW})],
            },
            ["1/1", "Running", "2", "AGE", "10.1.2.3", "n1", "<none>", "<none>"],
        ),
        (
            {"containerStatuses": [container_status("app", waiting={"reason": "CrashLoopBackOff"})]},
            ["0/1", "CrashLoopBackOff", "2", "AGE", "<none>", "n1", "<none>", "<none>"],
        ),
        (
            {
                "phase": "Succeeded",
                "containerStatuses": [container_status("app", terminated={"exitCode": 0, "reason": "Completed"})],
            },
            ["0/1", "Completed", "2", "AGE", "<none>", "n1", "<none>", "<none>"],
        ),
        ({"phase": "Failed", "reason": "Evicted"}, ["0/1", "Evicted", "0", "AGE", "<none>", "n1", "<none>", "<none>"]),
    ],
    ids=["pending", "running", "crashing", "done", "evicted"],
)
def test_the_table_of_pods(cluster: Cluster, status: Json, cells: list[str]) -> None:
    cluster.api.create_pod("a", node_name="n1")
    cluster.api.patch(f"{PODS}/a/status", {"status": status}, STRATEGIC_MERGE_PATCH)
    cluster.api.create_pod("b")
    cluster.api.patch(f"{PODS}/b/status", {"status": {"nominatedNodeName": "n2"}})
    found, rows = table(cluster, PODS)
    assert found == columns("Name,Ready,Status,Restarts,Age", "IP,Node,Nominated Node,Readiness Gates")
    assert rows == [["a", *cells], ["b", "0/1", "Pending", "0", "AGE", "<none>", "<none>", "n2", "<none>"]]


def test_the_table_of_nodes(cluster: Cluster) -> None:
    roles = {"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/gpu": ""}
    cluster.api.create_node("n1", labels=roles, unschedulable=True)
    cluster.api.create_node("n2", ready=False)
    addresses = [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "ExternalIP", "address": "192.0.2.1"}]
    patch = {"status": {"nodeInfo": CALICO, "addresses": addresses}}
    cluster.api.patch(f"{NODES}/n1/status", patch, STRATEGIC_MERGE_PATCH)
    found, rows = table(cluster, NODES)
    wide = "Internal-IP,External-IP,OS-Image,Kernel-Version,Container-Runtime"
    assert found == columns("Name,Status,Roles,Age,Version", wide)
    details = ["10.0.0.1", "192.0.2.1", "Linux", "6.1", "c://1"]
    unknown = ["<none>", "<none>", "<unknown>", "<unknown>", "<unknown>"]
    assert rows == [
        ["n1", "Ready,SchedulingDisabled", "gpu,worker", "AGE", "v1.37.1", *details],
        ["n2", "NotReady", "<none>", "AGE", "", *unknown],
    ]


@pytest.mark.parametrize("path", [EVENTS, NEW_EVENTS])
def test_the_table_of_events(cluster: Cluster, path: str) -> None:
    cluster.api.post(NEW_EVENTS, new_event("a", series={"count": 7, "lastObservedTime": "2026-01-03T03:04:05.000000Z"}))
    times = {"firstTimestamp": NOW, "lastTimestamp": NOW}
    source = {"component": "kubelet", "host": "n1"}
    cluster.api.post(EVENTS, event("b", type="Warning", message=" text\n", count=3, source=source, **times))
    cluster.api.post(EVENTS, event("c"))
    found, rows = table(cluster, path)
    assert [name for name, _ in found] == [
        "Last Seen", "Type", "Reason", "Object", "Subobject", "Source", "Message", "First Seen", "Count", "Name"
    ]  # fmt: skip
    assert [name for name, priority in found if not priority] == ["Last Seen", "Type", "Reason", "Object", "Message"]
    assigned = "Successfully assigned default/p to n1"
    assert rows == [
        ["AGE", "Normal", "Scheduled", "pod/p", "", "vane, vane-host", assigned, "AGE", 7, "a"],
        ["AGE", "Warning", "R", "pod/p", "", "kubelet, n1", "text", "AGE", 3, "b"],
        ["<unknown>", "Normal", "R", "pod/p", "", "", "M", "<unknown>", 1, "c"],
    ]


def test_the_tables_of_namespaces_and_leases(cluster: Cluster) -> None:
    found, rows = table(cluster, "/api/v1/namespaces?fieldSelector=metadata.name%3Ddefault")
    assert (found, rows) == (columns("Name,Status,Age", ""), [["default", "Active", "AGE"]])
    cluster.api.post(LEASES, {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}})
    assert table(cluster, LEASES) == (columns("Name,Holder,Age", ""), [["l", "me", "AGE"]])


def test_a_watched_table_names_its_columns_once(cluster: Cluster) -> None:
    version = cluster.api.create_pod("a")["metadata"]["resourceVersion"]
    cluster.api.bind("a", "n1")
    cluster.api.patch(f"{PODS}/a/status", {"status": {"phase": "Running"}})
    query = f"watch=1&resourceVersion={version}&timeoutSeconds=1"
    answer = cluster.ask("GET", f"{PODS}?{query}", accept=TABLE)
    found = [json.loads(line)["object"] for line in answer.body.splitlines()]
    assert [one["rows"][0]["cells"][2] for one in found] == ["Pending", "Running"]
    assert [one["columnDefinitions"] is None for one in found] == [False, True]


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    path = tmp_path / "pods.yaml"
    path.write_text(yaml.safe_dump_all([manifests.pod(name) for name in "ab"]))
    return path


def test_kubectl_creates_gets_and_deletes(cluster: Cluster, manifest: Path) -> None:
    cluster.api.create_node("n1")
    assert run(cluster, "create", "-f", str(manifest)).splitlines() == ["pod/a created", "pod/b created"]
    cluster.api.bind("a", "n1")
    pods = ageless(run(cluster, "get", "pods", "-o", "wide"))
    assert pods == [
        ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE", "NOMINATED NODE", "READINESS GATES"],
        ["a", "0/1", "Pending", "0", "AGE", "<none>", "n1", "<none>", "<none>"],
        ["b", "0/1", "Pending", "0", "AGE", "<none>", "<none>", "<none>", "<none>"],
    ]
    assert ageless(run(cluster, "get", "no"))[1] == ["n1", "Ready", "<none>", "AGE"]
    assert run(cluster, "get", "po", "a", "-o", "jsonpath={.spec.nodeName}") == "n1"
    assert run(cluster, "label", "pod", "a", "x=y") == "pod/a labeled\n"
    assert run(cluster, "delete", "pod", "b") == 'pod "b" deleted from default namespace\n'
    assert [pod["metadata"]["name"] for pod in cluster.api.pods("default", labelSelector="x=y")] == ["a"]
    assert run(cluster, "delete", "pod", "b", code=1) == 'Error from server (NotFound): pods "b" not found\n'


def test_kubectl_is_told_of_a_misspelt_field(cluster: Cluster, tmp_path: Path) -> None:
    path = tmp_path / "pod.json"
    path.write_text(json.dumps(manifests.pod("a", spec={"schedulersName": "vane"})))
    told = run(cluster, "create", "-f", str(path), code=1)
    assert 'strict decoding error: unknown field "spec.schedulersName"' in told


def test_kubectl_describes(cluster: Cluster) -> None:
    cluster.api.create_node("n1")
    uid = cluster.api.create_pod("p", labels={"app": "web"})["metadata"]["uid"]
    cluster.api.bind("p", "n1")
    about = {"kind": "Pod", "namespace": "default", "name": "p", "uid": uid, "apiVersion": "v1"}
    cluster.api.post(NEW_EVENTS, new_event("e", regarding=about))
    told = [re.split(r"\s{2,}", line.strip()) for line in run(cluster, "describe", "pod", "p").splitlines()]
    for row in (
        ["Name:", "p"],
        ["Node:", "n1/"],
        ["Labels:", "app=web"],
        ["Status:", "Pending"],
        ["QoS Class:", "Burstable"],
    ):
        assert row in told
    assert told[-1][:2] + told[-1][3:] == ["Normal", "Scheduled", "vane", "Successfully assigned default/p to n1"]

    told = [re.split(r"\s{2,}", line.strip()) for line in run(cluster, "describe", "node", "n1").splitlines()]
    assert ["Name:", "n1"] in told
    assert any(row[:2] == ["default", "p"] for row in told)
    rows = ageless(run(cluster, "events"))
    assert rows[0] == ["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert rows[1][1:] == ["Normal", "Scheduled", "Pod/p", "Successfully assigned default/p to n1"]


def test_kubectl_watches(cluster: Cluster) -> None:
    cluster.api.create_pod("a")
    process = cluster.kubectl("get", "pods", "-w", "--no-headers", "-o", "wide")
    try:
        wait_until(lambda: "a " in process.log_text(), 30, "the first line")
        cluster.api.bind("a", "n1")
        wait_until(lambda: "n1" in process.log_text(), 10, "the node")
    finally:
        process.stop()
    assert [row[6] for row in ageless(process.log_text())][:2] == ["<none>", "n1"]


def test_discovery_in_both_forms_names_what_is_served(cluster: Cluster) -> None:
    assert re.fullmatch(r"v1\.\d+\..*", cluster.api.get("/version")["gitVersion"])
    assert cluster.api.get("/api")["versions"] == ["v1"]
    groups = {group["name"] for group in cluster.api.get("/apis")["groups"]}
    assert {"coordination.k8s.io", "events.k8s.io"} <= groups
    assert cluster.api.get("/apis/events.k8s.io")["preferredVersion"]["groupVersion"] == "events.k8s.io/v1"
    legacy = {one["name"]: one for one in cluster.api.get("/api/v1")["resources"]}
    for name in ("pods", "pods/binding", "pods/status", "nodes", "nodes/status", "events", "namespaces"):
        assert legacy[name]["kind"]
    assert legacy["pods"]["shortNames"] == ["po"]
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
    answer = cluster.ask("GET", "/api", accept=accept)
    assert answer.content_type.replace(" ", "") == accept.partition(",")[0]
    (version,) = answer.body["items"][0]["versions"]
    pods = next(one for one in version["resources"] if one["resource"] == "pods")
    assert (pods["scope"], pods["singularResource"]) == ("Namespaced", "pod")
    assert {"create", "delete", "get", "list", "patch", "update", "watch"} <= set(pods["verbs"])
    assert {"binding", "status"} <= {one["subresource"] for one in pods["subresources"]}
    assert [cluster.ask("GET", path).body for path in ("/healthz", "/livez", "/readyz")] == ["ok"] * 3
