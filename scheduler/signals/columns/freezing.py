"""Freezing: what is published, aligned with the rows of one moment.

Aligned arrays are kept from cycle to cycle; a cycle in which nothing was published and no node moved makes only
new ages.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from scheduler.model.arrays import BoolArray, FloatArray, IntArray, read_only
from scheduler.model.rules import KEYED, ByKind, Mode, Rule, Signal
from scheduler.model.signals import LearnedAmounts, SignalColumn, SignalTable
from scheduler.model.views import NodeView
from scheduler.signals.columns.alignment import RowAligner, spread
from scheduler.signals.columns.keyed import KeyedFreezer
from scheduler.signals.columns.keys import CodedKeys
from scheduler.signals.columns.published import Held, Published
from scheduler.signals.columns.row_lags import aged_rows
from scheduler.signals.columns.trips import Trips, ValveChange, refused, valve_reason

_NEVER_S: Final = float("-inf")


@dataclass(frozen=True, slots=True, eq=False)
class _AlignedSignal:
    """One signal by row; `held` is None before the first answer.

    `row_lag_s` is that of SignalColumn, and at `stands_until_s` the next row grows too old on its own.
    """

    signal: Signal
    held: Held | None
    alignment: IntArray | None
    values: FloatArray
    as_of_s: float
    as_of_unix_s: float
    is_suspect: bool
    row_lag_s: FloatArray | None = None
    stands_until_s: float = math.inf


class Freezer:
    """Makes the SignalTable of each cycle; owned by the deciding thread."""

    def __init__(self) -> None:
        self._aligner = RowAligner()
        self._keyed = KeyedFreezer(self._aligner)
        self._done: Published | None = None
        self._aligned: dict[str, _AlignedSignal] = {}
        self._bits: dict[str, tuple[Trips, IntArray, BoolArray]] = {}
        self._absent: frozenset[str] = frozenset()
        self._aged: frozenset[str] = frozenset()
        self._aging: tuple[Rule, ...] = ()
        self._tripped: dict[str, BoolArray] = {}
        self._open: dict[str, str] = {}
        self._changes: list[ValveChange] = []
        self._n_turns = 0

    def freeze(self, published: Published, nodes: NodeView, now_s: float, learned: LearnedAmounts) -> SignalTable:
        """Return the table for rows 0..n_rows of `nodes`; its arrays are read-only and may be kept."""
        has_moved = self._aligner.look(nodes, published.labels)
        is_new = has_moved or published is not self._done
        if is_new:
            self._keyed.align(published, has_moved=has_moved)
            self._align(published, has_moved, now_s)
        columns: dict[str, SignalColumn] = {}
        absent: list[str] = []
        for name, aligned in self._aligned.items():
            if now_s > aligned.stands_until_s:
                aligned = self._aligned[name] = self._aligned_signal(aligned.signal, aligned.held, now_s)
                is_new = True
            age_s = max(now_s - aligned.as_of_s, 0.0)
            columns[name] = SignalColumn(
                aligned.signal, aligned.values, age_s, aligned.as_of_unix_s, row_lag_s=aligned.row_lag_s
            )
            if age_s > aligned.signal.max_age_s:
                absent.append(name)
        aged = frozenset(rule.name for rule in self._aging if columns[rule.signal].age_s > rule.max_age_s)
        if is_new or len(absent) != len(self._absent) or self._absent.difference(absent) or aged != self._aged:
            self._absent, self._aged = frozenset(absent), aged
            self._judge(published)
            self._n_turns += 1
        generation = published.generation + self._n_turns
        return SignalTable(
            published.rules, columns, self._tripped, frozenset(self._open), generation, learned, self._keyed.columns
        )

    def drain_changes(self) -> list[ValveChange]:
        """Return the valves that opened or closed since the last call, oldest first."""
        changes, self._changes = self._changes, []
        return changes

    def _align(self, published: Published, has_moved: bool, now_s: float) -> None:
        before = {} if has_moved else self._aligned
        self._aligned = {}
        for name, signal in published.rules.asked.items():
            held, old = published.held.get(name), before.get(name)
            if old is None or old.held is not held or old.signal is not signal:
                old = self._aligned_signal(signal, held, now_s)
            self._aligned[name] = old
        judged = (rule for rule in published.rules.judged if rule.signal in self._aligned)
        self._aging = tuple(rule for rule in judged if rule.max_age_s > 0.0)
        self._done = published

    def _aligned_signal(self, signal: Signal, held: Held | None, now_s: float) -> _AlignedSignal:
        if held is None:
            nothing = read_only(np.full(self._aligner.alive.shape, np.nan))
            return _AlignedSignal(signal, None, None, nothing, _NEVER_S, math.nan, False)
        if isinstance(held.keys, CodedKeys):
            values = self._keyed.columns[signal.name].overview()
            return _AlignedSignal(signal, held, None, values, held.as_of_s, held.as_of_unix_s, held.is_suspect)
        if signal.by is ByKind.NODE:
            alignment = self._aligner.of_nodes(held.answer.identity_generation, held.keys)
        elif signal.by is ByKind.LABEL:
            alignment = self._aligner.of_label(signal.label, held.keys)
        else:
            alignment = self._aligner.of_cluster(len(held.keys))
        values, row_lag_s, stands_until_s = spread(held.values, alignment, np.nan), None, math.inf
        if held.lags_s is not None:
            spare_s = signal.max_age_s - max(now_s - held.as_of_s, 0.0)
            values, row_lag_s, stands_s = aged_rows(values, held.lags_s, alignment, spare_s)
            stands_until_s = now_s + stands_s
        return _AlignedSignal(
            signal,
            held,
            alignment,
            values,
            held.as_of_s,
            held.as_of_unix_s,
            held.is_suspect,
            row_lag_s,
            stands_until_s,
        )

    def _judge(self, published: Published) -> None:
        """Bring trip bits and valves to the rows; a signal that is absent trips nothing."""
        bits: dict[str, tuple[Trips, IntArray, BoolArray]] = {}
        tripped: dict[str, BoolArray] = {}
        nothing = np.zeros(self._aligner.alive.shape, dtype=np.bool_)
        nothing.flags.writeable = False
        reasons: dict[str, str] = {}
        for rule in published.rules.judged:
            aligned, trips = self._aligned.get(rule.signal), published.trips.get(rule.name)
            if rule.filter is None or aligned is None:
                continue
            tripped[rule.name] = nothing
            if trips is not None and aligned.alignment is not None:
                known = self._bits.get(rule.name)
                if known is None or known[0] is not trips or known[1] is not aligned.alignment:
                    known = (trips, aligned.alignment, spread(trips.bits, aligned.alignment, False))
                bits[rule.name] = known
                if not self._is_absent(rule):
                    tripped[rule.name] = _where_measured(known[2], aligned)
            if rule.signal in self._keyed.columns and trips is not None and not self._is_absent(rule):
                tripped[rule.name] = self._keyed.columns[rule.signal].tripped_anywhere(rule.name)
            reason = self._valve(rule, aligned, tripped[rule.name])
            if reason:
                reasons[rule.name] = reason
        self._bits, self._tripped, self._open = bits, tripped, reasons

    def _is_absent(self, rule: Rule) -> bool:
        return rule.signal in self._absent or rule.name in self._aged

    def _valve(self, rule: Rule, aligned: _AlignedSignal, tripped: BoolArray) -> str:
        """Return why the rule only scores, and note where that has changed."""
        limits = rule.filter
        if limits is None:
            return ""
        is_absent = self._is_absent(rule)
        has_sample = np.zeros_like(tripped) if is_absent else ~np.isnan(aligned.values)
        alive = self._aligner.alive
        n_refused, n_nodes = int((refused(limits, tripped, has_sample) & alive).sum()), int(alive.sum())
        if aligned.signal.by in KEYED:
            # How many nodes it refuses depends on the Pod, so its share is counted when a Pod reads it.
            n_refused = 0
        reason = valve_reason(limits, n_refused, n_nodes, is_suspect=aligned.is_suspect and not is_absent)
        if bool(reason) != (rule.name in self._open) and rule.mode is not Mode.SHADOW:
            self._changes.append(ValveChange(rule.name, bool(reason), reason, n_refused, n_nodes))
        return reason


def _where_measured(bits: BoolArray, aligned: _AlignedSignal) -> BoolArray:
    """Return trip bits by row without those of rows whose samples have grown too old since they were set.

    A hold time keeps those of rows that have had no sample at all.
    """
    if aligned.held is None or aligned.held.lags_s is None or aligned.alignment is None:
        return bits
    given = spread(aligned.held.values, aligned.alignment, np.nan)
    measured: BoolArray = bits & (~np.isnan(aligned.values) | np.isnan(given))
    return read_only(measured)
