"""Judging: what rules refuse by row, and which of their valves are open, brought to the rows of one moment.

A verdict is kept while its samples, its trip bits and its rule stand, so that an answer to one signal costs what the
rules over that signal cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import is_
from typing import NamedTuple

import numpy as np

from scheduler.model.arrays import BoolArray, FloatArray, IntArray, read_only
from scheduler.model.keyed import KeyedColumn
from scheduler.model.rules import Mode, Rule, RuleFilter, Signal
from scheduler.signals.columns.alignment import spread
from scheduler.signals.columns.published import Held, Published
from scheduler.signals.columns.trips import Trips, ValveChange, refused, valve_reason


@dataclass(frozen=True, slots=True, eq=False)
class AlignedSignal:
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
    row_lag_s: FloatArray | None
    stands_until_s: float


class _Sources(NamedTuple):
    """All that a verdict depends on."""

    rule: Rule
    aligned: AlignedSignal
    trips: Trips | None
    keyed: KeyedColumn | None
    is_absent: bool

    def are(self, others: _Sources) -> bool:
        return all(map(is_, self, others))


class _Verdict(NamedTuple):
    sources: _Sources
    bits: BoolArray | None
    tripped: BoolArray
    valve_reason: str


class Judge:
    """Trip bits by row and open valves; owned by the deciding thread.

    `tripped` and `open_valves` are those of SignalTable, new objects with each `judge`.
    """

    def __init__(self) -> None:
        self._verdicts: dict[str, _Verdict] = {}
        self._changes: list[ValveChange] = []
        self.tripped: Mapping[str, BoolArray] = {}
        self.open_valves: frozenset[str] = frozenset()

    def drain_changes(self) -> list[ValveChange]:
        """Return the valves that opened or closed since the last call, oldest first."""
        changes, self._changes = self._changes, []
        return changes

    def judge(
        self,
        published: Published,
        aligned: Mapping[str, AlignedSignal],
        keyed: Mapping[str, KeyedColumn],
        alive: BoolArray,
        now_s: float,
    ) -> None:
        """Judge the rules of `published` over signals of the same moment; a signal that is absent trips nothing.

        `alive`, bool (n_rows,), may only differ from the last call's where every one of `aligned` does.
        """
        verdicts: dict[str, _Verdict] = {}
        nothing = read_only(np.zeros(alive.shape, dtype=np.bool_))
        for rule in published.rules.judged:
            if rule.filter is None or rule.signal not in aligned:
                continue
            one, trips = aligned[rule.signal], published.trips.get(rule.name)
            sources = _Sources(rule, one, trips, keyed.get(rule.signal), _is_absent(rule, one, now_s))
            known = self._verdicts.get(rule.name)
            if known is None or not known.sources.are(sources):
                known = self._verdict(sources, rule.filter, known, nothing, alive)
            verdicts[rule.name] = known
        self._verdicts = verdicts
        self.tripped = {name: verdict.tripped for name, verdict in verdicts.items()}
        self.open_valves = frozenset(name for name, verdict in verdicts.items() if verdict.valve_reason)

    def _verdict(
        self, sources: _Sources, limits: RuleFilter, known: _Verdict | None, nothing: BoolArray, alive: BoolArray
    ) -> _Verdict:
        rule, aligned, trips, keyed, is_absent = sources
        bits, tripped = _bits(trips, aligned, known), nothing
        if keyed is not None and trips is not None and not is_absent:
            tripped = keyed.tripped_anywhere(rule.name)
        elif bits is not None and not is_absent:
            tripped = _where_measured(bits, aligned)
        has_sample = nothing if is_absent else ~np.isnan(aligned.values)
        n_refused, n_nodes = int(np.count_nonzero(refused(limits, tripped, has_sample) & alive)), int(alive.sum())
        if aligned.signal.depends_on_pod:
            # How many nodes it refuses depends on the Pod, so its share is counted when a Pod reads it.
            n_refused = 0
        reason = valve_reason(limits, n_refused, n_nodes, is_suspect=aligned.is_suspect and not is_absent)
        if bool(reason) != (rule.name in self.open_valves) and rule.mode is not Mode.SHADOW:
            self._changes.append(ValveChange(rule.name, bool(reason), reason, n_refused, n_nodes))
        return _Verdict(sources, bits, tripped, reason)


def _is_absent(rule: Rule, aligned: AlignedSignal, now_s: float) -> bool:
    """Whether the samples are too old for the rule."""
    age_s = now_s - aligned.as_of_s
    return age_s > aligned.signal.max_age_s or 0.0 < rule.max_age_s < age_s


def _bits(trips: Trips | None, aligned: AlignedSignal, known: _Verdict | None) -> BoolArray | None:
    """Return trip bits by row, the same array while bits and alignment are the same."""
    if trips is None or aligned.alignment is None:
        return None
    if known is not None and known.sources.trips is trips and known.sources.aligned.alignment is aligned.alignment:
        return known.bits
    return spread(trips.bits, aligned.alignment, False)


def _where_measured(bits: BoolArray, aligned: AlignedSignal) -> BoolArray:
    """Return trip bits by row without those of rows whose samples have grown too old since they were set.

    A hold time keeps those of rows that have had no sample at all.
    """
    if aligned.held is None or aligned.held.lags_s is None or aligned.alignment is None:
        return bits
    given = spread(aligned.held.values, aligned.alignment, np.nan)
    measured: BoolArray = bits & (~np.isnan(aligned.values) | np.isnan(given))
    return read_only(measured)
