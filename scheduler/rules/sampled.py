"""Signals with one sample for each node, for each domain of a node label, or for the whole cluster.

Besides the bits that samples have set, a node is refused where its sample and the pending load are above `max`
together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from scheduler.framework.plugin import MAX_NODE_SCORE
from scheduler.model.arrays import BoolArray, FloatArray, Rows
from scheduler.model.memo import Memo
from scheduler.model.pods import PodInfo
from scheduler.model.rules import Rule, Signal
from scheduler.model.signals import Freshness, SignalColumn
from scheduler.model.snapshot import Snapshot
from scheduler.rules.pending_column import question_of, sums_of, with_pending
from scheduler.rules.pending_load import PendingPods
from scheduler.rules.reading import Departures, Reading
from scheduler.rules.shown import Shown, Wanted, label_of


class SampledReading(Reading):
    """Reads the signal's column, the same for all Pods, with the pending load beside it."""

    def __init__(self, rule: Rule, signal: Signal | None, kept: Memo) -> None:
        super().__init__(rule, signal, kept)
        self._memo = Memo(8)

    def is_steady(self, snapshot: Snapshot) -> bool:
        column = snapshot.signals.columns.get(self.rule.signal)
        if column is None or column.signal.inflight is not None:
            return False
        # Beyond that, samples grow too old for the rule one by one.
        return self.rule.max_age_s <= 0.0 or column.is_evenly_fresh

    def column(self, pod: PodInfo | None, snapshot: Snapshot) -> SignalColumn | None:
        column = snapshot.signals.columns.get(self.rule.signal)
        if column is None:
            return None
        if column.signal.inflight is not None:
            column = with_pending(column, snapshot)
        return column if self.rule.max_age_s <= 0.0 else self._seen(column)

    def tripped(self, pod: PodInfo | None, snapshot: Snapshot) -> BoolArray | None:
        tripped, column = self._bits(pod, snapshot), snapshot.signals.columns.get(self.rule.signal)
        if tripped is None or column is None or column.signal.inflight is None:
            return tripped
        if self.rule.filter is None or self.rule.filter.max is None:
            return tripped
        # Comparisons with NaN are False: a node without a sample is not tripped.
        return tripped | (self._seen(with_pending(column, snapshot)).expected > self.rule.filter.max)

    def changing_scores(
        self,
        pod: PodInfo | None,
        snapshot: Snapshot,
        column: SignalColumn,
        on_curve: Callable[[FloatArray], FloatArray],
    ) -> FloatArray | None:
        """Return scores of a fresh column with pending load: from one Pod to the next few rows are new.

        A node without a sample gets what depends on all the others, so then all rows are, as where a domain's load
        changes with each of its nodes.
        """
        values, alive = column.values, snapshot.nodes.alive
        is_measured = self._memo.get("is measured", (values,), lambda: not (np.isnan(values) & alive).any())
        question = question_of(column, snapshot) if is_measured and not column.signal.label else None
        if question is None:
            return None
        expected = column.expected

        def renewed(rows: Rows) -> FloatArray:
            scores = on_curve(expected[rows])
            np.copyto(scores, MAX_NODE_SCORE / 2, where=np.isnan(scores))  # tombstones
            return scores

        # What the scores are made from, as one object: a key by which nothing else can be meant.
        return snapshot.by_row(self._memo.get("scores", (question,), object), renewed)

    def departures(self, pod: PodInfo, snapshot: Snapshot, pods: Sequence[PodInfo]) -> Departures | None:
        """Return how pending load on a node goes with its Pods; measured samples change with no Pod that leaves."""
        column, limits = snapshot.signals.columns.get(self.rule.signal), self.rule.filter
        if column is None or column.signal.inflight is None or limits is None or limits.max is None:
            return None
        bits, sums = self._bits(pod, snapshot), sums_of(column, snapshot)
        if bits is None or sums is None:
            return None
        question, highest = sums.question, limits.max
        return Departures(
            [question.share(one.running_s, one.bound_s) * question.amount(one) for one in pods],
            snapshot.index(PendingPods).counted(question, snapshot.nodes.n_rows, below=pod.priority),
            lambda gone: bits | (column.values + sums.without(gone) > highest),
        )

    def shown(self, snapshot: Snapshot, wanted: Wanted) -> Shown | None:
        shown, column = super().shown(snapshot, wanted), snapshot.signals.columns.get(self.rule.signal)
        if shown is None or column is None or not column.signal.label:
            return shown
        label = column.signal.label
        return shown._replace(keys=[label_of(snapshot.nodes, row, label) for row in shown.at.tolist()])

    def _bits(self, pod: PodInfo | None, snapshot: Snapshot) -> BoolArray | None:
        """Return bool (n_rows,), where samples alone have tripped the rule; None without an answer in force."""
        column = snapshot.signals.columns.get(self.rule.signal)
        seen = None if column is None else self._seen(column)
        # Bits are of samples, or held: they stand as they are until all samples are too old.
        if column is None or seen is None or seen.freshness is Freshness.ABSENT:
            return None
        return self._tripped_by(column, seen, pod, snapshot)

    def _tripped_by(
        self, column: SignalColumn, seen: SignalColumn, pod: PodInfo | None, snapshot: Snapshot
    ) -> BoolArray | None:
        tripped = snapshot.signals.tripped.get(self.rule.name)
        if tripped is None or seen.values is column.values:
            return tripped
        return tripped & (~np.isnan(seen.values) | np.isnan(column.values))

    def _seen(self, column: SignalColumn) -> SignalColumn:
        """Return the column for a rule whose samples may end earlier than the signal's: alike while fresh."""
        max_age_s = self.rule.max_age_s
        return column if max_age_s <= 0.0 or column.is_evenly_fresh else column.within(max_age_s)
