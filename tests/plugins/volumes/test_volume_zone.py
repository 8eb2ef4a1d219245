from __future__ import annotations

from typing import Any

import pytest

from scheduler.framework.status import SKIP, Code, Status
from scheduler.model.snapshot import Snapshot
from scheduler.plugins.volumes.volume_zone import REASON, VolumeZone
from tests.builders import NO_SIGNALS, cluster_of, make_node
from tests.plugins.run import refusals
from tests.plugins.volumes import objects as volumes
from tests.plugins.volumes.objects import ZONE, claim, pod_claiming, storage_class, volume

BETA = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"
REGION = "topology.kubernetes.io/region"


def snapshot_with(node_labels: dict[str, str], *objects: Any) -> Snapshot:
    state = cluster_of([make_node("n", labels=node_labels)], plugins=[VolumeZone()], objects=objects)
    return Snapshot(state, NO_SIGNALS, 0.0)


@pytest.mark.parametrize(
    ("of_volume", "of_node", "passes"),
    [
        pytest.param({ZONE: "a"}, {ZONE: "a"}, True, id="the same zone"),
        pytest.param({ZONE: "a"}, {ZONE: "b"}, False, id="another zone"),
        pytest.param({ZONE: "a"}, {}, True, id="a node without topology"),
        pytest.param({ZONE: "a"}, {REGION: "r"}, False, id="a node with a region only"),
        pytest.param({ZONE: "a__b"}, {ZONE: "b"}, True, id="one of several zones"),
        pytest.param({ZONE: " a __b"}, {ZONE: "a"}, True, id="blanks around a zone"),
        pytest.param({ZONE: "a__", REGION: "r"}, {ZONE: "x", REGION: "r"}, True, id="an empty zone: not a list"),
        pytest.param({BETA: "a"}, {ZONE: "a"}, True, id="the volume's beta label is the node's GA label"),
        pytest.param({ZONE: "a"}, {BETA: "a"}, False, id="not the other way round"),
        pytest.param({BETA: "a"}, {BETA: "b", ZONE: "a"}, False, id="the node's beta label goes first"),
        pytest.param({BETA_REGION: "r"}, {REGION: "r"}, True, id="regions, too"),
        pytest.param({ZONE: "a", REGION: "r"}, {ZONE: "a", REGION: "s"}, False, id="all labels have to match"),
    ],
)
def test_zones_and_regions(of_volume: dict[str, str], of_node: dict[str, str], passes: bool) -> None:
    snapshot = snapshot_with(of_node, claim(volume="pv"), volume(labels=of_volume))

    found = refusals(VolumeZone(), pod_claiming("c"), snapshot)

    assert found == ({} if passes else {"n": {("UnschedulableAndUnresolvable", REASON)}})


@pytest.mark.parametrize(
    ("name", "objects", "reason"),
    [
        pytest.param("", (), "PersistentVolumeClaim had no name", id="no name"),
        pytest.param("c", (), 'persistentvolumeclaim "c" not found', id="no claim"),
        pytest.param("c", (claim(volume="gone"),), 'persistentvolume "gone" not found', id="no volume"),
        pytest.param("c", (claim(),), "PersistentVolumeClaim had no pv name and storageClass name", id="no class"),
        pytest.param("c", (claim(storage_class="x"),), 'storageclass.storage.k8s.io "x" not found', id="no such class"),
        pytest.param(
            "c",
            (claim(storage_class="wait"), storage_class(mode=None)),
            'VolumeBindingMode not set for StorageClass "wait"',
            id="a class without a mode",
        ),
        pytest.param(
            "c",
            (claim(storage_class="wait"), storage_class(mode="Immediate")),
            "PersistentVolume had no name",
            id="a class that binds at once",
        ),
    ],
)
def test_who_can_go_nowhere(name: str, objects: tuple[Any, ...], reason: str) -> None:
    found = VolumeZone().prefilter(pod_claiming(name), snapshot_with({}, *objects))

    assert found == Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,))


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param((claim(volume="pv"), volume()), id="a volume without zones"),
        pytest.param((claim(storage_class="wait"), storage_class()), id="a claim that waits for the Pod"),
    ],
)
def test_who_has_nothing_to_say(objects: tuple[Any, ...]) -> None:
    assert VolumeZone().prefilter(pod_claiming("c"), snapshot_with({}, *objects)) is SKIP


def test_the_claim_of_an_ephemeral_volume_is_not_looked_at() -> None:
    pod = volumes.pod_with({"ephemeral": {"volumeClaimTemplate": {"spec": {}}}})

    assert VolumeZone().prefilter(pod, snapshot_with({})) is SKIP
