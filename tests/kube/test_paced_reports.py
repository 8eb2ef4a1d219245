"""Texts of conditions are written at a steady pace; conditions and reasons that are new go at once."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from scheduler.kube.binder.messages import FailureReport, PodRef
from scheduler.kube.binder.paced import MAX_PER_S, PacedReports, changes_only_text

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
        self.paced = PacedReports(self._send, lambda: self.now_s, self._sleep)

    def _send(self, report: FailureReport) -> None:
        self.sent.append((self.now_s, report.pod.uid, report.message))

    async def _sleep(self, seconds: float) -> None:
        self.now_s += seconds
        await asyncio.sleep(0)

    async def run(self) -> None:
        while len(self.paced):
            await asyncio.sleep(0)


def test_no_second_sees_more_than_its_share_and_none_is_lost() -> None:
    async def run() -> World:
        world = World()
        for i in range(5 * MAX_PER_S + 1):
            world.paced.add(of(f"p{i}"))
        await world.run()
        return world

    world = asyncio.run(run())
    times = [at for at, _, _ in world.sent]
    assert [uid for _, uid, _ in world.sent] == [f"p{i}" for i in range(5 * MAX_PER_S + 1)]
    assert max(sum(start <= at < start + 1.0 for at in times) for start in times) == MAX_PER_S
    assert times[-1] == pytest.approx(105.0)


def test_of_several_reports_on_one_pod_the_last_counts_and_a_bound_one_has_none() -> None:
    async def run() -> World:
        world = World()
        for i in range(MAX_PER_S):
            world.paced.add(of(f"p{i}"))
        await world.run()
        world.paced.add(of("a", "first"))
        world.paced.add(of("b", "second"))
        world.paced.add(of("a", "third"))
        world.paced.discard("b")
        world.paced.discard("nobody")
        await world.run()
        return world

    world = asyncio.run(run())
    assert [(uid, message) for _, uid, message in world.sent[MAX_PER_S:]] == [("a", "third")]
