from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from scheduler.errors import InvalidObjectError
from scheduler.framework.status import SKIP, Code, PreFilterResult, Status
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from scheduler.plugins.volumes.volume_binding.bound_claims import VolumeState
from scheduler.plugins.volumes.volume_binding.plugin import (
    REASON_AFFINITY,
    REASON_GONE,
    REASON_IMMEDIATE,
    REASON_NO_SPACE,
    REASON_NO_VOLUME,
    VolumeBinding,
)
from tests.builders import NO_SIGNALS, cluster_of, make_node, make_pod
from tests.plugins.run import raw_scores, refusals
from tests.plugins.volumes.objects import (
    ZONE,
    claim,
    csi,
    csi_driver,
    csi_node,
    pod_claiming,
    pod_with,
    pool,
    storage_class,
    term,
    volume,
)

NODES = [make_node("a", labels={ZONE: "1"}), make_node("b", labels={ZONE: "2"})]
IN_ZONE_1 = [term(ZONE, "1")]
STATIC = storage_class(provisioner="kubernetes.io/no-provisioner")
WAITING = claim(storage_class="wait")
EVERYWHERE: dict[str, Any] = {}


def snapshot_with(*objects: Any) -> Snapshot:
    return Snapshot(cluster_of(NODES, (), [VolumeBinding()], objects), NO_SIGNALS, 0.0)


def refused(objects: Any, pod: PodInfo | None = None) -> dict[str, set[str]]:
    found = refusals(VolumeBinding(), pod or pod_claiming("c"), snapshot_with(*objects))
    assert {code for verdicts in found.values() for code, _ in verdicts} <= {"UnschedulableAndUnresolvable"}
    return {node: {reason for _, reason in verdicts} for node, verdicts in found.items()}


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        pytest.param((), 'persistentvolumeclaim "c" not found', id="no claim"),
        pytest.param(
            (claim(volume="pv", phase="Lost"),),
            'persistentvolumeclaim "c" bound to non-existent persistentvolume "pv"',
            id="a lost claim",
        ),
        pytest.param(
            (claim(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),),
            'persistentvolumeclaim "c" is being deleted',
            id="a claim that goes",
        ),
        pytest.param((claim(),), REASON_IMMEDIATE, id="no class"),
        pytest.param((claim(storage_class="wait"),), REASON_IMMEDIATE, id="a class that is not there"),
        pytest.param((WAITING, storage_class(mode="Immediate")), REASON_IMMEDIATE, id="a class that binds at once"),
        pytest.param(
            (claim(storage_class="wait", volumeName="pv"), storage_class()), REASON_IMMEDIATE, id="half bound already"
        ),
    ],
)
def test_who_can_go_nowhere(objects: Any, reason: str) -> None:
    found = VolumeBinding().prefilter(pod_claiming("c"), snapshot_with(*objects))

    assert found == Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,))


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        pytest.param(
            (),
            'waiting for ephemeral volume controller to create the persistentvolumeclaim "pod-v0"',
            id="not made yet",
        ),
        pytest.param(
            (claim("pod-v0", volume="pv"),),
            "PVC default/pod-v0 was not created for pod default/pod (pod is not owner)",
            id="another's",
        ),
    ],
)
def test_an_ephemeral_volume_needs_its_own_claim(objects: Any, reason: str) -> None:
    found = VolumeBinding().prefilter(pod_with({"ephemeral": {}}), snapshot_with(*objects))

    assert found == Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,))


def test_an_ephemeral_volume_that_is_made_for_the_pod_is_bound_like_any() -> None:
    owner = {"ownerReferences": [{"uid": "default/pod", "controller": True}]}
    objects = (claim("pod-v0", volume="pv", metadata={**owner}, annotations=None), volume(affinity=IN_ZONE_1))

    assert refused(objects, pod_with({"ephemeral": {}})) == {"b": {REASON_AFFINITY}}


def test_without_claims_there_is_nothing_to_say_and_the_score_is_zero() -> None:
    assert VolumeBinding().prefilter(make_pod(), snapshot_with()) is SKIP
    assert raw_scores(VolumeBinding(), make_pod(), snapshot_with())["VolumeBinding"] == [0, 0]


def test_a_class_without_a_mode_is_a_fault() -> None:
    with pytest.raises(InvalidObjectError, match='VolumeBindingMode not set for StorageClass "wait"'):
        VolumeBinding().prefilter(pod_claiming("c"), snapshot_with(WAITING, storage_class(mode=None)))


