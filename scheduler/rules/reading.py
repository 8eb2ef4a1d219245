"""Reading: what one rule reads of its signal. Everything that differs by kind of signal is a method here.

There is one class for each kind (`rules.kinds`), and one object for each rule of a compiled rule set. A reading is
pure: its answers depend only on the snapshot and the Pod. It remembers only its own last results, each with the columns
from which it was computed, so that a kept result is the same as a new one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from scheduler.framework.events import ClusterEvent
from scheduler.model.arrays import BoolArray, ByteArray, FloatArray, IntArray
from scheduler.model.history import PlacementHistory
from scheduler.model.memo import Memo
from scheduler.model.pods import PodInfo
from scheduler.model.rules import FilterMissing, Match, Rule, Signal
from scheduler.model.signals import Freshness, SignalColumn
from scheduler.model.snapshot import Snapshot
from scheduler.rules.shown import Shown, Verdict, Wanted, shown_nodes

RefusedWithout = Callable[[IntArray], BoolArray | None]
"""What has left each row, int64 (n_rows,), in; what is refused then, bool (n_rows,), out; None: no node."""


Sample = tuple[str, float, float, float, str]
"""The sample behind a rule, as a record keeps it: freshness, age in seconds, value, pending load, key; NaN: none.

The key says which Pods read this value, where not all do: their workload, number of cards, the zone that they call. A
plain tuple, because each decision makes one for each rule.
"""

NO_ANSWER: Final[Sample] = (Freshness.ABSENT.value, math.inf, math.nan, math.nan, "")


@dataclass(frozen=True, slots=True)
class Departures:
    """How a rule's verdict follows Pods that leave nodes: what it counts of each Pod, and what it refuses without some.

    `each` has a number for each Pod asked about; `below` is int64 (n_rows,), what all Pods of lower priority than the
    Pod to place count for on each row.
    """

    each: Sequence[int]
    below: IntArray
    refused: RefusedWithout


class Reading:
    """What a rule reads. This class reads nothing and refuses no node; each kind overrides what differs.

    `kept` has the last results that Pods have of their own, of all rules together, so that many rules need no more room
    than one.
    """

    depends_on_pod: bool = False
    """Whether Pods may read different values on one node."""

    is_choosy: bool = False
    """Whether there are Pods that give it nothing to look for (`concerns`)."""

    smoothing_s: float = 0.0
    """The half-life with which values are smoothed, 0 where they are as measured."""

    source: str = ""
    """Where its values come from: PromQL, or what it reads of the snapshot."""

    key: str = ""
    """What one sample stands for, as pages name it: a node label or a kind."""

    is_asked: bool = True
    """Whether a Prometheus is asked for it; everything else is exact at its moment."""

    def __init__(self, rule: Rule, signal: Signal | None, kept: Memo) -> None:
        self.rule = rule
        self._kept = kept
        if signal is not None:
            self.smoothing_s, self.source, self.key = signal.smoothing_s, signal.source, signal.label or signal.by.value

    def concerns(self, pod: PodInfo) -> bool:
        """Whether a Pod gives it something to look for, beyond what `Rule.match` says."""
        return True

    def is_steady(self, snapshot: Snapshot) -> bool:
        """Whether what it says is the same for all Pods, and for as long as `SignalTable.edition` stays."""
        return False

    def column(self, pod: PodInfo | None, snapshot: Snapshot) -> SignalColumn | None:
        """Return the signal as it is for this Pod, None where it never had an answer, and for a rule without a signal.

        Without a Pod what is the same for all, or an overview; None where there is no such thing.
        """
        return None

    def tripped(self, pod: PodInfo | None, snapshot: Snapshot) -> BoolArray | None:
        """Return bool (n_rows,), True where the value of a node is beyond the limits; never for lack of a sample.

        None where nothing is refused: without an answer in force, and for a rule without a filter.
        """
        return None

    def unmeasured(self, pod: PodInfo | None, snapshot: Snapshot) -> BoolArray | None:
        """Return bool (n_rows,), True where the rule refuses a node for the lack of a sample; None: nowhere."""
        limits = self.rule.filter
        if limits is None or limits.missing is not FilterMissing.REJECT or not self._is_due_a_sample(pod, snapshot):
            return None
        column = self.column(pod, snapshot)
        return np.ones(snapshot.nodes.n_rows, dtype=np.bool_) if column is None else ~column.has_sample

    def is_valve_open(self, pod: PodInfo | None, snapshot: Snapshot) -> bool:
        """Whether the rule only scores this Pod for now."""
        return self.rule.name in snapshot.signals.open_valves

    def changing_scores(
        self,
        pod: PodInfo | None,
        snapshot: Snapshot,
        column: SignalColumn,
        on_curve: Callable[[FloatArray], FloatArray],
    ) -> FloatArray | None:
        """Return scores, (n_rows,), of a column whose rows change with each Pod, renewed row by row; None: not here."""
        return None

    def departures(self, pod: PodInfo, snapshot: Snapshot, pods: Sequence[PodInfo]) -> Departures | None:
        """Return what it counts of Pods that may leave; None if its verdict does not depend on them."""
        return None

    def is_moved_by(self, pod: PodInfo, other: PodInfo) -> bool:
        """Whether another Pod's leaving may change its verdict on all nodes, not on that Pod's alone."""
        return False

    def may_free(self, pod: PodInfo, event: ClusterEvent) -> bool:
        """Return whether a change of a Pod or node may end a refusal; samples tell of themselves."""
        return False

    def freed_by_passing(self, history: PlacementHistory, after_s: float, until_s: float) -> Sequence[Match]:
        """Return the Pods whose count falls since Pods that have gone stop counting between two times, UNIX."""
        return ()

    def sample(self, pod: PodInfo, snapshot: Snapshot, row: int) -> Sample:
        """Return the sample of one node, -1: of none."""
        column = self.column(pod, snapshot)
        if column is None:
            return NO_ANSWER
        if row < 0:
            return column.freshness.value, column.age_s, math.nan, math.nan, column.key
        pending = math.nan if column.pending is None else float(column.pending[row])
        freshness, age_s = column.freshness, column.age_s
        if column.row_lag_s is not None:
            # For a node whose own sample is old its own age is reported, not that of the signal.
            freshness, age_s = column.freshness_at(row), column.age_at(row)
        return freshness.value, age_s, float(column.values[row]), pending, column.key

    def shown(self, snapshot: Snapshot, wanted: Wanted) -> Shown | None:
        """Return the samples that a page shows, in its order; None where there are none."""
        column = self.column(None, snapshot)
        return None if column is None else shown_nodes(column, snapshot.nodes, wanted)

    def verdicts(self, snapshot: Snapshot, shown: Shown) -> ByteArray | None:
        """Return what the filter says of the samples shown, uint8 (n,) of `Verdict`; None: it says nothing of them."""
        verdicts = np.zeros(len(shown.at), dtype=np.uint8)
        unmeasured, tripped = self.unmeasured(None, snapshot), self.tripped(None, snapshot)
        if unmeasured is not None:
            verdicts[unmeasured[shown.at]] = Verdict.UNMEASURED
        if tripped is not None:
            verdicts[tripped[shown.at]] = Verdict.BEYOND
        return verdicts

    def _is_due_a_sample(self, pod: PodInfo | None, snapshot: Snapshot) -> bool:
        """Whether a node may be refused because it has no sample for this Pod."""
        return True
