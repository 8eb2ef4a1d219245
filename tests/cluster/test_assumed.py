"""Objects as we have decided them to be: seen by all, until the watch shows another version or they are given back."""

from __future__ import annotations

import msgspec
import pytest

from scheduler.cluster.assumed import ApiObjects, AssumedObjects
from scheduler.errors import InvalidObjectError
from scheduler.model.catalog import Catalog, key_of
from scheduler.model.state import ClusterState
from scheduler.model.volumes import PersistentVolumeClaim
from tests.builders import make_node
from tests.cluster.test_catalog import claim
from tests.cluster.test_router import World


class Objects:
    """A catalog with the claims a and b."""

    def __init__(self) -> None:
        self.state = ClusterState()
        self.assumed = AssumedObjects(self.state)
        self.state.set_object(claim("a"))
        self.state.set_object(claim("b"))

    def now(self, name: str = "a", catalog: Catalog | None = None) -> PersistentVolumeClaim | None:
        return (catalog or self.state.catalog).get(PersistentVolumeClaim, name, "shop")

    def contents(self) -> bytes:
        return b"".join(msgspec.json.encode(one) for one in self.state.catalog.all(PersistentVolumeClaim))


@pytest.fixture
def objects() -> Objects:
    return Objects()


def test_all_see_what_is_assumed_but_who_asks_for_what_the_server_showed(objects: Objects) -> None:
    shown, item = objects.now(), claim("a", volume="pv")
    epoch = objects.state.epoch
    assert objects.assumed.assume(item) == ("PersistentVolumeClaim", "shop", "a")

    assert objects.now() is item
    assert objects.state.epoch > epoch
    api = ApiObjects(objects.state, objects.assumed)
    assert api.get(PersistentVolumeClaim, "a", "shop") is shown
    assert api.get(PersistentVolumeClaim, "b", "shop") is objects.now("b")
    assert api.get(PersistentVolumeClaim, "c", "shop") is None


def test_what_is_given_back_is_as_before(objects: Objects) -> None:
    before, shown, item = objects.contents(), objects.now(), claim("a", volume="pv")
    objects.assumed.assume(item)
    assert objects.contents() != before

    assert objects.assumed.forget(item) is shown
    assert objects.contents() == before
    assert len(objects.assumed) == 0
    assert objects.assumed.forget(item) is None


def test_of_two_assumptions_the_last_one_counts_and_nobody_else_takes_it_back(objects: Objects) -> None:
    shown, first, second = objects.now(), claim("a", volume="x"), claim("a", volume="y")
    objects.assumed.assume(first)
    objects.assumed.assume(second)

    assert objects.assumed.forget(first) is None
    assert objects.now() is second
    assert objects.assumed.forget(second) is shown


@pytest.mark.parametrize("item", [claim("a", "2"), claim("none")])
def test_what_is_not_there_in_that_version_cannot_be_assumed(objects: Objects, item: PersistentVolumeClaim) -> None:
    before = objects.contents()
    with pytest.raises(InvalidObjectError, match=r'"shop/\w+" is out of sync'):
        objects.assumed.assume(item)
    assert objects.contents() == before


def test_another_version_ends_it_and_events_tell_of_what_was_shown() -> None:
    world = World()
    world.send("ADDED", claim("a"))
    shown = world.cache.state.catalog.get(PersistentVolumeClaim, "a", "shop")
    item = claim("a", volume="pv")
    world.cache.assumed.assume(item)

    assert world.send("MODIFIED", claim("a")) == []
    assert len(world.cache.assumed) == 1
    assert world.send("MODIFIED", claim("a", "2")) == ["PersistentVolumeClaimUpdate"]
    assert world.queue.told[0][0].old is shown
    assert len(world.cache.assumed) == 0
    assert world.cache.assumed.forget(item) is None


def test_a_deletion_ends_it() -> None:
    world = World()
    world.send("ADDED", claim("a"))
    item = claim("a", volume="pv")
    world.cache.assumed.assume(item)

    assert world.send("DELETED", claim("a", "2")) == ["PersistentVolumeClaimDelete"]
    assert world.cache.assumed.shown(key_of(item)) is None
    assert world.cache.assumed.forget(item) is None


def test_nodes_are_shown_as_they_are() -> None:
    world = World()
    world.node(make_node("n"), "ADDED")
    api = ApiObjects(world.cache.state, world.cache.assumed)
    assert api.node("n") is world.cache.node("n")
    world.node(make_node("n"), "DELETED")
    assert api.node("n") is None
