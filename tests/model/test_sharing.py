from __future__ import annotations

import tracemalloc

import msgspec
import pytest

from benchmarks.crowded_api import PODS_OF_ONE_SET, Json, node, pending, pod
from scheduler.model.objects import Node, Pod, decode_node, decode_pod
from scheduler.model.pods import PodInfo
from scheduler.model.sharing import SharedParts, shared_node, shared_pod


def read(obj: Json) -> Pod:
    found = decode_pod(msgspec.json.encode(obj))
    assert isinstance(found, Pod)
    return found


def kept(obj: Json, parts: SharedParts) -> Pod:
    found = shared_pod(read(obj), parts)
    assert isinstance(found, Pod)
    return found


def resized() -> Json:
    """Return a Pod that is being resized, with volumes, ports and a sidecar."""
    found = pod(3, 10)
    spec, status = found["spec"], found["status"]
    spec["containers"][0]["ports"] = [{"hostPort": 80, "containerPort": 80}]
    spec["containers"][0]["volumeMounts"][0]["bindMountOptions"] = ["noexec"]
    spec["initContainers"] = [spec["containers"][1] | {"name": "side", "restartPolicy": "Always"}]
    spec["volumes"].append({"name": "data", "persistentVolumeClaim": {"claimName": "data-0"}})
    status["conditions"].append({"type": "PodResizePending", "status": "True", "reason": "Infeasible"})
    status["containerStatuses"][0]["allocatedResources"] = {"cpu": "2", "memory": "4Gi"}
    status["containerStatuses"][1]["restartCount"] = 3
    return found


@pytest.mark.parametrize("obj", [pod(3, 10), resized(), pending("late")], ids=["runs", "is resized", "waits"])
def test_what_is_derived_from_a_pod_stays(obj: Json) -> None:
    before, after = PodInfo(read(obj)), PodInfo(kept(obj, SharedParts()))
    for name in (
        "key", "uid", "labels", "priority", "started_s", "running_s", "bound_s", "workload", "requests", "usage",
        "scored_requests", "host_ports", "affinity_terms", "unsupported",
    ):  # fmt: skip
        assert getattr(before, name) == getattr(after, name), name
    claims = [
        volume.persistent_volume_claim for volume in before.pod.spec.volumes or () if volume.persistent_volume_claim
    ]
    assert [volume.persistent_volume_claim for volume in after.pod.spec.volumes or ()] == claims


def test_only_what_nobody_reads_is_left_out() -> None:
    before, after = read(resized()), kept(resized(), SharedParts())
    server = (after.spec.containers or [])[0]
    assert [(mount.name, mount.bind_mount_options) for mount in server.volume_mounts or ()] == [("config", ["noexec"])]
    assert [one.type for one in after.status.conditions or ()] == ["PodScheduled", "PodResizePending"]
    assert msgspec.structs.replace(after.metadata, annotations=before.metadata.annotations) == before.metadata
    waiting = pending("late")
    waiting["metadata"]["annotations"] = {"a": "b"}
    assert kept(waiting, SharedParts()) == read(waiting)


def test_the_pods_of_one_set_share_what_they_have_alike() -> None:
    parts = SharedParts()
    first, second = kept(pod(0, 7), parts), kept(pod(1, 7), parts)
    assert first.spec.containers is second.spec.containers
    assert first.spec.tolerations is second.spec.tolerations
    assert first.metadata.labels is second.metadata.labels
    assert first.metadata.owner_references is second.metadata.owner_references
    assert (first.spec.node_name, second.spec.node_name) == (
        "ip-10-0-0-0.region-1.compute.internal",
        "ip-10-0-0-1.region-1.compute.internal",
    )
    assert PodInfo(first).class_key != PodInfo(second).class_key, "they are on two nodes"


def test_nodes_share_images_and_say_what_they_said() -> None:
    parts = SharedParts()
    raw = [msgspec.json.encode(node(i)) for i in range(2)]
    first, second = (shared_node(decode_node(one), parts) for one in raw)
    assert isinstance(first, Node)
    assert isinstance(second, Node)
    assert [first, second] == [decode_node(one) for one in raw]
    assert (first.status.images or [])[1] is (second.status.images or [])[0]
    assert first.status.allocatable is second.status.allocatable


def test_a_pod_of_ordinary_shape_takes_two_kilobytes() -> None:
    raw = [msgspec.json.encode(pod(i, 50)) for i in range(500)]
    parts = SharedParts()
    tracemalloc.start()
    try:
        pods = [shared_pod(decode_pod(one), parts) for one in raw]
        per_pod = tracemalloc.get_traced_memory()[0] / len(pods)
    finally:
        tracemalloc.stop()
    assert per_pod < 2_300


def test_equal_texts_of_different_parts_stay_apart() -> None:
    parts = SharedParts()
    labels, amounts = {"a": "1"}, {"a": "1"}
    assert parts.part("labels", labels) is labels
    assert parts.part("amounts", amounts) is amounts
    assert parts.part("labels", {"a": "1"}) is labels
    assert parts.part("labels", {"b": "1", "a": "1"}) != parts.part("labels", {"a": "1"})
    other_order = {"b": "2", "a": "1"}
    parts.part("labels", {"a": "1", "b": "2"})
    assert list(parts.part("labels", other_order)) == ["b", "a"]


def test_a_part_that_cannot_be_written_stays_its_own() -> None:
    amounts = {"cpu": 2**80}
    assert SharedParts().part("amounts", amounts) is amounts


def test_parts_that_nobody_brings_any_more_are_forgotten() -> None:
    parts = SharedParts(limit_bytes=10_000)
    often = {"app": "often"}
    parts.part("labels", often)
    for i in range(10 * PODS_OF_ONE_SET**2):
        parts.part("labels", {"app": f"once-{i}"})
        assert parts.part("labels", {"app": "often"}) is often
    assert len(parts) < 150


def test_what_each_brings_for_itself_does_not_pile_up() -> None:
    parts = SharedParts()
    often = [{"app": f"often-{i}"} for i in range(20)]
    for labels in often:
        parts.part("labels", labels)
    for i in range(10_000):
        parts.part("labels", {"of": f"pod-{i}"})
        for labels in often:
            assert parts.part("labels", dict(labels)) is labels
    assert len(parts) < 6_000
