"""Signals with samples by two keys: cards of nodes, workloads on nodes, pairs of domains. A Pod reads its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final

import numpy as np

from scheduler.model.arrays import BoolArray, ByteArray, FloatArray, IntArray
from scheduler.model.keyed import KeyedColumn
from scheduler.model.memo import Memo
from scheduler.model.pods import PodInfo
from scheduler.model.rules import Rule, Signal
from scheduler.model.signals import Freshness, SignalColumn
from scheduler.model.snapshot import Snapshot
from scheduler.model.views import NodeView
from scheduler.rules.sampled import SampledReading
from scheduler.rules.shown import Shown, Verdict, Wanted

MOST_SHOWN: Final = 1_000
"""So many of 100,000 samples take the deciding thread 1.5 ms."""


class KeyedReading(SampledReading, ABC):
    """Reads the samples that are the Pod's own; without a Pod an overview.

    What it has brought to the rows is kept while the samples, the nodes and their labels stand, so that Pods that read
    the same share one array.
    """

    depends_on_pod = True

    def __init__(self, rule: Rule, signal: Signal | None, kept: Memo) -> None:
        super().__init__(rule, signal, kept)
        # The first parts of keys among what is kept of all rules.
        self._values_of = f"values read by {rule.name}"
        self._trips_of = f"trips of {rule.name}"

    def is_steady(self, snapshot: Snapshot) -> bool:
        return False

    def column(self, pod: PodInfo | None, snapshot: Snapshot) -> SignalColumn | None:
        """Return the column with the values that the Pod reads; as it is before the first answer.

        Its values are the same array in cycle after cycle while nothing has changed for the Pods that read it.
        """
        column = snapshot.signals.columns.get(self.rule.signal)
        if column is None:
            return None
        samples = None if pod is None else snapshot.signals.keyed.get(self.rule.signal)
        if pod is not None and samples is not None:
            values, key = self._values(pod, samples, snapshot)
            # A signal with two keys has neither pending load nor lags by row.
            column = SignalColumn(
                column.signal, values, column.age_s, column.as_of_unix_s, None, None, key, column.fade_age_s
            )
        return column if self.rule.max_age_s <= 0.0 else self._seen(column)

    def is_valve_open(self, pod: PodInfo | None, snapshot: Snapshot) -> bool:
        """Whether the rule only scores this Pod: what it refuses, so whether that is too much, depends on the Pod."""
        if super().is_valve_open(pod, snapshot):
            return True
        if self.rule.filter is None or self.rule.filter.valve is None:
            return False
        verdicts = (self.tripped(pod, snapshot), self.unmeasured(pod, snapshot))
        refused = [verdict & snapshot.nodes.alive for verdict in verdicts if verdict is not None]
        n_refused = int(np.count_nonzero(np.logical_or.reduce(refused))) if refused else 0
        return n_refused > self.rule.filter.valve * snapshot.nodes.n_alive

    def shown(self, snapshot: Snapshot, wanted: Wanted) -> Shown | None:
        """Return the samples with the highest values, or those of one node; at most MOST_SHOWN."""
        signals, nodes = snapshot.signals, snapshot.nodes
        samples, column = signals.keyed.get(self.rule.signal), signals.columns.get(self.rule.signal)
        if samples is None or column is None or column.freshness is Freshness.ABSENT:
            return None
        rows = _row_of_inner(samples, nodes)
        candidates = np.flatnonzero(rows[samples.inner] >= 0)
        if wanted.node:
            row = nodes.row_of(wanted.node)
            inner = -1 if row is None or row >= len(samples.alignment) else int(samples.alignment[row])
            candidates = candidates[samples.inner[candidates] == inner]
        at = _highest(samples, candidates, min(len(candidates) if wanted.node else wanted.limit, MOST_SHOWN))
        names = self._names(nodes, [int(rows[inner]) for inner in samples.inner[at]])
        ages_s, pending = np.full(len(at), column.age_s), np.full(len(at), np.nan)
        return Shown(names, self._keys(samples, names, at), samples.values[at], ages_s, pending, at, samples)

    def verdicts(self, snapshot: Snapshot, shown: Shown) -> ByteArray | None:
        if self.rule.filter is None or shown.samples is None:
            return None
        bits = shown.samples.trips.get(self.rule.name)
        if bits is None:
            return np.full(len(shown.at), Verdict.PASSES, dtype=np.uint8)
        return np.where(bits[shown.at], Verdict.BEYOND, Verdict.PASSES).astype(np.uint8)

    @abstractmethod
    def _values(self, pod: PodInfo, samples: KeyedColumn, snapshot: Snapshot) -> tuple[FloatArray, str]:
        """Return what the Pod reads, float64 (n_rows,), and the name of those who read the same."""

    @abstractmethod
    def _tripped(self, pod: PodInfo, samples: KeyedColumn, snapshot: Snapshot) -> BoolArray | None:
        """Return bool (n_rows,), what the rule's filter refuses to the Pod; None: nothing."""

    @abstractmethod
    def _keys(self, samples: KeyedColumn, names: Sequence[str], at: IntArray) -> list[str]:
        """Return the second names of samples that are shown, empty where they have none."""

    def _names(self, nodes: NodeView, rows: Sequence[int]) -> list[str]:
        return [nodes.names[row] for row in rows]

    def _nothing(self, samples: KeyedColumn) -> FloatArray:
        return self._memo.get("nothing", (samples,), samples.nothing)

    def _tripped_by(
        self, column: SignalColumn, seen: SignalColumn, pod: PodInfo | None, snapshot: Snapshot
    ) -> BoolArray | None:
        samples = snapshot.signals.keyed.get(self.rule.signal)
        if pod is None or samples is None or self.rule.filter is None or self.rule.name not in samples.trips:
            return None
        return self._tripped(pod, samples, snapshot)


def group_names(samples: KeyedColumn, at: IntArray) -> list[str]:
    """Return the group of each sample."""
    groups: list[int] = (np.searchsorted(samples.starts, at, side="right") - 1).tolist()
    wanted = set(groups)
    name_of = {number: name for name, number in samples.groups.items() if number in wanted}
    return [name_of[group] for group in groups]


def _row_of_inner(samples: KeyedColumn, nodes: NodeView) -> IntArray:
    """Return int64 (n_inner,): some live row of each inner key, -1 where there is none."""
    rows = np.full(samples.n_inner, -1, dtype=np.int64)
    live = np.flatnonzero((samples.alignment >= 0) & nodes.alive[: len(samples.alignment)])
    rows[samples.alignment[live]] = live
    return rows


def _highest(samples: KeyedColumn, candidates: IntArray, limit: int) -> IntArray:
    values = -samples.values[candidates]
    if limit < len(values):
        candidates = candidates[np.argpartition(values, limit)[:limit]]
        values = -samples.values[candidates]
    ordered: IntArray = candidates[np.lexsort((candidates, values))]
    return ordered
