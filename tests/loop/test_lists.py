"""Lists of thousands of objects: applied slice by slice, while Pods are decided and pages answered."""

from __future__ import annotations

import threading
from itertools import pairwise

from scheduler.kube.watch_stream import SLICE, Changed, Replaced
from scheduler.loop.lists import AT_ONCE, Lists
from scheduler.loop.messages import SLICES_AHEAD, Inbox, PageAsked, Stop
from scheduler.loop.pages.pages import HealthQuery
from scheduler.model.objects import Pod
from tests.builders import make_node, make_pod
from tests.loop.harness import Harness


def placed(i: int) -> Pod:
    return make_pod(f"placed-{i}", uid=f"uid-{i}", node="a", cpu="1m").pod


def slice_of(*objects: Pod, is_first: bool = False, is_last: bool = False) -> Replaced:
    return Replaced("Pod", list(objects), is_first, is_last)


class World:
    def __init__(self) -> None:
        self.harness = Harness()
        self.harness.list_nodes(make_node("a", cpu="1000", memory="8Ti", pods=100_000))
        self.lists = Lists(self.harness.parts.router, self.harness.clock)

    def pods(self) -> set[str]:
        return {known.pod.uid for known in self.harness.world.cache.pods()}


def test_what_a_list_has_not_named_goes_when_it_is_complete() -> None:
    world = World()
    world.lists.take(Replaced("Pod", [placed(i) for i in range(4)]))
    world.lists.take(slice_of(placed(0), is_first=True))
    world.lists.take(slice_of(placed(7)))
    assert world.pods() == {"uid-0", "uid-1", "uid-2", "uid-3", "uid-7"}
    # It broke off, and 0 has gone before the next.
    world.lists.take(slice_of(placed(2), is_first=True))
    world.lists.take(slice_of(placed(7), is_last=True))
    assert world.pods() == {"uid-2", "uid-7"}
    assert not world.lists.is_ending


def test_a_kind_is_there_when_its_list_is_complete_and_applied() -> None:
    world = World()
    world.lists.take(slice_of(placed(0), is_first=True))
    assert world.lists.synced == set()
    world.lists.take(slice_of(placed(1), is_last=True))
    assert world.lists.synced == {"Pod"}


def test_later_changes_wait_until_all_is_deleted_that_the_list_has_not_named() -> None:
    world = World()
    world.lists.take(Replaced("Pod", [placed(i) for i in range(3 * AT_ONCE)]))
    world.lists.take(Replaced("Pod", []))
    assert len(world.pods()) == 2 * AT_ONCE
    namesake = make_pod("placed-299", uid="new", node="a", cpu="1m").pod
    world.lists.take(Changed("Pod", "ADDED", namesake))
    world.lists.take(Changed("Node", "ADDED", make_node("b")))
    world.lists.go_on()
    assert len(world.pods()) == AT_ONCE
    assert "new" not in world.pods()
    assert world.harness.world.cache.node("b") is not None, "another kind does not wait"
    while world.lists.is_ending:
        world.lists.go_on()
    assert world.pods() == {"new"}


def test_a_list_that_comes_while_the_one_before_ends_is_applied_after_it() -> None:
    world = World()
    world.lists.take(Replaced("Pod", [placed(i) for i in range(2 * AT_ONCE)]))
    for message in (Replaced("Pod", []), slice_of(placed(1), is_first=True), slice_of(placed(2), is_last=True)):
        world.lists.take(message)
    while world.lists.is_ending:
        world.lists.go_on()
    assert world.pods() == {"uid-1", "uid-2"}


def test_pods_are_decided_and_pages_answered_between_the_slices_of_a_list() -> None:
    world = World()
    harness, n_listed = world.harness, 20 * SLICE
    harness.list_pods()
    waiting = [make_pod(f"waiting-{i}", uid=f"waiting-{i}", cpu="1m").pod for i in range(10)]
    pods = [*waiting, *(placed(i) for i in range(n_listed))]
    at_bind: list[int] = []
    at_page: list[int] = []

    def n_placed() -> int:
        return harness.world.cache.counts()["pods"]

    def feed() -> None:
        for slice_ in Replaced.slices("Pod", pods):
            harness.inbox.put(slice_)
            harness.inbox.put(
                PageAsked(HealthQuery("livez"), lambda _: at_page.append(n_placed()), harness.page_faults.append)
            )
        harness.inbox.put(Stop(1, "enough"))

    harness.binder.on_bind = lambda: at_bind.append(n_placed())
    harness.seconds_per_look = 0.02
    feeder = threading.Thread(target=feed)
    feeder.start()
    harness.loop.run()
    feeder.join()
    assert len(at_bind) == len(waiting)
    assert at_bind[0] <= 2 * SLICE
    assert at_bind[-1] < n_listed, "the list was not there yet"
    steps = [after - before for before, after in pairwise(at_page)]
    assert max(steps) <= (SLICES_AHEAD + 1) * SLICE


def test_a_list_is_read_no_faster_than_it_is_applied() -> None:
    inbox = Inbox()
    for i in range(SLICES_AHEAD):
        inbox.put(slice_of(placed(i)))
    inbox.put(Stop(0, "no slice: it waits for none"))
    reader = threading.Thread(target=inbox.put, args=(slice_of(is_last=True),), daemon=True)
    reader.start()
    reader.join(0.05)
    assert reader.is_alive()
    assert inbox.take(0.0) is not None
    reader.join(10.0)
    assert not reader.is_alive()