@pytest.mark.parametrize(
    ("terms", "passing"),
    [
        pytest.param(None, "ab", id="no affinity"),
        pytest.param([], "", id="no term"),
        pytest.param([{}], "", id="an empty term"),
        pytest.param(IN_ZONE_1, "a", id="one zone"),
        pytest.param([term(ZONE, "1"), term(ZONE, "2")], "ab", id="either zone"),
        pytest.param([term(ZONE, "1", operator="NotIn")], "b", id="not a zone"),
        pytest.param([term(ZONE, operator="Wrong"), term(ZONE, "2")], "b", id="a term that cannot be read"),
        pytest.param(
            [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}], "", id="a name: unknown"
        ),
        pytest.param(
            [{"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["a"]}]}], "ab", id="not a name"
        ),
    ],
)
def test_where_a_bound_volume_can_be_used(terms: Any, passing: str) -> None:
    expected = {node: {REASON_AFFINITY} for node in "ab" if node not in passing}

    assert refused((claim(volume="pv"), volume(affinity=terms))) == expected


def test_a_bound_volume_that_is_gone_decides_where_no_claim_before_it_did() -> None:
    objects = (claim(volume="pv"), volume(affinity=IN_ZONE_1), claim("d", volume="gone"))

    assert refused(objects, pod_claiming("c", "d")) == {"a": {REASON_GONE}, "b": {REASON_AFFINITY}}


def test_a_migrated_volume_goes_by_its_drivers_label() -> None:
    disk = volume(awsElasticBlockStore={"volumeID": "vol-1"}, affinity=IN_ZONE_1)
    migrated = csi_node("a", migrated="kubernetes.io/aws-ebs")

    assert refused((claim(volume="pv"), disk)) == {"b": {REASON_AFFINITY}}
    assert refused((claim(volume="pv"), disk, migrated)) == {"a": {REASON_AFFINITY}, "b": {REASON_AFFINITY}}


def test_zones_in_the_labels_of_a_migrated_volume_count_where_its_affinity_has_none() -> None:
    disk = volume(awsElasticBlockStore={"volumeID": "vol-1"}, labels={ZONE: "1__2"})
    nodes = [make_node("a", labels={"topology.ebs.csi.aws.com/zone": "2"}), make_node("b")]
    objects: Any = (claim(volume="pv"), disk, *(csi_node(node, migrated="kubernetes.io/aws-ebs") for node in "ab"))
    snapshot = Snapshot(cluster_of(nodes, (), [VolumeBinding()], objects), NO_SIGNALS, 0.0)

    assert set(refusals(VolumeBinding(), pod_claiming("c"), snapshot)) == {"b"}


def test_a_migrated_volume_that_cannot_be_told_is_a_fault() -> None:
    disk = volume(awsElasticBlockStore={"volumeID": "aws://zone/disk"})

    assert refused((claim(volume="pv"), disk)) == {}
    with pytest.raises(InvalidObjectError, match="could not translate pv"):
        refused((claim(volume="pv"), disk, csi_node("a", migrated="kubernetes.io/aws-ebs")))


@pytest.mark.parametrize(
    ("wanted", "offered", "fits"),
    [
        pytest.param({}, {}, True, id="as asked"),
        pytest.param({"size": "11Gi"}, {}, False, id="too small"),
        pytest.param({"size": "10Gi"}, {}, True, id="just large enough"),
        pytest.param({"size": ""}, {}, True, id="no size asked"),
        pytest.param({"modes": ["ReadWriteMany"]}, {}, False, id="another access mode"),
        pytest.param({}, {"modes": ["ReadWriteMany", "ReadWriteOnce"]}, True, id="more access modes"),
        pytest.param({"volumeMode": "Block"}, {}, False, id="another volume mode"),
        pytest.param({"volumeMode": "Filesystem"}, {}, True, id="the default volume mode"),
        pytest.param({"volumeAttributesClassName": "gold"}, {}, False, id="another attributes class"),
        pytest.param({}, {"storage_class": "other"}, False, id="another class"),
        pytest.param({}, {"phase": "Released"}, False, id="not available"),
        pytest.param({}, {"made_for": "d"}, False, id="made for another claim"),
        pytest.param({"selector": {"matchLabels": {"k": "v"}}}, {}, False, id="a selector"),
        pytest.param(
            {"selector": {"matchLabels": {"k": "v"}}}, {"labels": {"k": "v"}}, True, id="a selector that matches"
        ),
        pytest.param({"selector": {}}, {}, True, id="an empty selector"),
        pytest.param({}, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, False, id="a volume that goes"),
        pytest.param({}, {"made_for": "c", "phase": "Released"}, True, id="made for the claim, whatever its phase"),
        pytest.param({"modes": ["ReadWriteMany"]}, {"made_for": "c"}, True, id="made for the claim, whatever the mode"),
        pytest.param({"size": "11Gi"}, {"made_for": "c"}, False, id="made for the claim and too small"),
        pytest.param(
            {"annotations": {"volume.beta.kubernetes.io/storage-class": "other"}, "storage_class": "none"},
            {"storage_class": "other"},
            True,
            id="the class by annotation",
        ),
    ],
)
def test_which_free_volume_suits_a_claim(wanted: Any, offered: Any, fits: bool) -> None:
    objects = (
        STATIC,
        storage_class("other", provisioner="kubernetes.io/no-provisioner"),
        claim(**{"storage_class": "wait", **wanted}),
        volume(**{"storage_class": "wait", **offered}),
    )

    assert refused(objects) == ({} if fits else {node: {REASON_NO_VOLUME} for node in "ab"})


def test_the_smallest_volume_in_reach_is_taken_and_each_but_once() -> None:
    objects = (
        STATIC,
        claim("c", storage_class="wait", size="6Gi"),
        claim("d", storage_class="wait", size="5Gi"),
        volume("small", storage_class="wait", size="5Gi"),
        volume("near", storage_class="wait", size="8Gi", affinity=IN_ZONE_1),
        volume("large", storage_class="wait", size="20Gi"),
    )
    plan = plan_of(objects, pod_claiming("c", "d"))

    assert chosen(plan, "a") == {"d": "small", "c": "near"}
    assert chosen(plan, "b") == {"d": "small", "c": "large"}


def test_a_volume_made_for_the_claim_is_taken_and_decides_where_it_cannot_be_used() -> None:
    objects = (
        STATIC,
        WAITING,
        volume("mine", storage_class="wait", size="50Gi", made_for="c", affinity=IN_ZONE_1),
        volume("other", storage_class="wait"),
    )

    assert chosen(plan_of(objects), "a") == {"c": "mine"}
    assert refused(objects) == {"b": {REASON_NO_VOLUME}}


def test_a_claim_named_twice_takes_two_volumes() -> None:
    objects = (STATIC, WAITING, volume("mine", storage_class="wait", made_for="c"), volume("x", storage_class="wait"))

    assert refused(objects, pod_claiming("c", "c")) == {}
    assert refused(objects[:3], pod_claiming("c", "c")) == {node: {REASON_NO_VOLUME} for node in "ab"}


def test_a_selector_that_cannot_be_read_is_a_fault() -> None:
    wrong = claim(storage_class="wait", selector={"matchLabels": {"a b": "v"}})

    with pytest.raises(InvalidObjectError, match="error creating internal label selector for claim: default/c"):
        refused((STATIC, wrong))


TRACKED = csi_driver(storageCapacity=True)


@pytest.mark.parametrize(
    ("of_class", "others", "expected"),
    [
        pytest.param({}, (), {}, id="can be made everywhere"),
        pytest.param({"provisioner": ""}, (), {"a": REASON_NO_VOLUME, "b": REASON_NO_VOLUME}, id="nobody makes any"),
        pytest.param(
            {"allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": ["1"]}]}]},
            (),
            {"b": REASON_NO_VOLUME},
            id="in one zone",
        ),
        pytest.param(
            {"allowedTopologies": [{}]}, (), {"a": REASON_NO_VOLUME, "b": REASON_NO_VOLUME}, id="an empty topology"
        ),
        pytest.param({}, (TRACKED,), {"a": REASON_NO_SPACE, "b": REASON_NO_SPACE}, id="no pool"),
        pytest.param({}, (csi_driver(),), {}, id="a driver that does not count"),
        pytest.param({}, (TRACKED, pool(selector=EVERYWHERE, capacity="5Gi")), {}, id="a pool for all"),
        pytest.param(
            {},
            (TRACKED, pool(selector={"matchLabels": {ZONE: "2"}}, capacity="9Gi")),
            {"a": REASON_NO_SPACE},
            id="a pool in one zone",
        ),
        pytest.param(
            {}, (TRACKED, pool(capacity="9Gi")), {"a": REASON_NO_SPACE, "b": REASON_NO_SPACE}, id="a pool of nobody"
        ),
        pytest.param(
            {},
            (TRACKED, pool(selector=EVERYWHERE, capacity="9Gi", maximumVolumeSize="1Gi")),
            {"a": REASON_NO_SPACE, "b": REASON_NO_SPACE},
            id="a pool for small volumes",
        ),
        pytest.param(
            {}, (TRACKED, pool(selector=EVERYWHERE, maximumVolumeSize="5Gi")), {}, id="a pool that tells its limit only"
        ),
        pytest.param(
            {},
            (TRACKED, pool(selector=EVERYWHERE)),
            {"a": REASON_NO_SPACE, "b": REASON_NO_SPACE},
            id="a pool that tells nothing",
        ),
    ],
)
def test_where_a_volume_can_be_made(of_class: Any, others: Any, expected: dict[str, str]) -> None:
    found = refused((WAITING, storage_class(**of_class), *others))

    assert found == {node: {reason} for node, reason in expected.items()}


