"""Which Pods may enter the queue, and in which order they are tried."""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.framework.events import Action, ClusterEvent, EventInterest, QueueingHint, Resource
from scheduler.framework.plugin import PreEnqueuePlugin, QueueSortPlugin
from scheduler.framework.queued import QueuedEntity
from scheduler.framework.status import Code, Status
from scheduler.model.pods import PodInfo


class SchedulingGates(PreEnqueuePlugin):
    """Keeps a Pod out of the queues until every gate in `spec.schedulingGates` has been taken away.

    Source: kube-scheduler v1.37 schedulinggates/scheduling_gates.go (behaviour).
    """

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        gates = pod.pod.spec.scheduling_gates
        if not gates:
            return None
        names = " ".join(gate.name for gate in gates)
        return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (f"waiting for scheduling gates: [{names}]",))

    def events(self) -> Sequence[EventInterest]:
        return (EventInterest(Resource.TARGET_POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, _gates_are_gone),)


def _gates_are_gone(pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    if isinstance(event.new, PodInfo) and event.new.uid == pod.uid and not event.new.pod.spec.scheduling_gates:
        return QueueingHint.QUEUE
    return QueueingHint.SKIP


class PrioritySort(QueueSortPlugin):
    """Higher priority first, then the Pod that came back to the queue first.

    Source: kube-scheduler v1.37 queuesort/priority_sort.go (behaviour).
    """

    def sort_key(self, entity: QueuedEntity) -> tuple[int, float]:
        return (-entity.priority, entity.timestamp_s)
