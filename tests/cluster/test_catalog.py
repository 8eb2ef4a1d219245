"""Objects that are neither Pods nor Nodes: into the catalog, told to the queue, set aside where they cannot be read."""

from __future__ import annotations

import msgspec
import pytest

from scheduler.errors import InvalidObjectError
from scheduler.kube.resources import KINDS
from scheduler.model.catalog import UnreadableObject
from scheduler.model.volumes import CSINode, PersistentVolume, PersistentVolumeClaim
from scheduler.model.workloads import Service
from tests.builders import object_of
from tests.cluster.test_router import World
from tests.loop.harness import Harness


def claim(name: str, version: str = "1", volume: str = "", namespace: str = "shop") -> PersistentVolumeClaim:
    metadata = {"name": name, "namespace": namespace, "uid": f"{namespace}/{name}", "resourceVersion": version}
    found = object_of("PersistentVolumeClaim", {"metadata": metadata, "spec": {"volumeName": volume}})
    assert isinstance(found, PersistentVolumeClaim)
    return found


def broken(kind: str, **metadata: str) -> UnreadableObject:
    found = KINDS[kind].decode(msgspec.json.encode({"metadata": metadata, "spec": "no mapping"}))
    assert isinstance(found, UnreadableObject)
    return found


@pytest.fixture
def harness() -> Harness:
    return Harness()


def test_the_watch_keeps_the_catalog(harness: Harness) -> None:
    router, catalog = harness.parts.router, harness.world.cache.state.catalog
    router.replaced("PersistentVolumeClaim", [claim("a"), claim("b"), claim("a", namespace="lab")], 0.0)
    assert {(one.metadata.namespace, one.metadata.name) for one in catalog.all(PersistentVolumeClaim)} == {
        ("shop", "a"),
        ("shop", "b"),
        ("lab", "a"),
    }
    assert [one.metadata.name for one in catalog.within(PersistentVolumeClaim, "shop")] == ["a", "b"]

    generation = catalog.generation(PersistentVolumeClaim)
    router.changed("MODIFIED", claim("a", "2", volume="pv"), 0.0)
    found = catalog.get(PersistentVolumeClaim, "a", "shop")
    assert found is not None
    assert found.spec.volume_name == "pv"
    assert catalog.generation(PersistentVolumeClaim) == generation + 1
    assert catalog.generation(PersistentVolume) == 0

    router.changed("DELETED", claim("a", "3"), 0.0)
    router.replaced("PersistentVolumeClaim", [claim("a", namespace="lab")], 0.0)
    assert [one.metadata.namespace for one in catalog.all(PersistentVolumeClaim)] == ["lab"]


def test_a_version_that_is_known_changes_nothing(harness: Harness) -> None:
    router, state = harness.parts.router, harness.world.cache.state
    router.changed("ADDED", claim("a"), 0.0)
    epoch = state.epoch
    router.changed("MODIFIED", claim("a"), 0.0)
    assert state.epoch == epoch


def test_what_cannot_be_read_takes_its_older_version_along(harness: Harness) -> None:
    router, cache = harness.parts.router, harness.world.cache
    router.changed("ADDED", object_of("CSINode", {"metadata": {"name": "n"}}), 0.0)
    assert cache.state.catalog.get(CSINode, "n") is not None

    router.changed("MODIFIED", broken("CSINode", name="n"), 0.0)
    assert cache.state.catalog.get(CSINode, "n") is None
    assert 'vane_unreadable_objects{kind="CSINode"} 1.0' in harness.metrics_page()

    router.changed("MODIFIED", object_of("CSINode", {"metadata": {"name": "n"}}), 0.0)
    assert cache.state.catalog.get(CSINode, "n") is not None
    harness.now_s += 2
    assert 'vane_unreadable_objects{kind="CSINode"} 0.0' in harness.metrics_page()


def test_one_without_metadata_is_not_even_set_aside() -> None:
    with pytest.raises(InvalidObjectError):
        KINDS["Service"].decode(b'{"metadata": 3}')


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"Node", "Pod"}))
def test_every_kind_can_lack_all_but_its_name(kind: str) -> None:
    assert object_of(kind, {"metadata": {"name": "x"}}).metadata.name == "x"


def test_the_queue_hears_of_what_refused_pods_may_wait_for() -> None:
    world = World()
    assert world.send("ADDED", claim("a")) == ["PersistentVolumeClaimAdd"]
    assert world.send("MODIFIED", claim("a", "2")) == ["PersistentVolumeClaimUpdate"]
    assert world.send("DELETED", claim("a", "3")) == ["PersistentVolumeClaimDelete"]
    assert world.replaced("PersistentVolumeClaim", [claim("b")]) == ["PersistentVolumeClaimAdd"]
    assert world.replaced("PersistentVolumeClaim", []) == ["PersistentVolumeClaimDelete"]


def test_what_others_do_not_wait_for_is_no_event(harness: Harness) -> None:
    """Services only shape default spreading: upstream wakes nobody for them."""
    harness.parts.router.changed("ADDED", object_of("Service", {"metadata": {"name": "s"}}), 0.0)
    assert harness.world.cache.state.catalog.get(Service, "s") is not None
