"""CompiledRule: one rule with what it reads: to which Pods it applies, what it refuses, how it scores, its weight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from scheduler.framework.status import Code, Rejection, ScoreTerm
from scheduler.model.arrays import BoolArray, FloatArray
from scheduler.model.memo import Memo
from scheduler.model.pods import PodInfo
from scheduler.model.rules import NO_LABELS, Rule, Signal
from scheduler.model.snapshot import Snapshot
from scheduler.rules.kinds import reading_of
from scheduler.rules.score import on_curve, rule_scores, rule_weight

CODE: Final = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
"""Preemption can neither cool a node nor measure it, and does not evict Pods to make a count smaller."""


class CompiledRule:
    """One rule of a rule set in force.

    name, rule, signal, reading
        The rule as the file says it, its signal (None for a label match), and what it reads of that.
    is_for_all
        Whether it concerns all Pods and treats them alike.
    """

    def __init__(self, rule: Rule, signal: Signal | None, kept: Memo) -> None:
        self.name = rule.name
        self.rule = rule
        self.signal = signal
        self.reading = reading_of(rule, signal, kept)
        self.reason = f'node(s) rejected by rule "{rule.name}"'
        self.is_for_all = rule.match.is_for_all and rule.canary is None and not self.reading.is_choosy
        self._kept, self._scores_of = kept, f"scores by {rule.name}"
        self._last = Memo(8)

    def concerns(self, pod: PodInfo, namespace_labels: Mapping[str, str] = NO_LABELS) -> bool:
        """Whether the rule concerns a Pod, whether it acts or watches: it matches, and gives something to look for."""
        match = self.rule.match
        is_covered = match.covers(pod.namespace, pod.labels, namespace_labels) and match.is_requested_by(pod)
        return is_covered and self.reading.concerns(pod)

    def is_soft(self, snapshot: Snapshot) -> bool:
        """Whether the Pod that the snapshot is for has waited so long that the rule refuses it no node."""
        return self.rule.filter is not None and 0.0 < self.rule.filter.soft_after_s <= snapshot.waited_s

    def rejection(self, refused: BoolArray) -> Rejection:
        """Return nodes beyond the limits as what Filter answers."""
        return Rejection(refused, CODE, self.reason, self.name)

    def rejections(self, pod: PodInfo | None, snapshot: Snapshot) -> list[Rejection]:
        """Return what the rule refuses, masks bool (n_rows,); without a Pod only of a steady rule.

        Whether its valve is open, or the Pod has waited too long for it, is not asked here.
        """
        found: list[Rejection] = []
        tripped = self.reading.tripped(pod, snapshot)
        if tripped is not None:
            found.append(self.rejection(tripped))
        unmeasured = self.reading.unmeasured(pod, snapshot)
        if unmeasured is not None:
            reason = f'node(s) without a sample for rule "{self.name}"'
            found.append(Rejection(unmeasured, CODE, reason, self.name))
        return found

    def steady_rejections(self, snapshot: Snapshot) -> Sequence[Rejection]:
        """Return what a steady rule refuses, without masks that refuse no node; nothing while its valve is open."""
        signals, is_open = snapshot.signals, self.reading.is_valve_open(None, snapshot)
        column, tripped = signals.columns[self.rule.signal], signals.tripped.get(self.name)

        def computed() -> Sequence[Rejection]:
            return () if is_open else [one for one in self.rejections(None, snapshot) if one.mask.any()]

        return self._last.get("rejections", (tripped, column.values, column.freshness, is_open), computed)

    def refused(self, snapshot: Snapshot) -> BoolArray:
        """Return bool (n_rows,), the live nodes that it refuses to all Pods alike, beyond limits or unmeasured."""
        refused = np.zeros(snapshot.nodes.n_rows, dtype=np.bool_)
        for rejection in self.rejections(None, snapshot):
            refused |= rejection.mask
        return refused & snapshot.nodes.alive

    def weight(self, snapshot: Snapshot) -> float:
        """Return the weight in force, 0..100, before its share is capped."""
        return rule_weight(self.rule.weight, snapshot.signals)

    def term(self, pod: PodInfo | None, snapshot: Snapshot) -> ScoreTerm:
        """Return the rule's part of a total; the same object while nothing has changed."""
        rule, weight, scores = self.rule, self.weight(snapshot), self.scores(pod, snapshot)
        return self._last.get(
            "term",
            (scores, weight),
            lambda: ScoreTerm(rule.name, scores, weight, is_column=True, max_share=rule.max_share),
        )

    def scores(self, pod: PodInfo | None, snapshot: Snapshot) -> FloatArray:
        """Return the rule's scores over all rows; while the signal is fresh, the same array in cycle after cycle.

        Without a Pod only where the signal does not depend on it.
        """
        score, column, alive = self.rule.score, self.reading.column(pod, snapshot), snapshot.nodes.alive
        if score is None:
            raise ValueError(f"rule {self.name!r} has no score")
        if column is None or not column.is_evenly_fresh:
            return rule_scores(score, column, alive)
        if column.pending is None:
            # Columns are aligned anew whenever a row gains or loses its node, so `alive` is part of their identity.
            return self._kept.get(
                (self._scores_of, column.key), (column.values,), lambda: rule_scores(score, column, alive)
            )
        changing = self.reading.changing_scores(pod, snapshot, column, lambda values: on_curve(score.curve, values))
        return rule_scores(score, column, alive) if changing is None else changing