def test_a_claim_without_a_size_needs_no_pool() -> None:
    assert refused((claim(storage_class="wait", size=""), storage_class(), TRACKED)) == {}


def test_a_claim_that_has_a_node_goes_there_only() -> None:
    selected = claim(storage_class="wait", annotations={"volume.kubernetes.io/selected-node": "b"})
    free = volume("free", storage_class="wait")

    assert refused((selected, storage_class(), free)) == {"a": {REASON_NO_VOLUME}}
    assert refused((selected, STATIC, free)) == {node: {REASON_NO_VOLUME} for node in "ab"}


def test_a_node_tells_of_bound_claims_and_of_others() -> None:
    objects = (STATIC, WAITING, claim("d", volume="pv"), volume(affinity=IN_ZONE_1))

    expected = {"a": {REASON_NO_VOLUME}, "b": {REASON_AFFINITY, REASON_NO_VOLUME}}
    assert refused(objects, pod_claiming("c", "d")) == expected


def test_the_plan_says_what_would_have_to_be_done_on_a_node() -> None:
    objects = (
        storage_class(),
        WAITING,
        claim("d", storage_class="made"),
        storage_class("made"),
        volume("free", storage_class="wait", affinity=IN_ZONE_1),
        csi_driver("other"),
        volume("bound", csi=csi()),
    )
    plan = plan_of(objects, pod_claiming("c", "d"))

    assert chosen(plan, "a") == {"c": "free"}
    assert [one.metadata.name for one in plan.on("a").provision] == ["d"]
    assert [one.metadata.name for one in plan.on("b").provision] == ["c", "d"]


