"""Freezing: what is published, aligned with the rows of one moment.

Aligned arrays and verdicts are kept from cycle to cycle; a cycle in which nothing was published, no node moved and no
sample grew too old for something makes only new ages. Scores fade in steps of an eighth of a second, by the age at
the end of the step: what is no longer fresh never has all its points for a moment more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np

from scheduler.model.arrays import read_only
from scheduler.model.rules import Rule, Signal
from scheduler.model.signals import LearnedAmounts, SignalColumn, SignalTable
from scheduler.model.views import NodeView
from scheduler.signals.columns.alignment import RowAligner, spread
from scheduler.signals.columns.judge import AlignedSignal, Judge
from scheduler.signals.columns.keyed import KeyedFreezer
from scheduler.signals.columns.keys import CodedKeys
from scheduler.signals.columns.published import Held, Published
from scheduler.signals.columns.row_lags import aged_rows
from scheduler.signals.columns.trips import ValveChange

_NEVER_S: Final = float("-inf")
_FADE_STEP_S: Final = 0.125
"""How long fading scores stay the same: with 50 rules they cost more than all the rest of a decision."""
_EARLY_S: Final = 1e-6
"""How much earlier ages are compared again: a sum of floats may differ slightly from the exact age."""


class Freezer:
    """Makes the SignalTable of each cycle; owned by the deciding thread."""

    def __init__(self) -> None:
        self._aligner = RowAligner()
        self._keyed = KeyedFreezer(self._aligner)
        self._judge = Judge()
        self._done: Published | None = None
        self._aligned: dict[str, AlignedSignal] = {}
        self._aging: tuple[Rule, ...] = ()
        self._stands_s = (math.inf, _NEVER_S)
        self._fades_at_s: float | None = None
        self._edition = object()
        self._n_turns = 0

    def freeze(self, published: Published, nodes: NodeView, now_s: float, learned: LearnedAmounts) -> SignalTable:
        """Return the table for rows 0..n_rows of `nodes`; its arrays are read-only and may be kept."""
        has_moved = self._aligner.look(nodes, published.labels)
        from_s, until_s = self._stands_s
        if has_moved or published is not self._done or not from_s <= now_s <= until_s:
            self._renew(published, has_moved, now_s)
        return SignalTable(
            published.rules,
            {name: self._column(one, now_s) for name, one in self._aligned.items()},
            self._judge.tripped,
            self._judge.open_valves,
            published.generation + self._n_turns,
            learned,
            self._keyed.columns,
            self._edition,
        )

    def _column(self, one: AlignedSignal, now_s: float) -> SignalColumn:
        age_s = max(now_s - one.as_of_s, 0.0)
        fade_age_s = None if self._fades_at_s is None else max(self._fades_at_s - one.as_of_s, 0.0)
        return SignalColumn(one.signal, one.values, age_s, one.as_of_unix_s, None, one.row_lag_s, "", fade_age_s)

    def drain_changes(self) -> list[ValveChange]:
        """Return the valves that opened or closed since the last call, oldest first."""
        return self._judge.drain_changes()

    def _renew(self, published: Published, has_moved: bool, now_s: float) -> None:
        if has_moved or published is not self._done:
            self._keyed.align(published, has_moved=has_moved)
        self._aligned = self._align(published, {} if has_moved else self._aligned, now_s)
        judged = (rule for rule in published.rules.judged if rule.signal in self._aligned)
        self._aging = tuple(rule for rule in judged if rule.max_age_s > 0.0)
        self._done = published
        self._judge.judge(published, self._aligned, self._keyed.columns, self._aligner.alive, now_s)
        is_fading = any(_fades(one, now_s) for one in self._aligned.values())
        self._fades_at_s = math.ceil(now_s / _FADE_STEP_S) * _FADE_STEP_S if is_fading else None
        self._stands_s = now_s, self._stands_until_s(now_s)
        self._edition = object()
        self._n_turns += 1

    def _align(
        self, published: Published, before: Mapping[str, AlignedSignal], now_s: float
    ) -> dict[str, AlignedSignal]:
        aligned: dict[str, AlignedSignal] = {}
        for name, signal in published.asked.items():
            held, old = published.held.get(name), before.get(name)
            stands = old is not None and old.held is held and old.signal is signal and now_s <= old.stands_until_s
            aligned[name] = old if old is not None and stands else self._aligned_signal(signal, held, now_s)
        return aligned

    def _aligned_signal(self, signal: Signal, held: Held | None, now_s: float) -> AlignedSignal:
        if held is None:
            nothing = read_only(np.full(self._aligner.alive.shape, np.nan))
            return AlignedSignal(signal, None, None, nothing, _NEVER_S, math.nan, False, None, math.inf)
        as_of, is_suspect = (held.as_of_s, held.as_of_unix_s), held.is_suspect
        if isinstance(held.keys, CodedKeys):
            values = self._keyed.columns[signal.name].overview()
            return AlignedSignal(signal, held, None, values, *as_of, is_suspect, None, math.inf)
        if held.answer.value is not None:
            alignment = self._aligner.of_cluster()
        else:
            alignment = self._aligner.of_names(signal, held.answer.identity_generation, held.keys)
        values = spread(held.values, alignment, np.nan)
        if held.lags_s is None:
            return AlignedSignal(signal, held, alignment, values, *as_of, is_suspect, None, math.inf)
        spare_s = signal.max_age_s - max(now_s - held.as_of_s, 0.0)
        values, row_lag_s, stands_s = aged_rows(values, held.lags_s, alignment, spare_s)
        return AlignedSignal(signal, held, alignment, values, *as_of, is_suspect, row_lag_s, now_s + stands_s)

    def _stands_until_s(self, now_s: float) -> float:
        """Return until when no signal stops being fresh or usable, for any rule, and no row's sample grows too old."""
        ends_s = [one.stands_until_s for one in self._aligned.values()]
        for one in self._aligned.values():
            ends_s += (one.as_of_s + one.signal.fresh_s - _EARLY_S, one.as_of_s + one.signal.max_age_s - _EARLY_S)
        ends_s += (self._aligned[rule.signal].as_of_s + rule.max_age_s - _EARLY_S for rule in self._aging)
        if self._fades_at_s is not None:
            ends_s.append(self._fades_at_s - _EARLY_S)
        return min((end_s for end_s in ends_s if end_s + 2.0 * _EARLY_S >= now_s), default=math.inf)


def _fades(one: AlignedSignal, now_s: float) -> bool:
    """Whether the scores of the signal, or of some of its rows, depend on its age."""
    age_s = now_s - one.as_of_s
    return age_s <= one.signal.max_age_s and (one.row_lag_s is not None or age_s > one.signal.fresh_s)
