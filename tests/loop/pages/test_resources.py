"""What the deciding thread hands out for /metrics/resources, put together as the serving process does."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Iterator
from typing import Any

import pytest

from scheduler.cluster.cache import Cache
from scheduler.cluster.queue import SchedulingQueue
from scheduler.cluster.router import Router
from scheduler.loop.pages.resources import SLICE_PODS, PodListing, ResourcesQuery
from scheduler.model.pods import PodInfo
from scheduler.serve.answered_page import OwnFigures
from scheduler.serve.resources import ResourcesPage
from tests.builders import make_node, make_pod
from tests.cluster.worlds import FakeProfile

Spec = dict[str, Any]
NOTHING = OwnFigures(dict, dict)


class World:
    """Cache, queue and router of one scheduler named vane."""

    def __init__(self) -> None:
        profiles = {"vane": FakeProfile()}
        self.cache = Cache()
        self.queue = SchedulingQueue(profiles, self.cache.nominator)
        self.router = Router(self.cache, self.queue, profiles)

    def see(self, *pods: PodInfo, type_: str = "ADDED") -> None:
        for pod in pods:
            self.router.changed(type_, pod.pod, 0.0)

    def slices(self) -> Iterator[bytes]:
        listing = PodListing(self.cache, self.queue)
        while slice_ := listing.slice():
            yield slice_

    def page(self) -> list[str]:
        """Return the page's samples, sorted."""
        page = ResourcesPage(ResourcesQuery())
        for slice_ in self.slices():
            page.add(slice_)
        lines = b"".join(page.body(NOTHING)).decode().splitlines()
        return sorted(line for line in lines if not line.startswith("#"))

    def shown(self) -> dict[str, str]:
        """Return the node by the name of every Pod on the page."""
        found = (re.search(r'node="([^"]*)",pod="([^"]*)"', line) for line in self.page())
        return {match[2]: match[1] for match in found if match}


@pytest.fixture
def world() -> World:
    world = World()
    world.router.replaced("Node", [make_node("a", cpu="64", memory="64Gi")], 0.0)
    return world


def container(requests: Spec | None = None, limits: Spec | None = None, **fields: Any) -> Spec:
    return {"name": "c", "resources": {"requests": requests or {}, "limits": limits or {}}, **fields}


CPU = 'resource="cpu",unit="cores"'
MEMORY = 'resource="memory",unit="bytes"'

# As kube-scheduler's own tests have them, and what its helpers' code says for sidecars, Pod level and overhead.
SHAPES: dict[str, tuple[Spec, dict[str, float], dict[str, float]]] = {
    "no resources": ({"containers": [container()], "initContainers": []}, {}, {}),
    "requests only": ({"containers": [container({"cpu": "1"})]}, {CPU: 1}, {}),
    "limits only": ({"containers": [container(None, {"cpu": "1500m"})]}, {}, {CPU: 1.5}),
    "zeros are left out": ({"containers": [container({"cpu": "0", "custom": 0}, {"memory": "0"})]}, {}, {}),
    "containers add up": (
        {"containers": [container({"cpu": "1"}, {"cpu": "2"}), container({"cpu": "250m"}, {"memory": "2G"})]},
        {CPU: 1.25},
        {CPU: 2, MEMORY: 2e9},
    ),
    "an init container may need more": (
        {
            "initContainers": [container({"cpu": "2", "custom": "3"}, {"memory": "1G", "custom": "5"})],
            "containers": [container({"cpu": "1", "custom": "0"}, {"memory": "2.5Gi", "custom": "6"})],
        },
        {CPU: 2, 'resource="custom",unit=""': 3},
        {MEMORY: 2684354560, 'resource="custom",unit=""': 6},
    ),
    "a sidecar runs beside all that follow": (
        {
            "initContainers": [
                container({"cpu": "1"}, {"cpu": "1"}, restartPolicy="Always"),
                container({"cpu": "5"}, {"cpu": "2"}),
            ],
            "containers": [container({"cpu": "2"}, {"cpu": "4"})],
        },
        {CPU: 6},
        {CPU: 5},
    ),
    "overhead adds to requests, and to limits there are": (
        {"containers": [container({}, {"cpu": "1"})], "overhead": {"cpu": "100m", "memory": "1Mi"}},
        {CPU: 0.1, MEMORY: 1048576},
        {CPU: 1.1},
    ),
    "the Pod's own go before its containers'": (
        {
            "containers": [container({"cpu": "1"}, {"cpu": "1", "memory": "1Gi"})],
            "resources": {"requests": {"cpu": "3"}, "limits": {"cpu": "4"}},
        },
        {CPU: 3},
        {CPU: 4, MEMORY: 1073741824},
    ),
    "units": (
        {
            "containers": [
                container(
                    {
                        "ephemeral-storage": "1k",
                        "hugepages-2Mi": "2Mi",
                        "attachable-volumes-x": "1",
                        "nvidia.com/gpu": 2,
                    }
                )
            ]
        },
        {
            'resource="attachable-volumes-x",unit="integer"': 1,
            'resource="ephemeral-storage",unit="bytes"': 1000,
            'resource="hugepages-2Mi",unit="bytes"': 2097152,
            'resource="nvidia.com/gpu",unit=""': 2,
        },
        {},
    ),
    "an impossible quantity shows nothing": ({"containers": [container({"cpu": "many", "memory": "1"})]}, {}, {}),
}


