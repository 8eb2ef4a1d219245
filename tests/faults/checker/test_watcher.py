"""The checker on a real API server, asked by one that has the rights of Vane and none of its care."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.checker.evidence import Evidence
from tests.faults.checker.judge import judge
from tests.faults.checker.watcher import Watcher
from tests.support.audit import AuditLog
from tests.support.controlplane import ControlPlane
from tests.support.kubeapi import ApiError, KubeApi
from tests.support.vane import grant_vane
from tests.support.waiting import wait_until

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"


class Careless(KubeApi):
    """Calls itself as a replica of Vane does."""

    def __init__(self, control_plane: ControlPlane, replica: str) -> None:
        super().__init__(control_plane.url, control_plane.ca_path, token=control_plane.token("vane"))
        self._headers["User-Agent"] = f"vane/0.1.0 (linux/amd64) {replica}/binder"
        self._replica = replica

    def bind_pod(self, name: str, node: str) -> None:
        uid = self.pod(name)["metadata"]["uid"]
        body = {"metadata": {"name": name, "uid": uid}, "target": {"apiVersion": "v1", "kind": "Node", "name": node}}
        self.post(f"/api/v1/namespaces/default/pods/{name}/binding", body)

    def take_lease(self) -> None:
        spec = {"holderIdentity": self._replica, "leaseDurationSeconds": 60}
        if not self.exists(f"{LEASES}/vane"):
            self.post(LEASES, {"metadata": {"name": "vane"}, "spec": spec})
            return
        lease = self.get(f"{LEASES}/vane")
        self.put(f"{LEASES}/vane", {**lease, "spec": {**lease["spec"], **spec}})

    def claim_assigned(self, pod: str, node: str) -> None:
        event = {
            "metadata": {"name": f"{pod}.1", "namespace": "default"},
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "reportingController": "vane",
            "reportingInstance": self._replica,
            "action": "Binding",
            "reason": "Scheduled",
            "type": "Normal",
            "regarding": {"kind": "Pod", "namespace": "default", "name": pod, "uid": self.pod(pod)["metadata"]["uid"]},
            "note": f"Successfully assigned default/{pod} to {node}",
        }
        self.post(EVENTS, event)


@pytest.fixture
def watcher(api: KubeApi) -> Iterator[Watcher]:
    watcher = Watcher([api])
    watcher.start()
    yield watcher
    watcher.stop()


def test_what_a_careless_scheduler_does_is_seen_and_what_a_careful_one_does_is_not(
    api: KubeApi, audit: AuditLog, control_plane: ControlPlane, watcher: Watcher
) -> None:
    grant_vane(api, "vane")
    one, other = Careless(control_plane, "one"), Careless(control_plane, "other")
    api.create_node("n1", cpu="1")
    for name in ("good", "big", "lost", "late", "lied", "forgotten"):
        api.create_pod(name, cpu="950m" if name == "big" else "50m", scheduler_name="vane")

    def judged() -> dict[str, list[str]]:
        revision = int(api.get("/api/v1/pods")["metadata"]["resourceVersion"])
        names = {pod["metadata"]["name"] for pod in api.pods() if pod["spec"].get("nodeName")}
        history = watcher.history

        def is_seen() -> bool:
            bound = {bind.change.name for bind in Evidence(history).binds}
            return bound >= names

        wait_until(is_seen, 10.0, f"all up to revision {revision}")
        return dict(judge(Evidence(history, audit.events())).violations)

    one.take_lease()
    one.bind_pod("good", "n1")
    one.claim_assigned("good", "n1")
    with pytest.raises(ApiError, match="already assigned"):
        one.bind_pod("good", "n2")
    assert judged().keys() == {"no Pod forgotten"}

    one.bind_pod("lied", "n1")
    one.claim_assigned("lied", "n2")
    one.bind_pod("big", "n1")
    one.bind_pod("lost", "nowhere")
    other.take_lease()
    one.bind_pod("late", "n1")
    one.delete_pod("good", grace=0)
    api.patch("/api/v1/namespaces/default/pods/big", {"spec": {"activeDeadlineSeconds": 1000}})
    with pytest.raises(ApiError, match="cannot"):
        one.patch("/api/v1/nodes/n1", {"metadata": {"labels": {"a": "b"}}})

    wait_until(lambda: "no spec changed" in judged(), 10.0, "the change of a spec")
    found = judged()
    assert [text.split()[0] for text in found["no Pod bound where none can be"]] == [
        "default/big",
        "default/lost",
        "default/late",  # n1 is overfull by then
    ]
    assert len(found["no Pod bound by a former leader"]) == 1
    assert found["no Pod forgotten"] == ["default/forgotten has no node"]
    assert "no Pod bound twice" not in found
    assert found["nothing written out of turn"] == ["patch of nodes, 1 times"]
    wait_until(lambda: "Events truthful" in judged(), 10.0, "the lie")
