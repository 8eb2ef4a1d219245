from __future__ import annotations

from random import Random
from typing import Any, cast

import numpy as np
import pytest

from scheduler.framework.status import SKIP, Code, PreFilterResult, Status
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from scheduler.plugins.volumes.volume_restrictions import REASON_DISK, REASON_ONE_POD, OnePodClaims, VolumeRestrictions
from tests.builders import NO_SIGNALS, cluster_of, make_node, make_pod
from tests.contracts.asking import verdicts
from tests.plugins.run import refusals
from tests.plugins.volumes.objects import claim, claim_volume, pod_claiming, pod_with
from tests.worlds import each_seed

GCE = "gcePersistentDisk"
ONE_POD = claim(modes=["ReadWriteOncePod"])


def rbd(*monitors: str, read_only: bool = False, pool: str = "rbd", image: str = "i") -> dict[str, Any]:
    return {"rbd": {"monitors": list(monitors), "pool": pool, "image": image, "readOnly": read_only}}


def iscsi(iqn: str, *, read_only: bool = False, lun: int = 0) -> dict[str, Any]:
    return {"iscsi": {"iqn": iqn, "readOnly": read_only, "lun": lun}}


def gce(name: str, *, read_only: bool = False) -> dict[str, Any]:
    return {GCE: {"pdName": name, "readOnly": read_only}}


def ebs(volume_id: str, *, read_only: bool = False) -> dict[str, Any]:
    return {"awsElasticBlockStore": {"volumeID": volume_id, "readOnly": read_only}}


def snapshot_with(*pods: PodInfo, objects: Any = ()) -> Snapshot:
    nodes = [make_node("taken"), make_node("free")]
    return Snapshot(cluster_of(nodes, pods, [VolumeRestrictions()], objects), NO_SIGNALS, 0.0)


@pytest.mark.parametrize(
    ("held", "wanted", "conflict"),
    [
        pytest.param(gce("a"), gce("a"), True, id="one GCE disk"),
        pytest.param(gce("a"), gce("b"), False, id="two GCE disks"),
        pytest.param(gce("a", read_only=True), gce("a", read_only=True), False, id="two readers"),
        pytest.param(gce("a", read_only=True), gce("a"), True, id="a reader, then a writer"),
        pytest.param(gce("a"), gce("a", read_only=True), True, id="a writer, then a reader"),
        pytest.param(ebs("v", read_only=True), ebs("v", read_only=True), True, id="EBS: not even two readers"),
        pytest.param(iscsi("q"), iscsi("q", lun=3), True, id="one iSCSI target, whatever the unit"),
        pytest.param(iscsi("q", read_only=True), iscsi("q", read_only=True), False, id="iSCSI readers"),
        pytest.param(rbd("m1", "m2"), rbd("m2", "m3"), True, id="RBD: one monitor in common"),
        pytest.param(rbd("m1"), rbd("m2"), False, id="RBD: other monitors"),
        pytest.param(rbd("m"), rbd("m", pool="p"), False, id="RBD: another pool"),
        pytest.param(rbd("m"), rbd("m", image="j"), False, id="RBD: another image"),
        pytest.param(rbd("m", read_only=True), rbd("m", read_only=True), False, id="RBD readers"),
        pytest.param(gce("a"), ebs("a"), False, id="two kinds of disk with one name"),
    ],
)
def test_which_disks_conflict(held: dict[str, Any], wanted: dict[str, Any], conflict: bool) -> None:
    snapshot = snapshot_with(pod_with(held, name="holder", node="taken", namespace="other"))

    found = refusals(VolumeRestrictions(), pod_with(wanted), snapshot)

    assert found == ({"taken": {("Unschedulable", REASON_DISK)}} if conflict else {})


def test_a_disk_comes_free_when_the_last_pod_goes() -> None:
    one, two = (pod_with(gce("a"), name=name, node="taken") for name in ("one", "two"))
    snapshot = snapshot_with(one, two)

    with snapshot.trial() as trial:
        trial.remove(one, 0)
        assert set(refusals(VolumeRestrictions(), pod_with(gce("a")), snapshot)) == {"taken"}
        trial.remove(two, 0)
        assert refusals(VolumeRestrictions(), pod_with(gce("a")), snapshot) == {}

    assert set(refusals(VolumeRestrictions(), pod_with(gce("a")), snapshot)) == {"taken"}


def test_a_claim_for_one_pod_that_is_in_use_closes_every_node() -> None:
    snapshot = snapshot_with(pod_claiming("c", name="holder", node="taken"), objects=[ONE_POD])

    found = refusals(VolumeRestrictions(), pod_claiming("c"), snapshot)

    assert found == {name: {("Unschedulable", REASON_ONE_POD)} for name in ("taken", "free")}


