"""What rules refuse while Pods leave nodes or come to them: counts follow, all other verdicts stand.

A built-in signal is of the Pods that are there, so a node may pass with one Pod more and not with two, or with a
Pod that stays and not without it. With a window, who is pushed aside is taken for gone here, though it will count until
the window has passed: a limit from below may spare a node that way, and is never missed. Measured samples change with
no Pod that preemption moves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from scheduler.framework.built_in import Emptied, amounts, counted_pods, read_signal, refused_now
from scheduler.framework.matching_pods import MatchingPods
from scheduler.framework.plugin import Tally
from scheduler.framework.status import Code, Rejection
from scheduler.model.arrays import IntArray, Rows
from scheduler.model.pods import PodInfo
from scheduler.model.rules import BuiltIn, BuiltInKind, Rule
from scheduler.model.snapshot import Snapshot
from scheduler.plugins.disruption_budgets import UsageByPriority

Verdicts = Callable[[Rule, PodInfo, Snapshot], Sequence[Rejection]]
"""What a rule says of all rows as things are."""


@dataclass(frozen=True, slots=True, eq=False)
class RulesWithout:
    """State for Filter: `standing` are the rejections, over all rows, that no Pod's leaving changes.

    `counting` are the rules that count, with int64 (n_rows,), what lies on each row with all Pods there; `gone`, int64
    (n_counts, n_rows), has left of that.
    """

    standing: tuple[Rejection, ...]
    counting: tuple[tuple[Rule, IntArray], ...]
    gone: IntArray

    def without(self, gone: IntArray) -> RulesWithout:
        return replace(self, gone=gone)

    def rejections(self, pod: PodInfo, snapshot: Snapshot, rows: Rows, code: Code) -> list[Rejection]:
        found = [replace(one, mask=one.mask[rows]) for one in self.standing]
        for (rule, before), gone in zip(self.counting, self.gone, strict=True):
            refused = refused_now(rule, pod, snapshot, Emptied(before, before - gone))
            if refused is not None:
                found.append(Rejection(refused[rows], code, rejected_by(rule), rule.name))
        return found


def tally_of(
    rules: Sequence[Rule], verdicts: Verdicts, pod: PodInfo, snapshot: Snapshot, pods: Sequence[PodInfo]
) -> Tally:
    """Return what follows the leaving of some Pods, for the rules that act for the Pod to place."""
    standing: list[Rejection] = []
    counting: list[tuple[Rule, IntArray]] = []
    each: list[list[int]] = []
    below: list[IntArray] = []
    for rule in rules:
        signal = read_signal(rule, snapshot)
        said = verdicts(rule, pod, snapshot)
        if signal is None or signal.built_in is None or signal.built_in.kind is BuiltInKind.ALLOCATABLE:
            standing += said
            continue
        standing += [one for one in said if one.reason != rejected_by(rule)]
        counting.append((rule, amounts(signal, pod, snapshot).copy()))
        each.append(_each(signal.built_in, pod, pods))
        below.append(_below(signal.built_in, pod, snapshot))
    n_rows = snapshot.nodes.n_rows
    counts = np.array(each, dtype=np.int64).reshape(len(each), len(pods))
    lower = np.array(below, dtype=np.int64).reshape(len(below), n_rows)
    state = RulesWithout(tuple(standing), tuple(counting), np.zeros_like(lower))
    return Tally(counts, lower, state.without)


def rejected_by(rule: Rule) -> str:
    return f'node(s) rejected by rule "{rule.name}"'


def _each(built_in: BuiltIn, pod: PodInfo, pods: Sequence[PodInfo]) -> list[int]:
    if built_in.kind is BuiltInKind.PODS:
        return [1] * len(pods)
    if built_in.kind is BuiltInKind.REQUESTED:
        return [one.usage[0].get(built_in.resource, 0) for one in pods]
    match = counted_pods(built_in, pod)
    return [int(match is not None and match.holds(one)) for one in pods]


def _below(built_in: BuiltIn, pod: PodInfo, snapshot: Snapshot) -> IntArray:
    """Return int64 (n_rows,): what the Pods of lower priority add on each row."""
    nodes = snapshot.nodes
    nothing: IntArray = np.zeros(nodes.n_rows, dtype=np.int64)
    if built_in.kind is BuiltInKind.COUNT:
        match = counted_pods(built_in, pod)
        if match is None:
            return nothing
        return snapshot.index(MatchingPods).on_rows(replace(match, below=pod.priority), nodes.n_rows)
    usage = snapshot.index(UsageByPriority)
    if built_in.kind is BuiltInKind.PODS:
        return usage.n_pods_below(pod.priority, nodes.n_rows)
    resource = nodes.resources.get(built_in.resource)
    if resource is None:
        return nothing
    requested, _ = usage.left_below(pod.priority, nodes)
    lower: IntArray = nodes.requested[resource] - requested[resource]
    return lower
