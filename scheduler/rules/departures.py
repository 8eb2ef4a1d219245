"""What rules refuse while Pods leave nodes or come to them: what counts Pods follows, all other verdicts stand.

Pending load leaves a node with its Pods. A built-in signal counts the Pods that are there, so a node may pass with one
Pod more and not with two, or with a Pod that stays and not without it; with a window, evicted Pods still count until it
has passed. Preemption does not change measured samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from scheduler.framework.plugin import Tally
from scheduler.framework.status import Rejection
from scheduler.model.arrays import IntArray, Rows
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from scheduler.rules.compiled_rule import CompiledRule
from scheduler.rules.reading import RefusedWithout


@dataclass(frozen=True, slots=True, eq=False)
class RulesWithout:
    """State for Filter: `standing` are the rejections, over all rows, that no Pod's leaving changes.

    `counting` are the rules that count, each with what it refuses once some of what it counts has left the rows;
    `gone`, int64 (n_counts, n_rows), is how much.
    """

    standing: tuple[Rejection, ...]
    counting: tuple[tuple[CompiledRule, RefusedWithout], ...]
    gone: IntArray

    def without(self, gone: IntArray) -> RulesWithout:
        return replace(self, gone=gone)

    def rejections(self, rows: Rows) -> list[Rejection]:
        found = [replace(one, mask=one.mask[rows]) for one in self.standing]
        for (rule, refused_without), gone in zip(self.counting, self.gone, strict=True):
            refused = refused_without(gone)
            if refused is not None:
                found.append(rule.rejection(refused[rows]))
        return found


def tally_of(rules: Sequence[CompiledRule], pod: PodInfo, snapshot: Snapshot, pods: Sequence[PodInfo]) -> Tally | None:
    """Return what follows Pods that leave, for rules that act for the Pod to place; None if that takes moving them.

    Rules whose valve is open, or for which the Pod has waited too long, refuse no node, whichever Pods leave.
    """
    acting = [rule for rule in rules if not (rule.is_soft(snapshot) or rule.reading.is_valve_open(pod, snapshot))]
    if any(rule.reading.is_moved_by(pod, one) for rule in acting for one in pods):
        return None
    standing: list[Rejection] = []
    counting: list[tuple[CompiledRule, RefusedWithout]] = []
    each: list[Sequence[int]] = []
    below: list[IntArray] = []
    for rule in acting:
        said = rule.rejections(pod, snapshot)
        counted = rule.reading.departures(pod, snapshot, pods)
        if counted is None:
            standing += said
            continue
        standing += [one for one in said if one.reason != rule.reason]
        counting.append((rule, counted.refused))
        each.append(counted.each)
        below.append(counted.below)
    n_rows = snapshot.nodes.n_rows
    counts = np.array(each, dtype=np.int64).reshape(len(each), len(pods))
    lower = np.array(below, dtype=np.int64).reshape(len(below), n_rows)
    state = RulesWithout(tuple(standing), tuple(counting), np.zeros_like(lower))
    return Tally(counts, lower, state.without)
