"""What is in flight as a column beside the samples: in the signal's unit, row by row."""

from __future__ import annotations

import numpy as np

from scheduler.framework.inflight import SHARES, InflightPods, Question
from scheduler.model.arrays import FloatArray, IntArray, Rows
from scheduler.model.requests import CPU
from scheduler.model.rules import ByKind, Effect, EffectKind, Signal, Unit, effect_scale
from scheduler.model.signals import SignalColumn
from scheduler.model.snapshot import Snapshot

_PERCENT = 100.0


def with_inflight(column: SignalColumn, snapshot: Snapshot) -> SignalColumn:
    """Return the column with what placed Pods add to it, where its signal says that they do."""
    question = question_of(column, snapshot)
    if question is None:
        return column
    signal, index = column.signal, snapshot.index(InflightPods)
    n_rows = snapshot.nodes.n_rows
    if signal.by is ByKind.LABEL:
        return column.beside(_of_domains(signal, question, snapshot))

    def added(rows: Rows) -> FloatArray:
        # On one node nothing but its own Pods and its allocatable matters, so that rows can be renewed one by one.
        return _in_unit(signal, index.on_rows(question, n_rows)[rows], _allocatable(signal, snapshot)[rows])

    return column.beside(snapshot.by_row(question, added))


def question_of(column: SignalColumn, snapshot: Snapshot) -> Question | None:
    """Return the question that goes with the samples of a column, the same object for as long as they stand."""
    effect = column.signal.inflight
    if effect is None or np.isnan(column.as_of_unix_s):
        return None
    learned = snapshot.signals.learned.get(column.signal.name, _NOTHING_LEARNED)
    return snapshot.memo.get(
        ("inflight", column.signal.name),
        (column.signal, column.values, learned),
        lambda: Question(effect, column.signal.window_s, column.as_of_unix_s, learned),
    )


_NOTHING_LEARNED: dict[tuple[str, str], int] = {}


def _of_domains(signal: Signal, question: Question, snapshot: Snapshot) -> FloatArray:
    """Return what is in flight in each row's domain, over all its nodes; nothing where the node has no domain."""
    nodes = snapshot.nodes
    codes = nodes.label_codes(signal.label)
    if codes is None:
        return np.zeros(nodes.n_rows)
    n_codes = int(codes.max(initial=-1)) + 1
    # One entry more: what has no domain adds to nobody.
    amounts, allocatable = np.zeros(n_codes + 1, dtype=np.int64), np.zeros(n_codes + 1, dtype=np.int64)
    np.add.at(amounts, codes, snapshot.index(InflightPods).on_rows(question, nodes.n_rows))
    np.add.at(allocatable, codes, _allocatable(signal, snapshot))
    amounts[-1] = 0
    return _in_unit(signal, amounts, allocatable)[codes]


def _allocatable(signal: Signal, snapshot: Snapshot) -> IntArray:
    """Return int64 (n_rows,): what each node has of the effect's resource, zeros where nobody knows of it."""
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


def amount_in_unit(signal: Signal, effect: Effect, amount: int) -> float:
    """Return an amount as people read it: cores, units of a resource, or the signal's unit."""
    if not effect.resource:
        return amount / effect_scale(signal.unit)
    return amount / 1000 if effect.resource == CPU else float(amount)


def is_learned(signal: Signal) -> bool:
    return signal.inflight is not None and signal.inflight.kind is EffectKind.LEARNED