def test_a_node_with_a_disk_conflict_tells_that_alone() -> None:
    holder = pod_with({"persistentVolumeClaim": {"claimName": "c"}}, gce("a"), name="holder", node="taken")
    pod = pod_with({"persistentVolumeClaim": {"claimName": "c"}}, gce("a"))

    found = refusals(VolumeRestrictions(), pod, snapshot_with(holder, objects=[ONE_POD]))

    assert found == {"taken": {("Unschedulable", REASON_DISK)}, "free": {("Unschedulable", REASON_ONE_POD)}}


@pytest.mark.parametrize(
    ("holders", "objects"),
    [
        pytest.param([], [ONE_POD], id="nobody uses it"),
        pytest.param([pod_claiming("c", name="h", node="taken", namespace="other")], [ONE_POD], id="another namespace"),
        pytest.param([pod_claiming("c", name="h", node="gone")], [ONE_POD], id="a Pod whose node is gone"),
        pytest.param([pod_claiming("c", name="h", node="taken")], [claim()], id="a claim that Pods may share"),
        pytest.param(
            [pod_with({"name": "v", "ephemeral": {}}, name="c", node="taken")],
            [claim("c-v", modes=["ReadWriteOncePod"]), ONE_POD],
            id="the claim of an ephemeral volume",
        ),
    ],
)
def test_who_has_nothing_to_say(holders: list[PodInfo], objects: list[Any]) -> None:
    snapshot = snapshot_with(*holders, objects=objects)

    assert VolumeRestrictions().prefilter(pod_claiming("c"), snapshot) is SKIP


def test_a_claim_that_is_not_there_ends_the_attempt() -> None:
    expected = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ('persistentvolumeclaim "c" not found',))

    assert VolumeRestrictions().prefilter(pod_claiming("c"), snapshot_with()) == expected


def test_uses_follow_pods_that_come_and_go_in_a_what_if() -> None:
    holder = pod_claiming("c", name="holder", node="taken")
    snapshot = snapshot_with(holder, objects=[ONE_POD])
    plugin, pod = VolumeRestrictions(), pod_claiming("c")
    result = plugin.prefilter(pod, snapshot)
    assert isinstance(result, PreFilterResult)

    state = plugin.remove_pod(result.state, holder, 0, snapshot)  # type: ignore[arg-type]

    assert state == OnePodClaims(frozenset({"c"}), 0)
    assert not any(one.mask.any() for one in plugin.filter(state, pod, snapshot, slice(None)))
    assert plugin.add_pod(state, pod_claiming("c", "c", namespace="other"), 1, snapshot).n_uses == 2


def using(random: Random, name: str, node: str = "") -> PodInfo:
    """Make a Pod with some of few volumes, so that conflicts over several at once are common."""
    volumes = [gce("a"), gce("a", read_only=True), ebs("v"), rbd("m", "n"), claim_volume("c"), claim_volume("d")]
    named = [{"name": f"v{i}", **volume} for i, volume in enumerate(random.choices(volumes, k=random.randrange(4)))]
    namespace = random.choice(["default", "default", "other"]) if node else "default"
    return make_pod(name, node=node, namespace=namespace, priority=random.randrange(3), spec={"volumes": named})


@each_seed(80)
def test_a_tally_says_of_each_row_what_its_pods_leaving_says(random: Random) -> None:
    rows = range(3)
    placed = [using(random, f"p{i}", f"n{i % 3}") for i in range(8)]
    plugin, pod = VolumeRestrictions(), using(random, "new")
    objects = [claim(name, modes=["ReadWriteOncePod"]) for name in ("c", "d")]
    cluster = cluster_of([make_node(f"n{row}") for row in rows], placed, [plugin], objects)
    snapshot = Snapshot(cluster, NO_SIGNALS, 0.0)
    result = plugin.prefilter(pod, snapshot)
    if not isinstance(result, PreFilterResult):
        return
    state = cast("OnePodClaims", result.state)
    lower = [[one for one in snapshot.pods_on(row) if one.priority < pod.priority] for row in rows]
    leaving = [[one for one in pods if random.random() < 0.6] for pods in lower]
    hosts = [(row, one) for row in rows for one in lower[row]]
    tally = plugin.tally(state, pod, snapshot, [one for _, one in hosts])
    gone, below = np.zeros((2, 3), dtype=np.int64), np.zeros((2, 3), dtype=np.int64)
    for each, (row, one) in zip(tally.each.T, hosts, strict=True):
        below[:, row] += each
        gone[:, row] += each * (one in leaving[row])

    found = verdicts(plugin.filter(tally.without(gone), pod, snapshot, slice(None)), 3)

    assert tally.below.tolist() == below.tolist()
    for row in rows:
        with snapshot.trial() as trial:
            left = state
            for one in leaving[row]:
                trial.remove(one, row)
                left = plugin.remove_pod(left, one, row, snapshot)
            assert found[row] == verdicts(plugin.filter(left, pod, snapshot, np.array([row])), 1)[0]
