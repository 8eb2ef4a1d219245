from __future__ import annotations

from typing import Any

import pytest

from scheduler.errors import InvalidObjectError
from scheduler.framework.status import SKIP
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from scheduler.model.state import ClusterState
from scheduler.model.volumes import PersistentVolume, VolumeAttachment
from scheduler.plugins.volumes.node_volume_limits.plugin import REASON, NodeVolumeLimits, reason_not_installed
from tests.builders import NO_SIGNALS, cluster_of, make_node, make_pod
from tests.plugins.run import refusals
from tests.plugins.volumes.objects import (
    attachment,
    claim,
    csi,
    csi_driver,
    csi_node,
    pod_claiming,
    pod_with,
    storage_class,
    volume,
)

EBS: dict[str, Any] = {"awsElasticBlockStore": {"volumeID": "aws://zone/vol-1"}}
NEW = (claim(volume="pv"), volume(csi=csi(handle="new")))
HELD = (claim("held", volume="pv-held"), volume("pv-held", csi=csi(handle="held")))
ONE = csi_node("n", csi_example_com=1)


def state_with(objects: Any, *pods: PodInfo) -> ClusterState:
    return cluster_of([make_node("n")], pods, [NodeVolumeLimits()], objects)


def refused(state: ClusterState, pod: PodInfo) -> set[tuple[str, str]]:
    return refusals(NodeVolumeLimits(), pod, Snapshot(state, NO_SIGNALS, 0.0)).get("n", set())


@pytest.mark.parametrize(
    ("objects", "is_full"),
    [
        pytest.param((*NEW, *HELD, ONE), True, id="one held, one allowed"),
        pytest.param((*NEW, *HELD, csi_node("n", csi_example_com=2)), False, id="one held, two allowed"),
        pytest.param((*NEW, *HELD), False, id="no CSINode"),
        pytest.param((*NEW, *HELD, csi_node("n", csi_example_com=None)), False, id="a driver without a limit"),
        pytest.param((*NEW, *HELD, csi_node("n", other=0)), False, id="a limit of another driver"),
        pytest.param((*NEW, ONE), False, id="the claim of the placed Pod is not there"),
        pytest.param(
            (claim(volume="pv"), volume(csi=csi(handle="held")), *HELD, ONE), False, id="the volume is there already"
        ),
        pytest.param(
            (*NEW, HELD[0], volume("pv-held", nfs={"server": "s"}), ONE), False, id="nothing is attached for NFS"
        ),
        pytest.param(
            (claim(storage_class="wait"), storage_class(), *HELD, ONE), True, id="a volume that is yet to be made"
        ),
        pytest.param((*NEW, claim("held", volume="gone", storage_class="wait"), storage_class(), ONE), True, id="gone"),
        pytest.param((*NEW, claim("held", storage_class="wait"), ONE), False, id="a class that is not there"),
        pytest.param(
            (*NEW, *HELD, csi_node("n", csi_example_com=2), attachment("a", "n", "pv-held")),
            False,
            id="an attachment of a volume that a Pod has",
        ),
        pytest.param(
            (*NEW, csi_node("n", csi_example_com=1), volume("x", csi=csi(handle="x")), attachment("a", "n", "x")),
            True,
            id="an attachment of another volume",
        ),
        pytest.param(
            (*NEW, csi_node("n", csi_example_com=1), volume("x", csi=csi(handle="x")), attachment("a", "m", "x")),
            False,
            id="an attachment elsewhere",
        ),
        pytest.param((*NEW, ONE, attachment("a", "n", "gone")), False, id="an attachment of an unknown volume"),
        pytest.param((*NEW, ONE, attachment("a", "n", None)), False, id="an attachment without a volume"),
    ],
)
def test_how_many_are_attached(objects: Any, is_full: bool) -> None:
    state = state_with(objects, pod_claiming("held", name="holder", node="n"))

    assert refused(state, pod_claiming("c")) == ({("Unschedulable", REASON)} if is_full else set())


def test_volumes_built_into_kubernetes_count_where_there_is_a_csi_node() -> None:
    by_disk, by_claim = pod_with(EBS), pod_claiming("c")
    objects = (claim(volume="pv"), volume(**EBS))

    assert refused(state_with((*objects, csi_node("n", ebs_csi_aws_com=0))), by_disk) == {("Unschedulable", REASON)}
    assert refused(state_with((*objects, csi_node("n", ebs_csi_aws_com=0))), by_claim) == {("Unschedulable", REASON)}
    assert refused(state_with(objects), by_disk) == set()


def test_a_volume_is_the_same_by_its_old_and_its_new_name() -> None:
    objects = (claim(volume="pv"), volume(csi=csi("ebs.csi.aws.com", "vol-1")), csi_node("n", ebs_csi_aws_com=1))

    assert refused(state_with(objects, pod_with(EBS, name="holder", node="n")), pod_claiming("c")) == set()


