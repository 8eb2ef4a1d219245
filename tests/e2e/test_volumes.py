"""Claims that wait for a node, with kube-controller-manager's volume controller: bound, made, or the Pod comes back.

Each scenario is told once and played twice, by Vane and by the real kube-scheduler: every assertion holds for both.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.conftest import StartVane
from tests.support import storage
from tests.support.controlplane import ControlPlane
from tests.support.kubeapi import KubeApi
from tests.support.manifests import Json
from tests.support.provisioner import TestProvisioner
from tests.support.waiting import wait_until

BINDING = 'running PreBind plugin "VolumeBinding": binding volumes: '
NO_VOLUME = (
    "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind. preemption: 0/2 nodes are "
    "available: 2 Preemption is not helpful for scheduling."
)
HOST = "kubernetes.io/hostname"


class Cluster:
    """Nodes a and b, a class of local volumes and one whose volumes are made, a scheduler that answers to `name`."""

    def __init__(self, api: KubeApi, name: str) -> None:
        self.api = api
        self.name = name

    def add_claims(self, **classes: str) -> None:
        for name, of in classes.items():
            self.api.post(storage.CLAIMS, storage.claim(name, of))

    def add_pod(self, name: str, *claims: str, **selector: str) -> None:
        spec: Json = storage.with_claims(*claims)
        if selector:
            spec["nodeSelector"] = {HOST: selector["node"]}
        self.api.create_pod(name, scheduler_name=self.name, spec=spec)

    def claim(self, name: str) -> Json:
        return dict(self.api.get(f"{storage.CLAIMS}/{name}"))

    def chosen_for(self, claim: str) -> str:
        """Wait until a claim has its node, and return that."""
        return wait_until(
            lambda: str(self.claim(claim)["metadata"].get("annotations", {}).get(storage.SELECTED_NODE, "")),
            15.0,
            f"the node of claim {claim}",
        )

    def failures(self, pod: str) -> list[str]:
        """Wait for Events FailedScheduling about a Pod, and return their texts."""
        found = wait_until(lambda: self.api.events(pod, reason="FailedScheduling"), 20.0, f"a failure of {pod}")
        return [event["message"] for event in found]

    def condition(self, pod: str) -> tuple[str, str]:
        def found() -> tuple[str, str] | None:
            conditions = self.api.pod(pod)["status"].get("conditions", [])
            return next(((c["reason"], c["message"]) for c in conditions if c["type"] == "PodScheduled"), None)

        return wait_until(found, 10.0, f"the condition of {pod}") or ("", "")

    def nomination(self, pod: str) -> str:
        return str(self.api.pod(pod)["status"].get("nominatedNodeName") or "")


Start = Callable[..., None]


@pytest.fixture(params=["vane", "kube-scheduler"])
def scheduler_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def cluster(api: KubeApi, control_plane: ControlPlane, scheduler_name: str) -> Iterator[Cluster]:
    for node in ("a", "b"):
        api.create_node(node)
    api.post(storage.CLASSES, storage.storage_class("local", storage.NO_PROVISIONER))
    api.post(storage.CLASSES, storage.storage_class("made", "test.example.com"))
    with control_plane.start_controller_manager(["persistentvolume-binder-controller"]):
        yield Cluster(api, scheduler_name)


@pytest.fixture
def start(cluster: Cluster, control_plane: ControlPlane, start_vane: StartVane, tmp_path: Path) -> Iterator[Start]:
    """Start the scheduler whose turn it is; a bind may take `bind_timeout_s`."""
    with contextlib.ExitStack() as stack:

        def start(bind_timeout_s: int = 60) -> None:
            args = {"bindTimeoutSeconds": bind_timeout_s}
            profile = {"schedulerName": cluster.name, "pluginConfig": [{"name": "VolumeBinding", "args": args}]}
            if cluster.name == "kube-scheduler":
                stack.enter_context(control_plane.start_kube_scheduler({"profiles": [profile]}))
                return
            configuration = {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "leaderElection": {"leaderElect": False},
                "profiles": [profile],
            }
            path = tmp_path / "configuration.yaml"
            path.write_text(yaml.safe_dump(configuration))
            start_vane(flags=["--config", str(path)])

        yield start


@pytest.fixture
def provisioner(cluster: Cluster) -> Iterator[Callable[..., TestProvisioner]]:
    started: list[TestProvisioner] = []

    def start(**behaviour: Any) -> TestProvisioner:
        made = TestProvisioner(cluster.api, "made", **behaviour)
        made.start()
        started.append(made)
        return made

    yield start
    for one in started:
        one.stop()
        assert one.errors == []


Provision = Callable[..., TestProvisioner]


def test_claims_get_the_local_volumes_of_the_node_chosen(cluster: Cluster, start: Start) -> None:
    api = cluster.api
    for node in ("a", "b"):
        for i in range(2):
            api.post(storage.VOLUMES, storage.local_volume(f"disk-{node}-{i}", "local", node))
    cluster.add_claims(one="local", two="local")
    start()
    cluster.add_pod("web", "one", "two")

    node = api.wait_bound("web", timeout=20.0)
    for name in ("one", "two"):
        claim = cluster.claim(name)
        assert claim["status"]["phase"] == "Bound"
        volume = api.get(f"{storage.VOLUMES}/{claim['spec']['volumeName']}")
        assert volume["metadata"]["name"].startswith(f"disk-{node}-")
        assert volume["metadata"]["annotations"]["pv.kubernetes.io/bound-by-controller"] == "yes"
        assert volume["spec"]["claimRef"]["uid"] == claim["metadata"]["uid"]
    assert api.events("web", reason="FailedScheduling") == []


def test_a_volume_is_made_where_the_pod_will_be(cluster: Cluster, start: Start, provisioner: Provision) -> None:
    asked = provisioner()
    cluster.add_claims(data="made")
    start()
    cluster.add_pod("web", "data")

    node = cluster.api.wait_bound("web", timeout=20.0)
    claim = cluster.claim("data")
    assert claim["metadata"]["annotations"][storage.SELECTED_NODE] == node
    assert set(asked.asked) == {node}
    assert claim["status"]["phase"] == "Bound"
    assert cluster.nomination("web") == ""


def test_while_a_volume_is_made_the_pod_tells_its_node(cluster: Cluster, start: Start) -> None:
    cluster.add_claims(data="made")
    start()
    cluster.add_pod("web", "data")

    node = cluster.chosen_for("data")
    wait_until(lambda: cluster.nomination("web") == node, 10.0, "the nomination")
    assert "nodeName" not in cluster.api.pod("web")["spec"]


def test_what_cannot_be_made_on_a_node_sends_the_pod_to_another(
    cluster: Cluster, start: Start, provisioner: Provision
) -> None:
    cluster.add_claims(data="made")
    start()
    cluster.add_pod("web", "data")
    first = cluster.chosen_for("data")
    asked = provisioner(full=(first,))
    other = {"a": "b", "b": "a"}[first]
    # The provisioner hears of the claim with its next change; the node it cannot serve takes no Pods from now on.
    cluster.api.patch(f"/api/v1/nodes/{first}", {"spec": {"unschedulable": True}})
    cluster.api.patch(f"{storage.CLAIMS}/data", {"metadata": {"labels": {"seen": "yes"}}})

    assert cluster.api.wait_bound("web", timeout=30.0) == other
    assert asked.asked[0] == first
    assert f'{BINDING}provisioning failed for PVC "data"' in cluster.failures("web")
    assert cluster.claim("data")["metadata"]["annotations"][storage.SELECTED_NODE] == other


def test_two_pods_want_the_last_volume(cluster: Cluster, start: Start) -> None:
    cluster.api.post(storage.VOLUMES, storage.local_volume("last", "local", "b"))
    cluster.add_claims(one="local", two="local")
    start()
    cluster.add_pod("first", "one")
    cluster.add_pod("second", "two")

    assert cluster.api.wait_bound("first", timeout=20.0) == "b"
    assert set(cluster.failures("second")) == {NO_VOLUME}
    assert cluster.condition("second") == ("Unschedulable", NO_VOLUME)


def test_a_wait_that_takes_too_long_ends(cluster: Cluster, start: Start) -> None:
    cluster.add_claims(data="made")
    start(bind_timeout_s=2)
    cluster.add_pod("web", "data")

    assert f"{BINDING}context deadline exceeded" in cluster.failures("web")
    assert cluster.condition("web") == ("SchedulerError", f"{BINDING}context deadline exceeded")
    wait_until(lambda: cluster.nomination("web") in ("", cluster.chosen_for("data")), 5.0, "the nomination taken back")


def test_a_claim_deleted_in_the_wait_sends_the_pod_back(cluster: Cluster, start: Start) -> None:
    cluster.add_claims(data="made")
    start()
    cluster.add_pod("web", "data")
    cluster.chosen_for("data")
    remove(cluster, "data")

    gone = 'failed to check provisioning pvc: persistentvolumeclaims "default/data" not found'
    assert f"{BINDING}{gone}" in cluster.failures("web")
    missing = '0/2 nodes are available: persistentvolumeclaim "data" not found. not found'
    wait_until(lambda: cluster.condition("web")[0] == "Unschedulable", 20.0, "the verdict on the next try")
    assert cluster.condition("web") == ("Unschedulable", missing)


def test_a_node_deleted_in_the_wait_sends_the_pod_back(cluster: Cluster, start: Start) -> None:
    cluster.add_claims(data="made")
    start()
    cluster.add_pod("web", "data")
    node = cluster.chosen_for("data")
    cluster.api.delete(f"/api/v1/nodes/{node}")

    assert f'{BINDING}failed to get node "{node}": node "{node}" not found' in cluster.failures("web")


def test_a_volume_made_for_another_node_sends_the_pod_back(
    cluster: Cluster, start: Start, provisioner: Provision
) -> None:
    provisioner(elsewhere="c")
    cluster.add_claims(data="made")
    start()
    cluster.add_pod("web", "data", node="a")

    (volume,) = wait_until(lambda: cluster.api.list(storage.VOLUMES), 15.0, "the volume")
    name = volume["metadata"]["name"]
    what = f'pv "{name}" node affinity doesn\'t match node "a": no matching NodeSelectorTerms'
    assert f"{BINDING}{what}" in cluster.failures("web")


@pytest.mark.parametrize("scheduler_name", ["vane"], indirect=True)
def test_a_new_leader_goes_on_where_the_old_one_died(
    cluster: Cluster, start: Start, start_vane: StartVane, provisioner: Provision
) -> None:
    """Nothing of the first one's is left but what it has written: the claim's node and the Pod's nomination."""
    cluster.add_claims(data="made")
    first = start_vane()
    cluster.add_pod("web", "data")
    node = cluster.chosen_for("data")
    wait_until(lambda: cluster.nomination("web") == node, 10.0, "the nomination")
    first.process.signal(signal.SIGKILL)
    first.process.wait(10.0)
    asked = provisioner()
    start()
    cluster.api.patch(f"{storage.CLAIMS}/data", {"metadata": {"labels": {"seen": "yes"}}})

    assert cluster.api.wait_bound("web", timeout=20.0) == node
    assert set(asked.asked) == {node}
    assert cluster.api.events("web", reason="FailedScheduling") == []


def remove(cluster: Cluster, *claims: str) -> None:
    """Delete claims at once: the controller that lifts their protection does not run."""
    for name in claims:
        path = f"{storage.CLAIMS}/{name}"
        cluster.api.delete(path)
        if cluster.api.exists(path):
            cluster.api.patch(path, {"metadata": {"finalizers": None}})
