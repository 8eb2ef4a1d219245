from __future__ import annotations

from scheduler.framework.queued import QueuedEntity
from scheduler.framework.status import Code
from scheduler.plugins.queue_order import PrioritySort, SchedulingGates
from tests.builders import make_pod


def test_a_gated_pod_waits_and_every_gate_is_named() -> None:
    pod = make_pod(spec={"schedulingGates": [{"name": "b"}, {"name": "a"}]})

    status = SchedulingGates().pre_enqueue(pod)

    assert status is not None
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.reasons == ("waiting for scheduling gates: [b a]",)


def test_a_pod_without_gates_may_enter() -> None:
    assert SchedulingGates().pre_enqueue(make_pod()) is None


def test_priority_goes_before_age_and_age_before_arrival() -> None:
    def entity(name: str, priority: int | None, timestamp_s: float) -> QueuedEntity:
        return QueuedEntity((make_pod(name, priority=priority),), timestamp_s, timestamp_s)

    entities = [entity("late", 0, 9.0), entity("early", None, 1.0), entity("urgent", 7, 10.0), entity("idle", -1, 0.0)]

    assert [one.pod.pod.metadata.name for one in sorted(entities, key=PrioritySort().sort_key)] == [
        "urgent", "early", "late", "idle",
    ]  # fmt: skip
