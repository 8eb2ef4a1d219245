from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from scheduler.kube.config import load_connection
from scheduler.kube.election.elector import Elector
from scheduler.kube.election.settings import ElectionSettings, new_identity
from tests.kube.election.lease_server import LEASE, Heard
from tests.support import manifests
from tests.support.audit import AuditLog
from tests.support.clocks import OwnTime
from tests.support.controlplane import ControlPlane
from tests.support.kubeapi import KubeApi
from tests.support.vane import grant_vane
from tests.support.waiting import wait_until

SHORT = ElectionSettings(lease_duration_s=3.0, renew_deadline_s=2.0, retry_period_s=0.5)

Start = Callable[..., tuple[Elector, Heard]]


def candidate(kubeconfig: Path, identity: str, settings: ElectionSettings = SHORT) -> tuple[Elector, Heard]:
    heard = Heard()
    connection = load_connection(str(kubeconfig))
    return Elector(connection, identity, settings, ["vane", "batch"], heard), heard


@pytest.fixture
def kubeconfig(control_plane: ControlPlane, api: KubeApi) -> Path:
    """Of a user with the rights that are shipped, and no others."""
    grant_vane(api, "vane")
    return control_plane.make_kubeconfig("vane")


@pytest.fixture
def start(kubeconfig: Path) -> Iterator[Start]:
    started: list[Elector] = []

    def begin(identity: str, settings: ElectionSettings = SHORT) -> tuple[Elector, Heard]:
        elector, heard = candidate(kubeconfig, identity, settings)
        elector.start()
        started.append(elector)
        return elector, heard

    yield begin
    for elector in started:
        elector.release(2.0)


def spec_of(api: KubeApi) -> dict[str, Any]:
    spec: dict[str, Any] = api.get(LEASE)["spec"]
    return spec


def _lead(kubeconfig: str, identity: str) -> None:
    """Lead until killed; for a process of its own."""
    elector, _ = candidate(Path(kubeconfig), identity)
    elector.start()
    time.sleep(60)


def test_a_lease_from_its_creation_to_its_next_holder(control_plane: ControlPlane, api: KubeApi, start: Start) -> None:
    one_id, two_id = new_identity(), new_identity()
    one, heard = start(one_id)
    wait_until(lambda: heard.leading)
    first = spec_of(api)
    assert (first["holderIdentity"], first["leaseDurationSeconds"], first["leaseTransitions"]) == (one_id, 3, 0)
    two, waiting = start(two_id)
    wait_until(lambda: two.holder == one_id)
    api.patch(LEASE, {"metadata": {"labels": {"mine": "kept"}}})
    time.sleep(4.0)
    renewed = spec_of(api)
    assert renewed["acquireTime"] == first["acquireTime"]
    assert renewed["renewTime"] > first["renewTime"]
    assert (heard.lost, waiting.terms) == ([], [])

    took = OwnTime([os.getpid(), *control_plane.pids.values()])
    assert one.release(2.0)
    wait_until(lambda: waiting.leading)
    assert took.seconds < 1.0
    wait_until(lambda: spec_of(api)["holderIdentity"] == two_id)
    taken = api.get(LEASE)
    assert taken["spec"]["leaseTransitions"] == 1
    assert taken["metadata"]["labels"] == {"mine": "kept"}


def test_the_last_holder_leaves_a_free_lease(api: KubeApi, start: Start) -> None:
    elector, heard = start("one")
    wait_until(lambda: heard.leading)
    assert elector.release(2.0)
    spec = spec_of(api)
    assert (spec.get("holderIdentity", ""), spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("", 1, 0)
    notes = [event["message"] for event in api.events("vane", "kube-system", "LeaderElection")]
    assert sorted(notes) == ["one became leader", "one stopped leading"]


def test_a_killed_leader_is_followed_within_the_lease(
    control_plane: ControlPlane, kubeconfig: Path, api: KubeApi, start: Start
) -> None:
    spawn = multiprocessing.get_context("spawn")
    leader = spawn.Process(target=_lead, args=(str(kubeconfig), "one"), daemon=True)
    leader.start()
    wait_until(lambda: api.exists(LEASE) and spec_of(api)["holderIdentity"] == "one")
    two, heard = start("two")
    wait_until(lambda: two.holder == "one")
    asked_s = [time.monotonic()]
    before = spec_of(api)["renewTime"]

    def is_renewed() -> bool:
        asked_s.append(time.monotonic())
        return bool(spec_of(api)["renewTime"] != before)

    wait_until(is_renewed)
    took = OwnTime([os.getpid(), *control_plane.pids.values()])
    assert leader.pid is not None
    os.kill(leader.pid, signal.SIGKILL)
    leader.join()
    wait_until(lambda: heard.leading)
    # The last renewal came after the last look but one.
    assert heard.times_s["leading"] - asked_s[-2] >= 3.0
    assert took.seconds < 3.0 + 1.0
    assert spec_of(api)["leaseTransitions"] == 1


def test_a_leader_that_was_stopped_knows_that_it_lost(kubeconfig: Path, api: KubeApi, start: Start) -> None:
    """Here the other takes the Lease by hand, as if the process had been stopped that long."""
    one, heard = start("one")
    wait_until(lambda: heard.leading)
    api.patch(LEASE, {"spec": {"holderIdentity": "two"}})
    assert wait_until(lambda: heard.lost) == ["'two' holds the lease now"]
    assert not one.is_leading
    assert not one.release(1.0)
    assert spec_of(api)["holderIdentity"] == "two"


def test_the_roll_call_names_what_is_pending(api: KubeApi, start: Start) -> None:
    api.create_node("n1")
    pending = {
        api.create_pod(name, scheduler_name=scheduler)["metadata"]["uid"]
        for name, scheduler in (("a", "vane"), ("b", "batch"))
    }
    bound = api.create_pod("bound", scheduler_name="vane")
    api.bind("bound", "n1")
    api.create_pod("theirs")
    before = int(api.get("/api/v1/pods")["metadata"]["resourceVersion"])
    _, heard = start("one")
    (roll_call,) = wait_until(lambda: heard.leading)
    assert roll_call.pending == pending
    assert roll_call.resource_version >= before
    assert int(bound["metadata"]["resourceVersion"]) < roll_call.resource_version


def test_more_pending_pods_than_one_page(api: KubeApi, start: Start) -> None:
    api.create_pods(manifests.pod(f"p{number}", scheduler_name="vane") for number in range(1100))
    _, heard = start("one")
    (roll_call,) = wait_until(lambda: heard.leading)
    assert roll_call.pending == {pod["metadata"]["uid"] for pod in api.pods()}


def test_the_audit_log_tells_replicas_apart(api: KubeApi, audit: AuditLog, start: Start) -> None:
    _, heard = start("host_1")
    wait_until(lambda: heard.leading)

    def found() -> list[str]:
        return [one["userAgent"] for one in audit.events(resource="leases", user="vane")]

    assert wait_until(found)[0].endswith(") host_1/leader-election")
