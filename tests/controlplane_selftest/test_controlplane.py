from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.support import manifests
from tests.support.audit import AuditLog
from tests.support.cleanup import clean
from tests.support.clocks import OwnTime
from tests.support.controlplane import ControlPlane
from tests.support.kubeapi import ApiError, KubeApi
from tests.support.kubelet import TestKubelet
from tests.support.waiting import wait_until

POD_READER = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}


def test_api_server_is_kubernetes_1_37_1(api: KubeApi) -> None:
    version = api.get("/version")
    assert version["gitVersion"] == "v1.37.1"
    assert (version["major"], version["minor"]) == ("1", "37")


def test_api_server_starts_within_15_seconds(programs: Path, tmp_path: Path) -> None:
    another = ControlPlane(programs, tmp_path / "another")
    took = OwnTime()
    another.start()
    took.include(another.pids.values())
    took_s = took.seconds
    another.stop()
    assert took_s < 15


def test_user_without_rights_is_refused(control_plane: ControlPlane, api: KubeApi) -> None:
    with pytest.raises(ApiError) as refusal:
        control_plane.client("nobody").pods()
    assert refusal.value.status == 403
    assert 'User "nobody" cannot list resource "pods"' in refusal.value.message


def test_unknown_token_is_refused(control_plane: ControlPlane) -> None:
    stranger = KubeApi(control_plane.url, control_plane.ca_path, token="stranger")
    with pytest.raises(ApiError) as refusal:
        stranger.pods()
    stranger.close()
    assert refusal.value.status == 401


@pytest.mark.parametrize("user", ["vane", "somebody-with-a-certificate"])
def test_granted_rules_apply_and_end_with_the_test(control_plane: ControlPlane, api: KubeApi, user: str) -> None:
    api.grant(user, [POD_READER])
    client = control_plane.client(user)
    # The authorizer's informers see a new role a moment after its creation.
    assert wait_until(lambda: _allowed(client), what=f"right of {user} to list Pods")
    with pytest.raises(ApiError) as refusal:
        client.list("/api/v1/nodes")
    assert refusal.value.status == 403


def _allowed(client: KubeApi) -> bool:
    try:
        client.pods()
    except ApiError as error:
        if error.status == 403:
            return False
        raise
    return True


def test_service_account_token_names_its_service_account(control_plane: ControlPlane, api: KubeApi) -> None:
    client = KubeApi(control_plane.url, control_plane.ca_path, token=control_plane.service_account_token("robot"))
    review = client.post(
        "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"},
    )
    client.close()
    assert review["status"]["userInfo"]["username"] == "system:serviceaccount:default:robot"


def test_kubectl_works_with_the_kubeconfigs(control_plane: ControlPlane, api: KubeApi) -> None:
    api.create_node("a")
    listing = control_plane.kubectl("get", "nodes", "-o", "name")
    assert listing.wait(30) == 0
    assert listing.log_text().strip() == "node/a"
    refused = control_plane.kubectl("get", "nodes", user="jane", groups=["readers-of-nothing"])
    assert refused.wait(30) != 0
    assert 'User "jane" cannot list resource "nodes"' in refused.log_text()


def test_pod_is_bound_runs_and_is_deleted_gracefully(api: KubeApi, kubelet: TestKubelet) -> None:
    kubelet.termination_delay = 0.5
    api.create_node("a", cpu="4", labels={"zone": "z1"})
    api.create_pod("web", cpu="1", scheduler_name="none", grace=30)
    assert api.pod("web")["status"]["phase"] == "Pending"
    api.bind("web", "a")
    running = wait_until(lambda: pod if (pod := api.pod("web"))["status"]["phase"] == "Running" else None)
    assert running is not None
    assert running["status"]["startTime"]
    assert running["status"]["containerStatuses"][0]["state"]["running"]
    api.delete_pod("web")
    assert api.pod("web")["metadata"]["deletionTimestamp"]
    api.wait_gone("/api/v1/namespaces/default/pods/web")


def test_bound_pod_without_kubelet_keeps_terminating(api: KubeApi) -> None:
    api.create_node("a")
    api.create_pod("web", node_name="a", grace=30)
    api.delete_pod("web")
    assert api.pod("web")["metadata"]["deletionTimestamp"]


def test_second_binding_conflicts_and_the_audit_log_has_both(api: KubeApi, audit: AuditLog) -> None:
    api.create_node("a")
    api.create_node("b")
    api.create_pod("web", scheduler_name="none")
    api.bind("web", "a")
    with pytest.raises(ApiError) as conflict:
        api.bind("web", "b")
    assert conflict.value.status == 409
    bindings = audit.events(verb="create", resource="pods", subresource="binding", name="web")
    assert [event["requestObject"]["target"]["name"] for event in bindings] == ["a", "b"]
    assert [event["responseStatus"]["code"] for event in bindings] == [201, 409]


