"""A volume that cannot be told fails an attempt only where it comes to the node: no earlier plugin refuses it."""

from __future__ import annotations

import pytest

from scheduler.decision.decide import decide
from scheduler.errors import PluginError
from scheduler.framework.status import Code
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from scheduler.plugins.volumes.node_volume_limits.plugin import NodeVolumeLimits
from tests.builders import NO_SIGNALS, cluster_of, default_profile, make_node
from tests.plugins.volumes.objects import claim, csi, csi_node, pod_claiming, pod_with, volume

OBJECTS = (
    claim("c", volume="pv"),
    volume("pv", csi=csi()),
    claim("holder-v0", volume="pv"),
    csi_node("n", csi_example_com=3),
)


def snapshot_with(pods: str) -> tuple[PodInfo, Snapshot]:
    """Return a Pod that uses a claim, and a node for so many Pods on which one uses the claim of another."""
    placed = pod_with({"ephemeral": {}}, name="holder", node="n")
    nodes = [make_node("n", pods=pods), make_node("other")]
    return pod_claiming("c"), Snapshot(cluster_of(nodes, [placed], objects=OBJECTS), NO_SIGNALS, 0.0)


def test_the_fault_of_a_placed_pod_is_told_of_its_node_alone() -> None:
    pod, snapshot = snapshot_with("2")

    found = NodeVolumeLimits().filter(None, pod, snapshot, slice(None))

    assert [(one.code, one.mask.tolist()) for one in found] == [(Code.ERROR, [True, False])]


def test_it_fails_the_attempt_that_comes_to_the_node() -> None:
    with pytest.raises(PluginError, match="holder-v0 was not created for pod default/holder"):
        decide(*snapshot_with("2"), default_profile())


def test_a_full_node_is_not_come_to() -> None:
    assert decide(*snapshot_with("1"), default_profile()).node_name == "other"


@pytest.mark.parametrize("is_cordoned", [False, True], ids=["open", "cordoned"])
def test_a_migrated_disk_that_cannot_be_told_fails_the_attempt_that_comes_to_the_node(is_cordoned: bool) -> None:
    disk = volume("pv", awsElasticBlockStore={"volumeID": "aws://zone/disk"})
    objects = (claim("c", volume="pv"), disk, csi_node("n", migrated="kubernetes.io/aws-ebs"))
    nodes = [make_node("n", unschedulable=is_cordoned), make_node("other")]
    snapshot = Snapshot(cluster_of(nodes, (), objects=objects), NO_SIGNALS, 0.0)

    if is_cordoned:
        assert decide(pod_claiming("c"), snapshot, default_profile()).node_name == "other"
    else:
        with pytest.raises(PluginError, match="could not translate pv"):
            decide(pod_claiming("c"), snapshot, default_profile())
