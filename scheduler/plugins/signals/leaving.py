"""What rules refuse while Pods leave nodes or come to them: what counts Pods follows, all other verdicts stand.

What is in flight on a node goes with its Pods. A built-in signal is of the Pods that are there, so a node may pass with
one Pod more and not with two, or with a Pod that stays and not without it; with a window, who is pushed aside counts on
until it has passed. Measured samples change with no Pod that preemption moves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from scheduler.framework.matching_pods import Match, MatchingPods
from scheduler.framework.plugin import Tally
from scheduler.framework.status import Code, Rejection
from scheduler.model.arrays import BoolArray, IntArray, Rows
from scheduler.model.pods import PodInfo
from scheduler.model.rules import BuiltIn, BuiltInKind, Rule
from scheduler.model.snapshot import Snapshot
from scheduler.plugins.disruption_budgets import UsageByPriority
from scheduler.rules.built_in import Emptied, amounts, counted_pods, read_signal, refused_now
from scheduler.rules.pending_column import sums_of
from scheduler.rules.pending_load import InflightPods
from scheduler.rules.reading import read_bits

RefusedWithout = Callable[[IntArray], BoolArray | None]
"""What has left each row, int64 (n_rows,), in; what is refused then, bool (n_rows,), out; None: nobody."""

Verdicts = Callable[[Rule, PodInfo, Snapshot], Sequence[Rejection]]
"""What a rule says of all rows as things are."""


@dataclass(frozen=True, slots=True, eq=False)
class RulesWithout:
    """State for Filter: `standing` are the rejections, over all rows, that no Pod's leaving changes.

    `counting` are the rules that count, each with what it refuses once some of what it counts has left the rows;
    `gone`, int64 (n_counts, n_rows), is how much.
    """

    standing: tuple[Rejection, ...]
    counting: tuple[tuple[Rule, RefusedWithout], ...]
    gone: IntArray

    def without(self, gone: IntArray) -> RulesWithout:
        return replace(self, gone=gone)

    def rejections(self, rows: Rows, code: Code) -> list[Rejection]:
        found = [replace(one, mask=one.mask[rows]) for one in self.standing]
        for (rule, refused_without), gone in zip(self.counting, self.gone, strict=True):
            refused = refused_without(gone)
            if refused is not None:
                found.append(Rejection(refused[rows], code, rejected_by(rule), rule.name))
        return found


def tally_of(
    rules: Sequence[Rule], verdicts: Verdicts, pod: PodInfo, snapshot: Snapshot, pods: Sequence[PodInfo]
) -> Tally:
    """Return what follows the leaving of some Pods, for the rules that act for the Pod to place."""
    standing: list[Rejection] = []
    counting: list[tuple[Rule, RefusedWithout]] = []
    each: list[list[int]] = []
    below: list[IntArray] = []
    for rule in rules:
        said = verdicts(rule, pod, snapshot)
        counted = _counted_by(rule, pod, snapshot, pods)
        if counted is None:
            standing += said
            continue
        standing += [one for one in said if one.reason != rejected_by(rule)]
        counting.append((rule, counted.refused))
        each.append(counted.each)
        below.append(counted.below)
    n_rows = snapshot.nodes.n_rows
    counts = np.array(each, dtype=np.int64).reshape(len(each), len(pods))
    lower = np.array(below, dtype=np.int64).reshape(len(below), n_rows)
    state = RulesWithout(tuple(standing), tuple(counting), np.zeros_like(lower))
    return Tally(counts, lower, state.without)


@dataclass(frozen=True, slots=True)
class _Counted:
    """One rule's part of a Tally, and what it refuses without some of that."""

    each: list[int]
    below: IntArray
    refused: RefusedWithout