def test_a_driver_may_ask_to_be_installed() -> None:
    driver = csi_driver(preventPodSchedulingIfMissing=True)
    expected = {("Unschedulable", reason_not_installed("csi.example.com"))}

    assert refused(state_with((*NEW, driver)), pod_claiming("c")) == expected
    assert refused(state_with((*NEW, driver, csi_node("n", other=1))), pod_claiming("c")) == expected
    assert refused(state_with((*NEW, driver, csi_node("n", csi_example_com=None))), pod_claiming("c")) == set()
    assert refused(state_with((*NEW, csi_driver())), pod_claiming("c")) == set()


def test_a_claim_that_is_not_there_refuses_every_node() -> None:
    reason = 'looking up PVC default/c: persistentvolumeclaim "c" not found'

    assert refused(state_with(()), pod_claiming("c")) == {("UnschedulableAndUnresolvable", reason)}


@pytest.mark.parametrize(
    ("pod", "objects", "placed", "text"),
    [
        pytest.param(
            pod_with({"ephemeral": {}}),
            (claim("pod-v0", volume="pv"),),
            (),
            "PVC default/pod-v0 was not created for pod default/pod (pod is not owner)",
            id="another's ephemeral claim",
        ),
        pytest.param(
            pod_with({"awsElasticBlockStore": {"volumeID": "aws://zone/disk"}}),
            (csi_node("n"),),
            (),
            "converting volume(v0) from inline to csi",
            id="a disk that cannot be told",
        ),
        pytest.param(
            pod_claiming("c"),
            (*NEW, claim("holder-v0", volume="pv"), csi_node("n", csi_example_com=3)),
            (pod_with({"ephemeral": {}}, name="holder", node="n"),),
            "PVC default/holder-v0 was not created for pod default/holder (pod is not owner)",
            id="a placed Pod's claim is another's",
        ),
    ],
)
def test_what_fails_the_attempt(pod: PodInfo, objects: Any, placed: tuple[PodInfo, ...], text: str) -> None:
    with pytest.raises(InvalidObjectError) as caught:
        refused(state_with(objects, *placed), pod)

    assert text in str(caught.value)


def test_a_placed_pods_unknown_volume_matters_only_where_volumes_are_counted() -> None:
    placed = pod_with({"ephemeral": {}}, name="holder", node="n")

    assert (
        refused(state_with((*NEW, claim("holder-v0", volume="pv"), csi_node("n")), placed), pod_claiming("c")) == set()
    )


@pytest.mark.parametrize(
    "source",
    [{"azureFile": {"shareName": "s"}}, {"vsphereVolume": {"volumePath": "p"}}, {"cinder": {"volumeID": "v"}}],
)
def test_volumes_that_csi_took_over_are_looked_at(source: dict[str, Any]) -> None:
    snapshot = Snapshot(state_with(()), NO_SIGNALS, 0.0)

    assert NodeVolumeLimits().prefilter(pod_with(source), snapshot) is not SKIP
    assert NodeVolumeLimits().prefilter(make_pod(), snapshot) is SKIP


def test_the_counts_follow_what_changes() -> None:
    state = state_with((*NEW, *HELD, ONE), pod_claiming("held", name="holder", node="n"))
    pod, full = pod_claiming("c"), {("Unschedulable", REASON)}
    assert refused(state, pod) == full

    state.set_object(csi_node("n", csi_example_com=2))
    assert refused(state, pod) == set()
    state.set_object(volume("x", csi=csi(handle="x")))
    state.set_object(attachment("a", "n", "x"))
    assert refused(state, pod) == full
    state.remove_object(PersistentVolume, "", "x")
    assert refused(state, pod) == set()
    state.set_object(volume("x", csi=csi(handle="held")))
    assert refused(state, pod) == set()
    state.set_object(volume("x", csi=csi(handle="y")))
    assert refused(state, pod) == full
    state.remove_object(VolumeAttachment, "", "a")
    assert refused(state, pod) == set()
    state.set_object(csi_node("m", csi_example_com=0))
    state.set_node(make_node("m"))
    assert set(refusals(NodeVolumeLimits(), pod, Snapshot(state, NO_SIGNALS, 0.0))) == {"m"}


def test_after_a_trial_the_fault_told_is_still_that_of_the_first_pod() -> None:
    made: dict[str, Any] = {"ephemeral": {"volumeClaimTemplate": {}}}
    first, second = (pod_with(made, name=name, node="n") for name in ("first", "second"))
    state = state_with((*NEW, ONE, claim("first-v0"), claim("second-v0")), first, second)
    snapshot = Snapshot(state, NO_SIGNALS, 0.0)

    def fault() -> str:
        with pytest.raises(InvalidObjectError) as caught:
            refusals(NodeVolumeLimits(), pod_claiming("c"), snapshot)
        return str(caught.value)

    before = fault()
    assert "default/first" in before
    with snapshot.trial() as trial:
        trial.remove(first, 0)
        assert "default/second" in fault()
    assert fault() == before
