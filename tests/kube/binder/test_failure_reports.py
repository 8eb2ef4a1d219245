"""Texts of conditions are written at a steady pace; conditions and reasons that are new go at once."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import msgspec
import pytest

from scheduler.kube.binder.failure_reports import APART_S, PacedReports, changes_only_text
from scheduler.kube.binder.messages import FailureReport, PodRef

REFUSED = FailureReport(
    pod=PodRef(namespace="default", name="a", uid="a"),
    scheduler_name="vane",
    reason="Unschedulable",
    message="0/2 nodes are available: 2 Insufficient cpu.",
    generation=1,
    current_status="False",
    current_reason="Unschedulable",
    current_message="0/1 nodes are available: 1 Insufficient cpu.",
)


def of(uid: str, message: str = "m") -> FailureReport:
    return msgspec.structs.replace(REFUSED, pod=PodRef(namespace="default", name=uid, uid=uid), message=message)


@pytest.mark.parametrize(
    ("changes", "is_text"),
    [
        ({}, True),
        ({"current_status": ""}, False),
        ({"current_status": "True"}, False),
        ({"current_reason": "SchedulerError"}, False),
        ({"nominated_node_name": ""}, False),
        ({"nominated_node_name": "n1"}, False),
    ],
)
def test_only_the_text_of_a_condition_can_wait(changes: dict[str, str], is_text: bool) -> None:
    assert changes_only_text(msgspec.structs.replace(REFUSED, **changes)) is is_text


class World:
    """A pace whose clock moves only while it sleeps."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.sent: list[tuple[float, str, str]] = []
        self.is_full_until_s = 0.0
        self.paced = PacedReports(
            self._send, lambda: self.now_s >= self.is_full_until_s, lambda: self.now_s, self._sleep
        )

    def _send(self, report: FailureReport) -> None:
        self.sent.append((self.now_s, report.pod.uid, report.message))

    async def _sleep(self, seconds: float) -> None:
        self.now_s += seconds
        await asyncio.sleep(0)

    async def run(self) -> None:
        while len(self.paced):
            await asyncio.sleep(0)


def test_they_go_out_apart_and_none_is_lost() -> None:
    async def run() -> World:
        world = World()
        for i in range(201):
            world.paced.add(of(f"p{i}"))
        await world.run()
        return world

    world = asyncio.run(run())
    times = [at for at, _, _ in world.sent]
    assert [uid for _, uid, _ in world.sent] == [f"p{i}" for i in range(201)]
    assert times[0] == 100.0, "the first goes at once"
    assert all(later - earlier >= APART_S - 1e-9 for earlier, later in pairwise(times))
    assert times[-1] == pytest.approx(100.0 + 200 * APART_S)


def test_of_several_reports_on_one_pod_the_last_counts_and_a_bound_one_has_none() -> None:
    async def run() -> World:
        world = World()
        world.paced.add(of("first"))
        world.paced.add(of("a", "one"))
        world.paced.add(of("b", "two"))
        world.paced.add(of("a", "three"))
        world.paced.discard("b")
        world.paced.discard("nobody")
        await world.run()
        return world

    world = asyncio.run(run())
    assert [(uid, message) for _, uid, message in world.sent] == [("first", "m"), ("a", "three")]


def test_what_waited_for_room_does_not_go_out_together() -> None:
    async def run() -> World:
        world = World()
        world.is_full_until_s = 101.0
        for i in range(40):
            world.paced.add(of(f"p{i}"))
        await world.run()
        return world

    times = [at for at, _, _ in asyncio.run(run()).sent]
    assert times[0] == pytest.approx(101.0, abs=0.01)
    assert all(later - earlier >= APART_S - 1e-9 for earlier, later in pairwise(times))
