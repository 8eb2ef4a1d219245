"""SignalFilter: nodes beyond the limits of a rule are refused."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler.framework.events import Action, ClusterEvent, EventInterest, QueueingHint, Resource
from scheduler.framework.inflight import InflightPods
from scheduler.framework.plugin import FilterPlugin, FreedBy
from scheduler.framework.rule_reading import read_column, read_tripped
from scheduler.framework.status import Code, Rejection
from scheduler.model.arrays import BoolArray, Rows
from scheduler.model.pods import PodInfo
from scheduler.model.rules import FilterMissing
from scheduler.model.signals import SignalColumn
from scheduler.model.snapshot import Snapshot

# Preemption can neither cool a node nor measure it.
_CODE = Code.UNSCHEDULABLE_AND_UNRESOLVABLE


class SignalFilter(FilterPlugin):
    """Refuses nodes whose signal is beyond the limits of a rule, and, if the rule says so, unmeasured ones.

    It stands last in the chain so that it refuses only nodes that could have taken the Pod. The verdict with
    its hysteresis is made when samples are published (`SignalTable.tripped`); here it is only read. A rule
    whose valve is open does not refuse.
    """

    freed_by = FreedBy.NOTHING
    indexes = (InflightPods,)

    def filter(self, state: object, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[Rejection]:
        signals = snapshot.signals
        rejections: list[Rejection] = []
        for rule in signals.rules.rules:
            if not rule.refuses or rule.name in signals.open_valves or not rule.covers(pod.namespace, pod.labels):
                continue
            tripped = read_tripped(rule, pod, snapshot)
            if tripped is not None:
                reason = f'node(s) rejected by rule "{rule.name}"'
                rejections.append(Rejection(tripped[rows], _CODE, reason, rule.name))
            if rule.filter is not None and rule.filter.missing is FilterMissing.REJECT:
                reason = f'node(s) without a sample for rule "{rule.name}"'
                unmeasured = _unmeasured(read_column(rule, pod, snapshot), snapshot.nodes.n_rows)
                rejections.append(Rejection(unmeasured[rows], _CODE, reason, rule.name))
        return rejections

    def events(self) -> Sequence[EventInterest]:
        """Return whatever may change a verdict; the queue itself compares the event's rules with the Pod's."""
        return (
            EventInterest(Resource.SIGNALS, Action.REFRESHED, _a_verdict_changed),
            EventInterest(Resource.RULES, Action.REFRESHED, _a_verdict_changed),
            EventInterest(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
            EventInterest(Resource.TARGET_POD, Action.UPDATE_POD_LABEL),
        )


def _unmeasured(column: SignalColumn | None, n_rows: int) -> BoolArray:
    return np.ones(n_rows, dtype=np.bool_) if column is None else ~column.has_sample


def _a_verdict_changed(_pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    return QueueingHint.QUEUE if event.rules else QueueingHint.SKIP
