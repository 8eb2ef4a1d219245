from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from scheduler.kube.watch_stream import Replaced
from scheduler.loop.garbage import GarbageCollection
from scheduler.loop.messages import PageAsked, Stop
from scheduler.loop.pages.pages import HealthQuery
from tests.builders import make_node
from tests.loop.harness import Harness


class Counted:
    def __init__(self) -> None:
        self.n = 0

    def __call__(self) -> None:
        self.n += 1


@pytest.mark.parametrize(
    ("busy_s", "idle_s", "collects"),
    [
        pytest.param([30.0], 61.0, True, id="quiet for a while, a minute after the last time"),
        pytest.param([30.0], 59.0, False, id="within the minute"),
        pytest.param([30.0, 60.5], 61.0, False, id="a Pod has only just been decided"),
        pytest.param([30.0, 60.5], 62.5, True, id="two seconds after the last Pod"),
        pytest.param([], 300.0, False, id="nothing has happened"),
    ],
)
def test_it_collects_while_nothing_waits(busy_s: list[float], idle_s: float, *, collects: bool) -> None:
    collect = Counted()
    collecting = GarbageCollection(collect)
    collecting.idle(0.0)
    assert collect.n == 0, "not before the first lists are in"
    collecting.begin(0.0)
    for now_s in busy_s:
        collecting.busy(now_s)

    collecting.idle(idle_s)
    collecting.idle(idle_s + 0.1)

    assert collect.n == 1 + collects


def test_the_first_lists_are_frozen_as_they_come() -> None:
    collect, freeze = Counted(), Counted()
    collecting = GarbageCollection(collect, freeze)
    collecting.start()
    assert freeze.n == 1, "what has been imported"
    for _ in range(100):
        collecting.listed(100)
    assert (collect.n, freeze.n) == (0, 6)

    collecting.begin(0.0)
    for _ in range(100):
        collecting.listed(100)
    assert (collect.n, freeze.n) == (1, 6), "later lists may leave garbage"


def test_the_collector_runs_while_a_kind_cannot_be_listed(restored_collector: None) -> None:
    harness = Harness()
    seen: list[bool] = []
    harness.inbox.put(Replaced("Node", [make_node("a")]))  # Pods never come
    harness.inbox.put(
        PageAsked(HealthQuery("livez"), lambda _: seen.append(gc.isenabled()), harness.page_faults.append)
    )
    harness.inbox.put(Stop(1, "enough"))
    gc.disable()
    harness.loop.run()
    assert seen == [True]


@pytest.fixture
def restored_collector() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.enable()
    gc.set_threshold(*thresholds)