def test_watch_delivers_changes_until_it_is_closed(api: KubeApi) -> None:
    version = api.get("/api/v1/pods")["metadata"]["resourceVersion"]
    watch = api.watch("/api/v1/pods", version)
    seen: list[str] = []

    def follow() -> None:
        seen.extend(event["object"]["metadata"]["name"] for event in watch)

    follower = threading.Thread(target=follow)
    follower.start()
    api.create_pod("one")
    api.create_pod("two")
    wait_until(lambda: len(api.pods()) == 2)
    threading.Timer(0.3, watch.close).start()
    follower.join(timeout=10)
    assert not follower.is_alive()
    assert seen == ["one", "two"]


def test_real_kube_scheduler_binds(control_plane: ControlPlane, api: KubeApi, kubelet: TestKubelet) -> None:
    api.create_node("small", cpu="1")
    api.create_node("large", cpu="8")
    config = """
    profiles:
    - schedulerName: reference
    """
    with control_plane.start_kube_scheduler(config) as scheduler:
        api.create_pod("web", cpu="2", scheduler_name="reference")
        assert api.wait_bound("web") == "large"
        api.create_pod("huge", cpu="64", scheduler_name="reference")
        api.wait_for(lambda: api.events("huge", reason="FailedScheduling"))
        assert 'scheduler_schedule_attempts_total{profile="reference",result="scheduled"} 1' in scheduler.metrics()
    assert not scheduler.process.running
    assert api.events("web", reason="Scheduled")


def test_real_controller_manager_makes_a_deployments_pods(control_plane: ControlPlane, api: KubeApi) -> None:
    template = manifests.pod("web", labels={"app": "web"})
    deployment = {
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": template["spec"]},
        },
    }
    with control_plane.start_controller_manager(["deployment-controller", "replicaset-controller"]):
        api.post("/apis/apps/v1/namespaces/default/deployments", deployment)
        api.wait_for(lambda: len(api.pods("default")) == 3, timeout=20)


def test_leftovers_of_every_kind_are_cleaned_away(control_plane: ControlPlane, api: KubeApi) -> None:
    _leave_objects(api)
    assert all(_remaining(api).values())
    clean(api)
    assert not any(_remaining(api).values())
    assert not api.exists("/api/v1/namespaces/team")
    assert control_plane.client("nobody").get("/version")["minor"] == "37"


def _leave_objects(api: KubeApi) -> None:
    api.create_namespace("team")
    api.create_node("a")
    api.create_pod("held", namespace="team", node_name="a", grace=30)
    api.patch("/api/v1/namespaces/team/pods/held", {"metadata": {"finalizers": ["example.com/hold"]}})
    api.create_priority_class("high", 1000)
    api.grant("vane", [POD_READER])
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    api.post("/api/v1/namespaces/team/persistentvolumeclaims", {"metadata": {"name": "disk"}, "spec": claim})
    lease = {"metadata": {"name": "vane"}, "spec": {"holderIdentity": "vane-0"}}
    api.post("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", lease)


def _remaining(api: KubeApi) -> dict[str, list[str]]:
    return {
        path: [item["metadata"]["name"] for item in api.list(path) if item["metadata"]["name"] in names]
        for path, names in (
            ("/api/v1/nodes", {"a"}),
            ("/api/v1/pods", {"held"}),
            ("/api/v1/persistentvolumeclaims", {"disk"}),
            ("/apis/scheduling.k8s.io/v1/priorityclasses", {"high"}),
            ("/apis/rbac.authorization.k8s.io/v1/clusterroles", {"test:vane"}),
            ("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {"test:vane"}),
            ("/apis/coordination.k8s.io/v1/leases", {"vane"}),
        )
    }


def test_2000_nodes_are_created_and_cleaned_within_a_minute(api: KubeApi, control_plane: ControlPlane) -> None:
    took = OwnTime([os.getpid(), *control_plane.pids.values()])
    api.create_nodes(manifests.node(f"node-{number:04}") for number in range(2000))
    assert len(api.list("/api/v1/nodes")) == 2000
    assert took.seconds < 60


SLEEPER = """
import pathlib, sys, time
from tests.support.process import Process
process = Process(["/bin/sleep", "600"], pathlib.Path(sys.argv[1]))
process.start()
print(process.pid, flush=True)
time.sleep(600)
"""


def test_programs_end_with_a_killed_test_run(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", SLEEPER, str(tmp_path / "sleep.log")]
    root = Path(__file__).resolve().parents[2]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=root) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        wait_until(lambda: Path(f"/proc/{pid}/comm").read_text() == "sleep\n", what="start of the program")
        os.kill(parent.pid, signal.SIGKILL)
    wait_until(lambda: not _is_running(pid), what="end of the program")


def _is_running(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat")
    # A zombie has ended; whoever inherits it has just not asked for its exit code.
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"
