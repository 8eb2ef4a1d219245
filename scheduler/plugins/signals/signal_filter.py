"""SignalFilter: nodes beyond the limits of a rule are refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from scheduler.framework.events import Action, ClusterEvent, EventInterest, QueueingHint, Resource
from scheduler.framework.matching_pods import MatchingPods
from scheduler.framework.plugin import FilterPlugin, FreedBy, Tally
from scheduler.framework.status import Code, Rejection
from scheduler.model.arrays import Rows
from scheduler.model.pods import PodInfo
from scheduler.model.rules import Rule
from scheduler.model.snapshot import Snapshot
from scheduler.plugins.disruption_budgets import UsageByPriority
from scheduler.plugins.signals.leaving import RulesWithout, rejected_by, tally_of
from scheduler.rules.concerned import Concerned, concerning
from scheduler.rules.events import NODE_ACTIONS, POD_ACTIONS
from scheduler.rules.keyed import called_pods
from scheduler.rules.pending_load import InflightPods
from scheduler.rules.reading import is_steady, is_valve_open, read_tripped, read_unmeasured

# Preemption can neither cool a node nor measure it, and nobody is pushed aside to make a count smaller.
_CODE = Code.UNSCHEDULABLE_AND_UNRESOLVABLE


class SignalFilter(FilterPlugin):
    """Refuses nodes whose signal is beyond the limits of a rule, and, if the rule says so, unmeasured ones.

    It stands last in the chain so that it refuses only nodes that could have taken the Pod. The verdict with
    its hysteresis is made when samples are published (`SignalTable.tripped`); here it is only read. A rule
    whose valve is open does not refuse, and one that only watches the Pod tells apart whom it would refuse.
    """

    freed_by = FreedBy.ANY_ROW
    indexes = (InflightPods, MatchingPods, UsageByPriority)

    def filter(self, state: RulesWithout | None, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[Rejection]:
        if state is not None:
            return state.rejections(rows, _CODE)
        return _rejections(pod, snapshot, rows, acting=True)

    def shadow_filter(self, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[Rejection]:
        return _rejections(pod, snapshot, rows, acting=False)

    def follow(self, snapshot: Snapshot) -> None:
        _refused(snapshot)

    def tally(
        self, state: RulesWithout | None, pod: PodInfo, snapshot: Snapshot, pods: Sequence[PodInfo]
    ) -> Tally | None:
        """Count what built-in signals read, and what is in flight; all else that rules say stands, whoever leaves."""
        refusing = concerning(pod, snapshot).refusing
        acting = [rule for rule in refusing if not is_valve_open(rule, pod, snapshot)]
        called = [match for rule in acting if (match := called_pods(rule, pod)) is not None]
        if any(match.holds(one) for match in called for one in pods):
            # Without a Pod that is called the mean of the others may lie elsewhere, on all nodes.
            return None
        return tally_of(acting, _verdicts, pod, snapshot, pods)

    def events(self) -> Sequence[EventInterest]:
        """Return whatever may change a verdict; the queue itself compares the event's rules with the Pod's."""
        return (
            EventInterest(Resource.SIGNALS, Action.REFRESHED, _a_verdict_changed),
            EventInterest(Resource.RULES, Action.REFRESHED, _a_verdict_changed),
            EventInterest(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
            EventInterest(Resource.TARGET_POD, Action.UPDATE_POD_LABEL),
            EventInterest(Resource.ASSIGNED_POD, POD_ACTIONS, _a_count_changed),
            EventInterest(Resource.NODE, NODE_ACTIONS, _a_count_changed),
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Refused:
    """What steady rules refuse in one edition of the signals.

    `by_rule` lists it for each steady rule: nothing where no node is refused, or its valve is open. `for_pods` has it
    for those Pods that were asked about, by what concerns them and whether it acts, with the rules that are not steady.
    """

    by_rule: Mapping[str, Sequence[Rejection]]
    for_pods: dict[tuple[Concerned, bool], tuple[list[Rejection], list[Rule]]] = field(default_factory=dict)


def _rejections(pod: PodInfo, snapshot: Snapshot, rows: Rows, *, acting: bool) -> Sequence[Rejection]:
    """Return what the rules that act on the Pod refuse, or what those that only watch it would; steady rules first."""
    concerned = concerning(pod, snapshot)
    rules = concerned.refusing if acting else concerned.would_refuse
    if not rules:
        return ()
    refused = _refused(snapshot)
    known = refused.for_pods.get((concerned, acting))
    if known is None:
        said = [one for rule in rules for one in refused.by_rule.get(rule.name, ())]
        known = said, [rule for rule in rules if rule.name not in refused.by_rule]
        refused.for_pods[concerned, acting] = known
    said, others = known
    asked = [rule for rule in others if not is_valve_open(rule, pod, snapshot)]
    found = [*said, *(one for rule in asked for one in _verdicts(rule, pod, snapshot))]
    return found if isinstance(rows, slice) else [replace(one, mask=one.mask[rows]) for one in found]


def _refused(snapshot: Snapshot) -> _Refused:
    def computed() -> _Refused:
        refusing = (rule for rule in snapshot.signals.rules.rules if rule.refuses)
        return _Refused({rule.name: _refused_by(rule, snapshot) for rule in refusing if is_steady(rule, snapshot)})

    return snapshot.memo.get(("refused",), (snapshot.signals.edition,), computed)


def _refused_by(rule: Rule, snapshot: Snapshot) -> Sequence[Rejection]:
    signals, is_open = snapshot.signals, is_valve_open(rule, None, snapshot)
    column, tripped = signals.columns[rule.signal], signals.tripped.get(rule.name)

    def computed() -> Sequence[Rejection]:
        return () if is_open else [one for one in _verdicts(rule, None, snapshot) if one.mask.any()]

    sources = (rule, tripped, column.values, column.freshness, is_open)
    return snapshot.memo.get(("refused by", rule.name), sources, computed)


def _verdicts(rule: Rule, pod: PodInfo | None, snapshot: Snapshot) -> list[Rejection]:
    """Return what one rule refuses, masks bool (n_rows,); without a Pod only of a steady rule."""
    found: list[Rejection] = []
    tripped = read_tripped(rule, pod, snapshot)
    if tripped is not None:
        found.append(Rejection(tripped, _CODE, rejected_by(rule), rule.name))
    unmeasured = read_unmeasured(rule, pod, snapshot)
    if unmeasured is not None:
        reason = f'node(s) without a sample for rule "{rule.name}"'
        found.append(Rejection(unmeasured, _CODE, reason, rule.name))
    return found


def _a_count_changed(_pod: PodInfo, _event: ClusterEvent) -> QueueingHint:
    """Leave it to the queue, which knows the rules that refused the Pod (`may_free`)."""
    return QueueingHint.SKIP


def _a_verdict_changed(_pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    return QueueingHint.QUEUE if event.rules else QueueingHint.SKIP
