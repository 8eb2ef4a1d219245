"""What an object does that cannot be taken as it stands: it alone suffers, and somebody is told, once an hour."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from scheduler.cluster.bad_input import BadInput, BadReason
from scheduler.cluster.cache import Cache
from scheduler.cluster.router import Router
from scheduler.errors import CacheCorruptedError
from scheduler.framework.index import Index
from scheduler.model.catalog import CatalogObject
from scheduler.model.objects import UnreadablePod, decode_pod
from scheduler.model.pods import PodInfo
from scheduler.model.structs import ObjectMeta
from tests.builders import make_node, make_pod, object_of
from tests.cluster.worlds import CountingIndex, assert_recount_agrees, make_queue, pending_uids, versioned


class Touchy(Index):
    """Raises for Pods of one label, as where an index meets what nobody thought of."""

    def __init__(self) -> None:
        self.uids: set[str] = set()

    def add_pod(self, pod: PodInfo, row: int) -> None:
        if "poison" in pod.labels:
            raise ZeroDivisionError("division by zero")
        self.uids.add(pod.uid)

    def remove_pod(self, pod: PodInfo, row: int) -> None:
        self.uids.remove(pod.uid)
        if "venom" in pod.labels:
            raise ZeroDivisionError("division by zero")


class World:
    def __init__(self) -> None:
        self.now_s = 0.0
        self.counted: Counter[tuple[str, str]] = Counter()
        self.touchy = Touchy()
        bad = BadInput(lambda: self.now_s, lambda kind, reason: self.counted.update([(kind, reason)]))
        self.cache = Cache([CountingIndex(), self.touchy], bad)
        self.queue = make_queue()
        self.router = Router(self.cache, self.queue, ["vane"], object_changed=self._broken)
        self.breaks_on = ""
        for name in ("n1", "n2"):
            self.send("ADDED", make_node(name))

    def _broken(self, key: tuple[str, str, str]) -> None:
        if key[2] == self.breaks_on:
            raise KeyError(key[2])

    def send(self, type_: str, item: Any) -> None:
        self.router.changed(type_, item, self.now_s)


def n_pods(cache: Cache, node: str) -> int:
    row = cache.state.nodes.row_of(node)
    return 0 if row is None else int(cache.state.nodes.n_pods[row])


def test_a_pod_that_an_index_cannot_take_counts_with_its_containers(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.send("ADDED", make_pod("a", node="n1", cpu="1", labels={"poison": ""}).pod)
    world.send("ADDED", make_pod("b", node="n1", cpu="1").pod)

    assert n_pods(world.cache, "n1") == 2
    assert world.cache.state.nodes.requested[0, 0] == 2_000
    assert world.counted[("Pod", "fault")] == 1
    assert "Pod default/a: counts with its containers only: ZeroDivisionError: division by zero" in caplog.text
    assert_recount_agrees(world.cache)
    world.send("DELETED", make_pod("a", node="n1", cpu="1", labels={"poison": ""}).pod)
    assert n_pods(world.cache, "n1") == 1
    assert_recount_agrees(world.cache)


def test_a_pod_that_an_index_cannot_let_go_is_gone_all_the_same() -> None:
    world = World()
    pod = make_pod("a", node="n1", cpu="1", labels={"venom": ""})
    world.send("ADDED", pod.pod)
    world.send("DELETED", pod.pod)

    assert (n_pods(world.cache, "n1"), world.cache.pods(), world.touchy.uids) == (0, [], set())
    assert world.counted[("Pod", "fault")] == 1
    world.send("ADDED", pod.pod)
    assert n_pods(world.cache, "n1") == 1
    assert_recount_agrees(world.cache)


def test_a_list_with_one_such_pod_is_taken_with_all_others() -> None:
    world = World()
    pods = [make_pod(f"p{i}", node="n1", labels={"poison": ""} if i == 1 else {}).pod for i in range(3)]
    world.router.replaced("Pod", pods, 0.0)
    assert n_pods(world.cache, "n1") == 3
    world.router.replaced("Pod", [], 0.0)
    assert (n_pods(world.cache, "n1"), world.cache.pods()) == (0, [])


def test_a_node_and_an_object_that_raise_are_set_aside() -> None:
    world = World()
    world.breaks_on = "n3"
    world.send("ADDED", make_node("n3"))
    assert list(world.cache.unreadable_nodes) == ["n3"]
    assert world.cache.node("n3") is None
    world.breaks_on = "fast"
    storage_class: CatalogObject = object_of("StorageClass", {"metadata": {"name": "fast"}, "provisioner": "x"})
    world.send("ADDED", storage_class)
    assert list(world.cache.unreadable_objects["StorageClass"]) == [("", "fast")]
    assert world.counted == {("Node", "fault"): 1, ("StorageClass", "fault"): 1}


def test_a_contradiction_in_the_cache_still_ends_it_all() -> None:
    world = World()
    world.send("ADDED", make_pod("a", node="n1").pod)
    with pytest.raises(CacheCorruptedError):
        world.send("MODIFIED", make_pod("a", node="n2").pod)


@pytest.mark.parametrize(
    "status",
    [
        {"startTime": "0000-12-31T19:00:00Z"},
        {"startTime": "99999-01-01T00:00:00Z"},
        {"conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": "0000-01-01T00:00:00Z"}]},
        {"containerStatuses": [{"name": "c", "state": {"running": {"startedAt": "now"}}}]},
    ],
)
def test_a_time_that_is_none_counts_as_not_known(status: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    pod = make_pod("a", node="n1", status=status)
    world.send("ADDED", pod.pod)
    world.send("MODIFIED", versioned(pod, 2).pod)
    world.send("DELETED", pod.pod)

    assert pod.unread_times
    assert pod.started_s == pod.running_s == pod.bound_s == float("inf")
    assert world.counted == {("Pod", "time"): 2}
    assert caplog.text.count("Pod default/a: counts without what is no time: status.") == 1
    assert f"got {next(iter(_texts(status)))!r}" in caplog.text


def _texts(value: Any) -> Any:
    """Yield the time in a status."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in ("startTime", "lastTransitionTime", "startedAt"):
                yield inner
            else:
                yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def test_a_bad_object_is_told_once_an_hour_and_counted_each_time(caplog: pytest.LogCaptureFixture) -> None:
    now_s, counted = 0.0, Counter[tuple[str, str]]()
    bad = BadInput(lambda: now_s, lambda kind, reason: counted.update([(kind, reason)]))
    for moment_s in (0.0, 1.0, 3_599.0, 3_600.0, 3_601.0):
        now_s = moment_s
        bad.note("Pod", "shop/web", BadReason.QUANTITY, "cpu: got 'many'")
    assert caplog.text.count("Pod shop/web: cpu: got 'many'") == 2
    assert counted == {("Pod", "quantity"): 5}
    bad.note("Pod", "shop/web", BadReason.TIME, "x" * 10_000)
    assert len(caplog.records[-1].getMessage()) < 600
    for i in range(20_000):
        bad.note("Pod", f"shop/{i}", BadReason.FAULT, "")
    assert len(vars(bad)["_said_s"]) == 10_000


def test_of_a_pod_that_does_not_decode_the_rest_is_read() -> None:
    found = decode_pod(
        b'{"metadata": {"name": "a", "namespace": "default", "uid": "u", "labels": {"app": 1}},'
        b' "spec": {"nodeName": "n1", "affinity": [], "containers": [{"name": 2, "resources":'
        b' {"requests": {"cpu": "1"}}}, null], "overhead": {"cpu": true}}}'
    )
    assert isinstance(found, UnreadablePod)
    assert found.rest is not None
    assert found.rest.metadata == ObjectMeta(name="a", namespace="default", uid="u")
    world = World()
    world.send("ADDED", found)
    assert (n_pods(world.cache, "n1"), world.cache.state.nodes.requested[0, 0]) == (1, 1_000)
    assert world.counted == {("Pod", "schema"): 1}
    assert pending_uids(world.queue) == []
