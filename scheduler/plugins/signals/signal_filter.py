"""SignalFilter: nodes beyond the limits of a rule are refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from scheduler.framework.events import Action, ClusterEvent, EventInterest, QueueingHint, Resource
from scheduler.framework.plugin import FilterPlugin, FreedBy, Tally
from scheduler.framework.status import Rejection
from scheduler.framework.usage_by_priority import UsageByPriority
from scheduler.model.arrays import Rows
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from scheduler.plugins.shared.own_namespace import OWN_NAMESPACE
from scheduler.rules.compiled import INDEXES, compiled_rules
from scheduler.rules.departures import RulesWithout, tally_of

_POD_ACTIONS = (
    Action.ADD | Action.DELETE | Action.UPDATE_POD_LABEL | Action.UPDATE_POD_SCALE_DOWN | Action.UPDATE_POD_SCALE_UP
)
_NODE_ACTIONS = Action.DELETE | Action.UPDATE_NODE_ALLOCATABLE
"""Beyond a new node and new labels, which may free a Pod from any rule."""


class SignalFilter(FilterPlugin):
    """Refuses nodes whose signal is beyond the limits of a rule, and, if the rule says so, unmeasured ones.

    It stands last in the chain so that it refuses only nodes that could have taken the Pod. The verdict with
    its hysteresis is made when samples are published (`SignalTable.tripped`); here it is only read. A rule
    whose valve is open does not refuse.
    """

    freed_by = FreedBy.ANY_ROW
    applies_rules = True
    kinds = ("Namespace",)
    indexes = (*INDEXES, UsageByPriority)

    def filter(self, state: RulesWithout | None, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[Rejection]:
        if state is not None:
            return state.rejections(rows)
        found = compiled_rules(snapshot).rejections(pod, snapshot)
        return found if isinstance(rows, slice) else [replace(one, mask=one.mask[rows]) for one in found]

    def follow(self, snapshot: Snapshot) -> None:
        compiled_rules(snapshot).follow_filters(snapshot)

    def tally(
        self, state: RulesWithout | None, pod: PodInfo, snapshot: Snapshot, pods: Sequence[PodInfo]
    ) -> Tally | None:
        """Count what built-in signals read, and pending load; no other verdict changes when Pods leave."""
        return tally_of(compiled_rules(snapshot).concerning(pod, snapshot).refusing, pod, snapshot, pods)

    def events(self) -> Sequence[EventInterest]:
        """Return whatever may change a verdict; the queue itself compares the event's rules with the Pod's."""
        return (
            EventInterest(Resource.SIGNALS, Action.REFRESHED, _a_verdict_changed),
            EventInterest(Resource.RULES, Action.REFRESHED, _a_verdict_changed),
            EventInterest(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
            EventInterest(Resource.TARGET_POD, Action.UPDATE_POD_LABEL),
            OWN_NAMESPACE,
            EventInterest(Resource.ASSIGNED_POD, _POD_ACTIONS, _a_count_changed),
            EventInterest(Resource.NODE, _NODE_ACTIONS, _a_count_changed),
        )


def _a_count_changed(_pod: PodInfo, _event: ClusterEvent) -> QueueingHint:
    """Leave it to the queue, which knows the rules that refused the Pod (`Reading.may_free`)."""
    return QueueingHint.SKIP


def _a_verdict_changed(_pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    return QueueingHint.QUEUE if event.rules else QueueingHint.SKIP
