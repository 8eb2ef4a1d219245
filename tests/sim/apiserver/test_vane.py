"""Vane itself against the embedded API server: its reflector, and the whole of `vane run`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler.kube.config import load_connection
from scheduler.kube.reflector import Reflector, ReflectorSettings
from scheduler.kube.resources import PODS as POD_KIND
from scheduler.kube.transport import Transport
from scheduler.sim.apiserver import PODS
from tests.kube.test_reflector import Inbox, Restarts
from tests.sim.apiserver.cluster import NEW_EVENTS, WINDOW, EmbeddedCluster
from tests.support import manifests
from tests.support.vane import VaneProcess
from tests.support.waiting import wait_until


def test_the_reflector_pages_watches_and_lists_again_after_an_expiry(embedded: EmbeddedCluster) -> None:
    for name in "cab":
        embedded.api.create_pod(name)
    inbox, restarts = Inbox(), Restarts()
    transport = Transport(load_connection(str(embedded.kubeconfig)))
    reflector = Reflector(POD_KIND, transport, inbox, restarts, ReflectorSettings(page_size=2))
    reflector.start()
    try:
        wait_until(lambda: inbox.lists == [["a", "b", "c"]], what="the list")
        embedded.api.create_pod("d")
        embedded.api.patch("/api/v1/namespaces/default/pods/a/status", {"status": {"phase": "Succeeded"}})
        wait_until(lambda: inbox.changes == [("ADDED", "d"), ("DELETED", "a")], what="the changes")

        store = embedded.server.store
        embedded.server.run(lambda: [store.create(PODS, manifests.pod(f"p-{i:03}")) for i in range(WINDOW + 1)])
        wait_until(lambda: len(inbox.lists) == 2, what="another list")
        assert len(inbox.lists[1]) == 3 + WINDOW + 1
        assert restarts.reasons == ["expired"]
    finally:
        reflector.stop()
        transport.close()


@pytest.fixture
def vane(embedded: EmbeddedCluster, tmp_path: Path) -> Iterator[VaneProcess]:
    for i in range(3):
        embedded.api.create_node(f"node-{i}")
    vane = VaneProcess(tmp_path, embedded.kubeconfig)
    vane.start()
    yield vane
    vane.stop()
    assert vane.violations == []


def test_vane_schedules_on_the_embedded_server(embedded: EmbeddedCluster, vane: VaneProcess) -> None:
    api = embedded.api
    lease = api.get("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/vane")
    assert lease["spec"]["holderIdentity"] == vane.identity
    api.create_pod("other")
    api.create_pod("large", scheduler_name="vane", cpu="100")
    for i in range(5):
        api.create_pod(f"mine-{i}", scheduler_name="vane")

    for i in range(5):
        node = api.wait_bound(f"mine-{i}")
        assert node.startswith("node-")
        (event,) = wait_until(lambda i=i: api.events(f"mine-{i}", reason="Scheduled"), what="its Event")  # type: ignore[misc] # mypy can't infer a lambda with a default
        assert event["message"] == f"Successfully assigned default/mine-{i} to {node}"
        assert event["reportingComponent"] == "vane"
    assert "nodeName" not in api.pod("other")["spec"]

    def condition() -> dict[str, str]:
        conditions = api.pod("large")["status"].get("conditions", [])
        return next((one for one in conditions if one["type"] == "PodScheduled"), {})

    assert wait_until(condition)["message"].startswith("0/3 nodes are available: 3 Insufficient cpu.")
    (failed,) = wait_until(lambda: api.list(NEW_EVENTS, fieldSelector="reason=FailedScheduling"))
    assert failed["regarding"]["name"] == "large"

    api.create_node("huge", cpu="200")
    assert api.wait_bound("large", timeout=20.0) == "huge"
    vane.wait_for_metric('scheduler_schedule_attempts_total{profile="vane",result="scheduled"}', 6)