def _counted_by(rule: Rule, pod: PodInfo, snapshot: Snapshot, pods: Sequence[PodInfo]) -> _Counted | None:
    """Return what a rule counts of Pods, None where its verdict is the same whoever is there."""
    signal = read_signal(rule, snapshot)
    if signal is None:
        return _counted_in_flight(rule, pod, snapshot, pods)
    built_in = signal.built_in
    if built_in is None or built_in.kind is BuiltInKind.ALLOCATABLE:
        return None
    before = amounts(signal, pod, snapshot).copy()
    return _Counted(
        _each(built_in, pod, snapshot, pods),
        _below(built_in, pod, snapshot),
        lambda gone: refused_now(rule, pod, snapshot, Emptied(before, before - gone)),
    )


def _counted_in_flight(rule: Rule, pod: PodInfo, snapshot: Snapshot, pods: Sequence[PodInfo]) -> _Counted | None:
    column, limits = snapshot.signals.columns.get(rule.signal), rule.filter
    tripped = read_bits(rule, pod, snapshot)
    if column is None or tripped is None or limits is None or limits.max is None:
        return None
    sums = sums_of(column, snapshot)
    if sums is None:
        return None
    question, highest, bits = sums.question, limits.max, tripped
    return _Counted(
        [question.share(one.running_s, one.bound_s) * question.amount(one) for one in pods],
        snapshot.index(InflightPods).counted(question, snapshot.nodes.n_rows, below=pod.priority),
        lambda gone: bits | (column.values + sums.without(gone) > highest),
    )


def rejected_by(rule: Rule) -> str:
    return f'node(s) rejected by rule "{rule.name}"'


def _each(built_in: BuiltIn, pod: PodInfo, snapshot: Snapshot, pods: Sequence[PodInfo]) -> list[int]:
    if built_in.kind is BuiltInKind.PODS:
        return [1] * len(pods)
    if built_in.kind is BuiltInKind.REQUESTED:
        return [one.usage[0].get(built_in.resource, 0) for one in pods]
    match = counted_pods(built_in, pod)
    return [int(match is not None and match.holds(one) and not _stays(built_in, one, snapshot)) for one in pods]


def _below(built_in: BuiltIn, pod: PodInfo, snapshot: Snapshot) -> IntArray:
    """Return int64 (n_rows,): what the Pods of lower priority add on each row."""
    nodes = snapshot.nodes
    nothing: IntArray = np.zeros(nodes.n_rows, dtype=np.int64)
    if built_in.kind is BuiltInKind.COUNT:
        match = counted_pods(built_in, pod)
        if match is None:
            return nothing
        lower = replace(match, below=pod.priority)
        counts = snapshot.index(MatchingPods).on_rows(lower, nodes.n_rows)
        return _without_staying(built_in, lower, counts, snapshot) if built_in.window_s else counts
    usage = snapshot.index(UsageByPriority)
    if built_in.kind is BuiltInKind.PODS:
        return usage.n_pods_below(pod.priority, nodes.n_rows)
    resource = nodes.resources.get(built_in.resource)
    if resource is None:
        return nothing
    requested, _ = usage.left_below(pod.priority, nodes)
    amount: IntArray = nodes.requested[resource] - requested[resource]
    return amount


def _without_staying(built_in: BuiltIn, match: Match, counts: IntArray, snapshot: Snapshot) -> IntArray:
    """Return counts less those who go on counting; a plain loop over the Pods of the nodes that have any."""
    left = counts.copy()
    for row in np.flatnonzero(counts).tolist():
        left[row] -= sum(match.holds(one) and _stays(built_in, one, snapshot) for one in snapshot.pods_on(row))
    return left


def _stays(built_in: BuiltIn, pod: PodInfo, snapshot: Snapshot) -> bool:
    """Return whether a Pod on a node would count though it left, its window not having passed."""
    row = snapshot.nodes.row_of(pod.pod.spec.node_name) if built_in.window_s else None
    return row is not None and snapshot.is_on(pod, row) and snapshot.is_recent(pod, built_in.window_s)
