"""Which events bring back a Pod that a volume plugin refused."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.framework.events import Action, ClusterEvent, EventObject, Resource
from scheduler.framework.plugin import Plugin
from scheduler.framework.profile import Enabled, Profile
from scheduler.model.pods import PodInfo
from scheduler.plugins import default_chain
from scheduler.plugins.volumes.node_volume_limits.plugin import NodeVolumeLimits
from scheduler.plugins.volumes.volume_binding.plugin import VolumeBinding
from scheduler.plugins.volumes.volume_restrictions import VolumeRestrictions
from scheduler.plugins.volumes.volume_zone import VolumeZone
from tests.builders import make_node, make_pod
from tests.plugins.test_hints import wakes
from tests.plugins.volumes.objects import (
    ZONE,
    attachment,
    claim,
    csi_driver,
    csi_node,
    pod_claiming,
    pod_with,
    pool,
    storage_class,
    volume,
)

POD = pod_claiming("c")
EPHEMERAL = pod_with({"ephemeral": {}})
GCE = {"gcePersistentDisk": {"pdName": "d"}}
READER = {"gcePersistentDisk": {"pdName": "d", "readOnly": True}}
EBS = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
INLINE = pod_with({"csi": {"driver": "csi.example.com"}})


def added(resource: Resource, new: EventObject) -> ClusterEvent:
    return ClusterEvent.of(resource, Action.ADD, None, new)


def updated(resource: Resource, old: EventObject, new: EventObject) -> ClusterEvent:
    return ClusterEvent.of(resource, Action.UPDATE_OTHER, old, new)


def deleted(resource: Resource, old: EventObject) -> ClusterEvent:
    return ClusterEvent.of(resource, Action.DELETE, old, None)


def gone(*volumes: dict[str, Any], namespace: str = "default", node: str = "n") -> ClusterEvent:
    return deleted(Resource.ASSIGNED_POD, pod_with(*volumes, name="gone", node=node, namespace=namespace))


CLAIM, PV, CLASS = Resource.PERSISTENT_VOLUME_CLAIM, Resource.PERSISTENT_VOLUME, Resource.STORAGE_CLASS
USES_C = {"persistentVolumeClaim": {"claimName": "c"}}


@pytest.mark.parametrize(
    ("pod", "event", "expected"),
    [
        pytest.param(pod_with(GCE), gone(GCE), True, id="the disk came free"),
        pytest.param(pod_with(GCE), gone(EBS), False, id="another disk"),
        pytest.param(pod_with(READER), gone(READER), False, id="readers were no obstacle"),
        pytest.param(pod_with(READER), gone(GCE), True, id="a writer was"),
        pytest.param(pod_with(GCE), gone(GCE, namespace="other"), False, id="a Pod of another namespace: as upstream"),
        pytest.param(POD, gone(USES_C), True, id="who used the claim is gone"),
        pytest.param(POD, gone({"persistentVolumeClaim": {"claimName": "d"}}), False, id="who used another"),
        pytest.param(POD, added(Resource.NODE, make_node()), True, id="a node"),
        pytest.param(POD, added(CLAIM, claim()), True, id="the claim"),
        pytest.param(POD, added(CLAIM, claim("d")), False, id="another claim"),
        pytest.param(POD, added(CLAIM, claim(namespace="other")), False, id="a claim elsewhere"),
        pytest.param(POD, updated(CLAIM, claim(), claim()), False, id="a change to the claim"),
    ],
)
def test_volume_restrictions(pod: PodInfo, event: ClusterEvent, expected: bool) -> None:
    assert wakes(VolumeRestrictions(), pod, event) == expected


@pytest.mark.parametrize(
    ("pod", "event", "expected"),
    [
        pytest.param(POD, added(Resource.CSI_NODE, csi_node("n")), True, id="a CSINode"),
        pytest.param(
            POD, updated(Resource.CSI_NODE, csi_node("n", d=1), csi_node("n", d=2)), True, id="a limit that grew"
        ),
        pytest.param(
            POD, updated(Resource.CSI_NODE, csi_node("n", d=2), csi_node("n", d=1)), False, id="a limit that shrank"
        ),
        pytest.param(
            POD,
            updated(Resource.CSI_NODE, csi_node("n"), csi_node("n", d=None)),
            False,
            id="a driver without a limit: as upstream",
        ),
        pytest.param(POD, gone(USES_C), True, id="a Pod with a claim"),
        pytest.param(POD, gone({"ephemeral": {}}), True, id="a Pod with an ephemeral volume"),
        pytest.param(POD, gone(EBS), True, id="a Pod with a disk that CSI took over"),
        pytest.param(POD, gone({"emptyDir": {}}), False, id="a Pod without such volumes"),
        pytest.param(POD, gone(USES_C, node=""), False, id="a Pod that had no node"),
        pytest.param(POD, added(CLAIM, claim()), True, id="the claim"),
        pytest.param(EPHEMERAL, added(CLAIM, claim("pod-v0")), True, id="the claim of an ephemeral volume"),
        pytest.param(POD, added(CLAIM, claim("d")), False, id="another claim"),
        pytest.param(POD, deleted(Resource.VOLUME_ATTACHMENT, attachment("a", "n", "pv")), True, id="an attachment"),
        pytest.param(
            pod_with(EBS),
            deleted(Resource.VOLUME_ATTACHMENT, attachment("a", "n", "pv", "ebs.csi.aws.com")),
            True,
            id="an attachment of the disk's driver",
        ),
        pytest.param(
            pod_with(EBS),
            deleted(Resource.VOLUME_ATTACHMENT, attachment("a", "n", "pv")),
            False,
            id="of another driver",
        ),
    ],
)
def test_node_volume_limits(pod: PodInfo, event: ClusterEvent, expected: bool) -> None:
    assert wakes(NodeVolumeLimits(), pod, event) == expected


TOPOLOGY = [{"matchLabelExpressions": [{"key": ZONE, "values": ["1"]}]}]
POOLS, DRIVER = Resource.CSI_STORAGE_CAPACITY, Resource.CSI_DRIVER


@pytest.mark.parametrize(
    ("pod", "event", "expected"),
    [
        pytest.param(POD, added(CLASS, storage_class()), True, id="a class"),
        pytest.param(
            POD, updated(CLASS, storage_class(), storage_class(allowedTopologies=TOPOLOGY)), True, id="its topologies"
        ),
        pytest.param(POD, updated(CLASS, storage_class(), storage_class()), False, id="something else of a class"),
        pytest.param(POD, added(CLAIM, claim()), True, id="the claim"),
        pytest.param(POD, updated(CLAIM, claim(), claim(volume="pv")), True, id="a change to the claim"),
        pytest.param(EPHEMERAL, added(CLAIM, claim("pod-v0")), True, id="the claim of an ephemeral volume"),
        pytest.param(POD, updated(CLAIM, claim("d"), claim("d")), False, id="another claim"),
        pytest.param(POD, added(PV, volume()), True, id="a volume"),
        pytest.param(POD, updated(PV, volume(), volume()), True, id="any change to a volume"),
        pytest.param(POD, added(Resource.NODE, make_node()), True, id="a node"),
        pytest.param(
            POD, ClusterEvent.of(Resource.NODE, Action.UPDATE_NODE_LABEL, make_node(), make_node()), True, id="labels"
        ),
        pytest.param(POD, added(Resource.CSI_NODE, csi_node("n")), True, id="a CSINode"),
        pytest.param(
            POD,
            updated(Resource.CSI_NODE, csi_node("n"), csi_node("n", migrated="kubernetes.io/cinder")),
            True,
            id="a plugin that was migrated",
        ),
        pytest.param(POD, updated(Resource.CSI_NODE, csi_node("n"), csi_node("n", d=1)), False, id="a limit"),
        pytest.param(
            INLINE, updated(DRIVER, csi_driver(storageCapacity=True), csi_driver()), True, id="capacity counts no more"
        ),
        pytest.param(
            POD,
            updated(DRIVER, csi_driver(storageCapacity=True), csi_driver()),
            False,
            id="not for claims: as upstream",
        ),
        pytest.param(
            INLINE, updated(DRIVER, csi_driver(), csi_driver(storageCapacity=True)), False, id="capacity counts now"
        ),
        pytest.param(POD, added(POOLS, pool()), True, id="a pool"),
        pytest.param(POD, updated(POOLS, pool(), pool(capacity="1Gi")), True, id="a pool that tells its capacity"),
        pytest.param(POD, updated(POOLS, pool(capacity="1Gi"), pool(capacity="2Gi")), True, id="a pool that grew"),
        pytest.param(POD, updated(POOLS, pool(capacity="2Gi"), pool(capacity="1Gi")), False, id="a pool that shrank"),
        pytest.param(
            POD,
            updated(POOLS, pool(maximumVolumeSize="1Gi"), pool(maximumVolumeSize="1Gi", capacity="9Gi")),
            False,
            id="a pool whose largest volume stays",
        ),
    ],
)
def test_volume_binding(pod: PodInfo, event: ClusterEvent, expected: bool) -> None:
    assert wakes(VolumeBinding(), pod, event) == expected


@pytest.mark.parametrize(
    ("pod", "event", "expected"),
    [
        pytest.param(POD, added(CLASS, storage_class()), True, id="a class that waits"),
        pytest.param(POD, added(CLASS, storage_class(mode="Immediate")), False, id="a class that binds at once"),
        pytest.param(POD, added(Resource.NODE, make_node()), True, id="a node"),
        pytest.param(POD, updated(CLAIM, claim(), claim(volume="pv")), True, id="a change to the claim"),
        pytest.param(EPHEMERAL, added(CLAIM, claim("pod-v0")), False, id="not the claim of an ephemeral volume"),
        pytest.param(POD, added(CLAIM, claim("d")), False, id="another claim"),
        pytest.param(POD, added(PV, volume()), True, id="a volume"),
        pytest.param(POD, updated(PV, volume(), volume(labels={ZONE: "1"})), True, id="a volume's zone"),
        pytest.param(POD, updated(PV, volume(), volume(phase="Bound")), False, id="something else of a volume"),
    ],
)
def test_volume_zone(pod: PodInfo, event: ClusterEvent, expected: bool) -> None:
    assert wakes(VolumeZone(), pod, event) == expected


@pytest.mark.parametrize("plugin", [VolumeRestrictions(), NodeVolumeLimits(), VolumeBinding(), VolumeZone()])
def test_a_change_to_the_pod_itself_brings_no_volume(plugin: Plugin) -> None:
    assert not wakes(plugin, POD, ClusterEvent.of(Resource.TARGET_POD, Action.UPDATE_POD_LABEL, make_pod(), make_pod()))


def test_all_kinds_that_are_looked_up_are_watched() -> None:
    chain = [Enabled(plugin) for plugin in (VolumeRestrictions(), NodeVolumeLimits(), VolumeBinding(), VolumeZone())]
    needed = [one for one in default_chain() if one.plugin.name in ("PrioritySort", "DefaultBinder")]

    assert Profile.build("vane", [*needed, *chain]).kinds == {
        "Node",
        "Pod",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "StorageClass",
        "CSINode",
        "CSIDriver",
        "CSIStorageCapacity",
        "VolumeAttachment",
    }