@pytest.mark.parametrize("name", SHAPES)
def test_sums_units_and_what_is_left_out(world: World, name: str) -> None:
    spec, requests, limits = SHAPES[name]
    world.see(make_pod("p", spec=spec))
    own = 'namespace="default",node="",pod="p",priority="",scheduler="vane"'
    expected = [f"kube_pod_resource_request{{{own},{rest}}} {float(value)!r}" for rest, value in requests.items()]
    expected += [f"kube_pod_resource_limit{{{own},{rest}}} {float(value)!r}" for rest, value in limits.items()]
    assert world.page() == sorted(expected)


def test_labels_are_as_kube_scheduler_writes_them(world: World) -> None:
    world.see(make_pod("on", namespace="shop", node="a", priority=-5, cpu="1", spec={"schedulerName": 'a"\\b'}))
    assert world.page() == [
        'kube_pod_resource_request{namespace="shop",node="a",pod="on",priority="-5",scheduler="a\\"\\\\b",'
        'resource="cpu",unit="cores"} 1.0'
    ]


def test_every_pod_stands_there_once_wherever_it_is(world: World) -> None:
    """Bound, pending, being bound, and waiting for another scheduler; gone ones are not."""
    elsewhere = make_pod("elsewhere", cpu="1", spec={"schedulerName": "other"})
    world.see(
        make_pod("bound", node="a", cpu="1"),
        make_pod("binding", cpu="1"),
        elsewhere,
        make_pod("gone", node="a", cpu="1"),
        make_pod("gone-elsewhere", cpu="1", spec={"schedulerName": "other"}),
    )
    entity = world.queue.pop(0.0)
    assert entity is not None
    world.cache.assume(entity.pod, "a")
    world.see(make_pod("pending", cpu="1"))
    world.see(make_pod("gone", node="a", cpu="1"), type_="DELETED")
    world.see(make_pod("gone-elsewhere", cpu="1", spec={"schedulerName": "other"}), type_="DELETED")
    assert world.shown() == {"bound": "a", "binding": "", "pending": "", "elsewhere": ""}
    assert len(world.page()) == 4

    # The other scheduler binds its Pod; then a new list lacks all but ours.
    world.see(make_pod("elsewhere", node="a", cpu="1", spec={"schedulerName": "other"}))
    assert world.shown()["elsewhere"] == "a"
    waiting = make_pod("waiting", cpu="1", spec={"schedulerName": "other"})
    world.see(waiting)
    world.router.replaced("Pod", [make_pod("bound", node="a", cpu="1").pod], 0.0)
    assert world.shown() == {"bound": "a"}


def test_pods_that_move_while_they_are_listed_stand_there_once(world: World) -> None:
    """Pending ones come first and are then bound; bound ones are replaced by others of their name."""
    world.router.replaced("Node", [make_node(f"node-{i}", cpu="64") for i in range(4)], 0.0)
    pending = [f"pending-{i}" for i in range(2 * SLICE_PODS)]
    world.see(*(make_pod(name, cpu="1m") for name in pending))
    world.see(*(make_pod(f"bound-{i}", node=f"node-{i}", cpu="1m") for i in range(4)))
    listing, page = PodListing(world.cache, world.queue), ResourcesPage(ResourcesQuery())
    page.add(listing.slice())
    world.see(*(make_pod(name, node="node-3", cpu="1m") for name in pending))
    for i in range(4):
        world.see(make_pod(f"bound-{i}", node=f"node-{3 - i}", uid=f"again-{i}", cpu="1m"))
    for slice_ in iter(listing.slice, b""):
        page.add(slice_)
    shown = re.findall(r'pod="([^"]+)"', b"".join(page.body(NOTHING)).decode())
    assert sorted(shown) == sorted([*pending, *(f"bound-{i}" for i in range(4))])


def test_the_deciding_thread_is_held_for_a_moment_only(world: World) -> None:
    """10,000 Pods of two containers: the median slice, beside what this machine takes to count."""
    spec = {"containers": [container({"cpu": "100m", "memory": "50Mi"}, {"memory": "100Mi"})] * 2}
    world.see(*(make_pod(f"p{i}", node="a", spec=spec) for i in range(10_000)))
    took_s, control_s = [], []
    began_s = time.thread_time()
    for slice_ in world.slices():
        took_s.append(time.thread_time() - began_s)
        assert len(slice_) < 100_000
        control_s.append(counting_s(20_000))
        began_s = time.thread_time()
    assert len(took_s) == 10_000 / SLICE_PODS
    assert statistics.median(took_s) < 5 * statistics.median(control_s), "2 ms, where counting takes 0.4 ms"


def counting_s(n: int) -> float:
    """Return what it takes this machine to count so far, in seconds."""
    began_s = time.thread_time()
    for _ in range(n):
        pass
    return time.thread_time() - began_s