def test_offers_follow_what_changes() -> None:
    state = cluster_of(NODES, (), [VolumeBinding()], (STATIC, WAITING))
    steps = [
        (volume("x", storage_class="wait", affinity=IN_ZONE_1), {"b"}),
        (volume("x", storage_class="wait"), set()),
        (volume("x", storage_class="wait", made_for="other"), {"a", "b"}),
        (volume("y", storage_class="wait", made_for="c", affinity=[term(ZONE, "3")]), {"a", "b"}),
    ]
    for item, expected in steps:
        state.set_object(item)
        assert set(refusals(VolumeBinding(), pod_claiming("c"), Snapshot(state, NO_SIGNALS, 0.0))) == expected

    state.set_node(make_node("b", labels={ZONE: "3"}))
    assert set(refusals(VolumeBinding(), pod_claiming("c"), Snapshot(state, NO_SIGNALS, 0.0))) == {"a"}


def state_in(result: PreFilterResult) -> VolumeState:
    assert isinstance(result.state, VolumeState)
    return result.state


def plan_of(objects: Any, pod: PodInfo | None = None) -> Any:
    result = VolumeBinding().prefilter(pod or pod_claiming("c"), snapshot_with(*objects))
    assert isinstance(result, PreFilterResult)
    assert np.isin(["a", "b"], state_in(result).plan.names).all()  # type: ignore[union-attr]
    return state_in(result).plan


def chosen(plan: Any, node: str) -> dict[str, str]:
    return {claim.metadata.name: volume.metadata.name for claim, volume in plan.on(node).static}
