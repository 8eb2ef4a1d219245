"""Pending load as a column beside the samples: in the signal's unit, row by row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scheduler.model.arrays import FloatArray, IntArray, Rows
from scheduler.model.requests import CPU
from scheduler.model.rules import ByKind, Effect, EffectKind, Signal, Unit, effect_scale
from scheduler.model.signals import SignalColumn
from scheduler.model.snapshot import Snapshot
from scheduler.rules.pending_load import SHARES, PendingPods, PendingQuestion

_PERCENT = 100.0


def with_pending(column: SignalColumn, snapshot: Snapshot) -> SignalColumn:
    """Return a signal's column with what placed Pods add to it, where the signal says that they do."""
    question = question_of(column, snapshot)
    if question is None:
        return column
    # Filter, score and record of one decision share it.
    return snapshot.once(("with pending load", column.signal.name), lambda: _beside(column, question, snapshot))


def _beside(column: SignalColumn, question: PendingQuestion, snapshot: Snapshot) -> SignalColumn:
    signal, index = column.signal, snapshot.index(PendingPods)
    n_rows = snapshot.nodes.n_rows
    if signal.by is ByKind.LABEL:
        sums = sums_of(column, snapshot)
        return column if sums is None else column.with_pending(sums.without(np.zeros_like(sums.amounts)))

    def added(rows: Rows) -> FloatArray:
        # On one node nothing but its own Pods and its allocatable matters, so that rows can be renewed one by one.
        return _in_unit(signal, index.on_rows(question, n_rows)[rows], _allocatable(signal, snapshot)[rows])

    return column.with_pending(snapshot.by_row(question, added))


def question_of(column: SignalColumn, snapshot: Snapshot) -> PendingQuestion | None:
    """Return the question that goes with the samples of a column, the same object for as long as they stand."""
    effect = column.signal.inflight
    if effect is None or np.isnan(column.as_of_unix_s):
        return None
    learned = snapshot.signals.learned.get(column.signal.name, _NOTHING_LEARNED)
    return snapshot.memo.get(
        ("pending load", column.signal.name),
        (column.signal, column.values, learned),
        lambda: PendingQuestion(column.signal.name, effect, column.signal.shown_after_s, column.as_of_unix_s, learned),
    )


_NOTHING_LEARNED: dict[tuple[str, str], int] = {}


@dataclass(frozen=True, slots=True, eq=False)
class PendingSums:
    """What the pending load of a column is made of, int64 (n_rows,) each: amounts times SHARES, and allocatable.

    By node label each row has those of its whole domain, and zeros where the node has none.
    """

    signal: Signal
    question: PendingQuestion
    amounts: IntArray
    allocatable: IntArray

    def without(self, gone: IntArray) -> FloatArray:
        """Return float64 (n_rows,), the pending load where each row misses what is gone from it."""
        return _in_unit(self.signal, self.amounts - gone, self.allocatable)


def sums_of(column: SignalColumn, snapshot: Snapshot) -> PendingSums | None:
    """Return the sums as they are now, not to be written; None where placed Pods add nothing to the signal."""
    question = question_of(column, snapshot)
    if question is None:
        return None
    signal, nodes = column.signal, snapshot.nodes
    amounts = snapshot.index(PendingPods).on_rows(question, nodes.n_rows)
    allocatable = _allocatable(signal, snapshot)
    if signal.by is not ByKind.LABEL:
        return PendingSums(signal, question, amounts.copy(), allocatable)
    return PendingSums(
        signal, question, _by_domain(amounts, signal, snapshot), _by_domain(allocatable, signal, snapshot)
    )


def _by_domain(column: IntArray, signal: Signal, snapshot: Snapshot) -> IntArray:
    """Return int64 (n_rows,): the sum over each row's domain, zero where the node has none."""
    codes = snapshot.nodes.label_codes(signal.label)
    if codes is None:
        return np.zeros(len(column), dtype=np.int64)
    # One entry more: code -1, a node without the label, adds to the last, which belongs to no node.
    sums = np.zeros(int(codes.max(initial=-1)) + 2, dtype=np.int64)
    np.add.at(sums, codes, column)
    sums[-1] = 0
    summed: IntArray = sums[codes]
    return summed


def _allocatable(signal: Signal, snapshot: Snapshot) -> IntArray:
    """Return int64 (n_rows,): what each node has of the effect's resource, zeros where it is unknown."""
    nodes, effect = snapshot.nodes, signal.inflight
    index = None if effect is None else nodes.resources.get(effect.resource)
    return np.zeros(nodes.n_rows, dtype=np.int64) if index is None else nodes.allocatable[index]


def _in_unit(signal: Signal, amounts: IntArray, allocatable: IntArray) -> FloatArray:
    """Return float64 of the same shape from amounts times SHARES."""
    effect = signal.inflight
    if effect is None or not effect.resource:
        return amounts / (SHARES * effect_scale(signal.unit))
    if signal.unit not in (Unit.RATIO, Unit.PERCENT):
        return amounts / SHARES
    # A node that has nothing of the resource takes no Pod that asks for it.
    share = np.divide(amounts, SHARES * allocatable, out=np.zeros(amounts.shape), where=allocatable > 0)
    return share * _PERCENT if signal.unit is Unit.PERCENT else share


def amount_in_unit(signal: Signal, effect: Effect, amount: float) -> float:
    """Return an amount as people read it: cores, units of a resource, or the signal's unit."""
    if not effect.resource:
        return amount / effect_scale(signal.unit)
    return amount / 1000 if effect.resource == CPU else amount


def is_learned(signal: Signal) -> bool:
    return signal.inflight is not None and signal.inflight.kind is EffectKind.LEARNED
