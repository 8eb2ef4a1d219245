"""VolumeBinding's score: the share of storage that would be left."""

from __future__ import annotations

from typing import Any

from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from scheduler.plugins.volumes.volume_binding.plugin import VolumeBinding
from tests.builders import NO_SIGNALS, cluster_of, make_node
from tests.plugins.run import raw_scores
from tests.plugins.volumes.objects import ZONE, claim, csi_driver, pod_claiming, pool, storage_class, term, volume

NODES = [make_node("a", labels={ZONE: "1"}), make_node("b", labels={ZONE: "2"})]
IN_ZONE_1 = [term(ZONE, "1")]
STATIC = storage_class(provisioner="kubernetes.io/no-provisioner")
WAITING = claim(storage_class="wait")
TRACKED = csi_driver(storageCapacity=True)
EVERYWHERE: dict[str, Any] = {}


def scores(*objects: Any, pod: PodInfo | None = None) -> list[float]:
    snapshot = Snapshot(cluster_of(NODES, (), [VolumeBinding()], objects), NO_SIGNALS, 0.0)
    return raw_scores(VolumeBinding(), pod or pod_claiming("c"), snapshot)["VolumeBinding"]


def test_plain_provisioning_and_bound_claims_score_nothing() -> None:
    assert scores(WAITING, storage_class()) == [0, 0]
    assert scores(claim(volume="pv"), volume()) == [0, 0]


def test_the_larger_free_volume_and_the_emptier_pool_score_more() -> None:
    near = volume("near", storage_class="wait", size="8Gi", affinity=IN_ZONE_1)
    assert scores(STATIC, WAITING, near, volume("far", storage_class="wait", size="20Gi")) == [38, 75]

    pools = [
        pool(f"p{zone}", selector={"matchLabels": {ZONE: zone}}, capacity=size)
        for zone, size in (("1", "6Gi"), ("2", "1Ti"))
    ]
    assert scores(WAITING, storage_class(), TRACKED, *pools) == [17, 100]


def test_the_score_is_the_mean_over_classes_rounded_half_up() -> None:
    objects = (
        STATIC,
        storage_class("other", provisioner="kubernetes.io/no-provisioner"),
        WAITING,
        claim("d", storage_class="other"),
        volume("x", storage_class="wait", size="10Gi"),
        volume("y", storage_class="other", size="500Gi"),
    )

    assert scores(*objects, pod=pod_claiming("c", "d")) == [75, 75]
    assert scores(*objects[:-1], volume("y", storage_class="other", size="100Gi"), pod=pod_claiming("c", "d")) == [
        73,
        73,
    ]


def test_claims_of_one_class_share_its_pool() -> None:
    pools = (TRACKED, pool(selector=EVERYWHERE, capacity="20Gi"))

    assert scores(WAITING, claim("d", storage_class="wait"), storage_class(), *pools, pod=pod_claiming("c", "d")) == [
        50,
        50,
    ]


def test_where_volumes_are_found_nothing_else_counts() -> None:
    objects = (
        storage_class(),
        WAITING,
        claim("d", storage_class="pooled"),
        storage_class("pooled"),
        TRACKED,
        pool(storage_class="pooled", selector=EVERYWHERE, capacity="5Gi"),
        volume("free", storage_class="wait", size="20Gi", affinity=IN_ZONE_1),
    )

    assert scores(*objects, pod=pod_claiming("c", "d")) == [75, 0]


def test_classes_that_make_kube_scheduler_crash_score_nothing() -> None:
    no_capacity = pool(selector=EVERYWHERE, maximumVolumeSize="50Gi")
    assert scores(WAITING, storage_class(), TRACKED, no_capacity) == [0, 0]

    by_annotation = claim(storage_class=None, annotations={"volume.beta.kubernetes.io/storage-class": "wait"})
    assert scores(by_annotation, storage_class(), TRACKED, pool(selector=EVERYWHERE, capacity="50Gi")) == [0, 0]
