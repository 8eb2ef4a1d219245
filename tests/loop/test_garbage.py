from __future__ import annotations

import pytest

from scheduler.loop.garbage import GarbageCollection


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
