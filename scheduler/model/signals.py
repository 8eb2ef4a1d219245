"""Signals as columns: what plugins read, aligned with the rows of the NodeTable."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from scheduler.model.arrays import BoolArray, FloatArray
from scheduler.model.keyed import KeyedColumn
from scheduler.model.rules import RuleSet, Signal

LearnedAmounts = Mapping[str, Mapping[tuple[str, str], int]]
"""Signal -> workload -> amount, see `SignalTable.learned`."""


class Freshness(enum.StrEnum):
    """The state of a signal as a whole; a single node may still lack a sample."""

    FRESH = "fresh"
    FADING = "fading"
    ABSENT = "absent"


@dataclass(slots=True)
class SignalColumn:
    """One signal over all rows at one moment.

    Never written once it is made. Not frozen: that would make one in 0.8 µs in place of 0.2, and each cycle makes one
    for each signal.

    values
        float64 (n_rows,), in the signal's unit. NaN: this node has no usable sample.
    age_s
        Seconds since evaluation plus the lag of the samples; inf if there never was an answer.
    as_of_unix_s
        The moment for which the samples speak, as UNIX time; NaN where there are none.
    pending
        float64 (n_rows,), what placed Pods add until the samples show it, in the signal's unit; None where the signal
        does not say what they add.
    row_lag_s
        float64 (n_rows,), how much older than `age_s` each node's sample is, finite, from 0; None where none is.
        A row beyond `max_age_s` has no value any more.
    key
        Which Pods read these values, where not all do: their workload, number of cards, …; empty where all do.
    fade_age_s
        The age by which scores fade, a little above `age_s`, so that decisions soon after each other share them; None:
        `age_s` itself.
    """

    signal: Signal
    values: FloatArray
    age_s: float
    as_of_unix_s: float = math.nan
    pending: FloatArray | None = None
    row_lag_s: FloatArray | None = None
    key: str = ""
    fade_age_s: float | None = None

    @property
    def expected(self) -> FloatArray:
        """The values as they will be once the samples show all placed Pods, float64 (n_rows,)."""
        return self.values if self.pending is None else self.values + self.pending

    def with_pending(self, pending: FloatArray) -> SignalColumn:
        """Return the column with the load that is pending."""
        return replace(self, pending=pending)

    def within(self, max_age_s: float) -> SignalColumn:
        """Return the column as it is where samples count for a shorter time."""
        values = self.values
        if self.row_lag_s is not None:
            values = np.where(self.age_s + self.row_lag_s > max_age_s, np.nan, values)
        return replace(self, signal=replace(self.signal, max_age_s=max_age_s), values=values)

    @property
    def freshness(self) -> Freshness:
        return self._state(self.age_s)

    @property
    def is_evenly_fresh(self) -> bool:
        """Whether the signal is fresh and no node's sample is older than the others'."""
        return self.row_lag_s is None and self.age_s <= self.signal.fresh_s

    @property
    def confidence(self) -> float:
        """1 while fresh, falling linearly to 0 at `max_age_s`: how far a score keeps from neutral."""
        if self.age_s <= self.signal.fresh_s:
            return 1.0
        age_s = self._fading_age_s
        if age_s >= self.signal.max_age_s:
            return 0.0
        return (self.signal.max_age_s - age_s) / (self.signal.max_age_s - self.signal.fresh_s)

    @property
    def row_confidence(self) -> FloatArray | None:
        """`confidence` by row, float64 (n_rows,), None where every row has that of the signal."""
        if self.row_lag_s is None:
            return None
        age_s, fresh_s, max_age_s = self._fading_age_s + self.row_lag_s, self.signal.fresh_s, self.signal.max_age_s
        if max_age_s <= fresh_s:
            return np.where(age_s <= fresh_s, 1.0, 0.0)
        return np.clip((max_age_s - age_s) / (max_age_s - fresh_s), 0.0, 1.0)

    def age_at(self, row: int) -> float:
        """Return the age of one node's sample, in seconds."""
        return self.age_s if self.row_lag_s is None else self.age_s + float(self.row_lag_s[row])

    def freshness_at(self, row: int) -> Freshness:
        """Return the state of one node's sample; what has no value at all is not told apart here."""
        return self._state(self.age_at(row))

    @property
    def has_sample(self) -> BoolArray:
        """Where a sample may be used, bool (n_rows,); nowhere once the signal is absent."""
        if self.freshness is Freshness.ABSENT:
            return np.zeros(self.values.shape, dtype=np.bool_)
        return ~np.isnan(self.values)

    @property
    def _fading_age_s(self) -> float:
        return self.age_s if self.fade_age_s is None else self.fade_age_s

    def _state(self, age_s: float) -> Freshness:
        if age_s <= self.signal.fresh_s:
            return Freshness.FRESH
        return Freshness.FADING if age_s <= self.signal.max_age_s else Freshness.ABSENT


@dataclass(frozen=True, slots=True)
class SignalTable:
    """Rules, their signals' columns and their trip bits, frozen for one cycle.

    columns
        signal name -> SignalColumn for every signal of `rules` that is asked for; built-in ones are read from the rest
        of the snapshot.
    tripped
        rule name -> bool (n_rows,), True where the rule's filter refuses the node; where its column has no sample
        only as long as a hold time lasts. Changes only when a sample is published or a rule is loaded, so that
        `decide` stays pure under hysteresis.
    open_valves
        Rules whose filter only scores for now: more nodes would be refused than its `valve` allows, or the
        data itself is suspect.
    generation
        Grows with each publication.
    learned
        signal name -> workload -> what a Pod of it adds, in the units of `Effect.amount`, whole; for signals whose
        effect is learned. The same object until the signal is published again.
    edition
        The same object for as long as no sample or rule changes, no age but in `age_s`, and no signal's state: what is
        derived from rules and samples alone is kept with it.
    keyed
        signal name -> KeyedColumn for the signals that differ from Pod to Pod (`by: gpu`, `workload`, `pair`) and had
        an answer. Their entry in `columns` is the mean over all samples of a node, that in `tripped` says where some
        sample is refused: for pages, not for Pods.
    """

    rules: RuleSet = field(default_factory=RuleSet)
    columns: Mapping[str, SignalColumn] = field(default_factory=dict)
    tripped: Mapping[str, BoolArray] = field(default_factory=dict)
    open_valves: frozenset[str] = frozenset()
    generation: int = 0
    learned: LearnedAmounts = field(default_factory=dict)
    keyed: Mapping[str, KeyedColumn] = field(default_factory=dict)
    edition: object = field(default_factory=object)
