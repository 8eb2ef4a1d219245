"""Signals as columns: what plugins read, aligned with the rows of the NodeTable."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from scheduler.model.arrays import BoolArray, FloatArray
from scheduler.model.rules import RuleSet, Signal


class Freshness(enum.StrEnum):
    """The state of a signal as a whole; a single node may still lack a sample."""

    FRESH = "fresh"
    FADING = "fading"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class SignalColumn:
    """One signal over all rows at one moment.

    values
        float64 (n_rows,), in the signal's unit. NaN: this node has no usable sample.
    age_s
        Seconds since evaluation plus the lag of the samples; inf if there never was an answer.
    """

    signal: Signal
    values: FloatArray
    age_s: float

    @property
    def freshness(self) -> Freshness:
        if self.age_s <= self.signal.fresh_s:
            return Freshness.FRESH
        return Freshness.FADING if self.age_s <= self.signal.max_age_s else Freshness.ABSENT

    @property
    def confidence(self) -> float:
        """1 while fresh, falling linearly to 0 at `max_age_s`: how far a score keeps from neutral."""
        if self.age_s <= self.signal.fresh_s:
            return 1.0
        if self.age_s >= self.signal.max_age_s:
            return 0.0
        return (self.signal.max_age_s - self.age_s) / (self.signal.max_age_s - self.signal.fresh_s)

    @property
    def has_sample(self) -> BoolArray:
        """Where a sample may be used, bool (n_rows,); nowhere once the signal is absent."""
        if self.freshness is Freshness.ABSENT:
            return np.zeros(self.values.shape, dtype=np.bool_)
        return ~np.isnan(self.values)


@dataclass(frozen=True, slots=True)
class SignalTable:
    """Rules, their signals' columns and their trip bits, frozen for one cycle.

    columns
        signal name -> SignalColumn for every signal of `rules`.
    tripped
        rule name -> bool (n_rows,), True where the rule's filter refuses the node; never where its column has
        no sample. Changes only when a sample is published or a rule is loaded, so that `decide` stays pure
        under hysteresis.
    open_valves
        Rules whose filter only scores for now: more nodes would be refused than its `valve` allows, or the
        data itself is suspect.
    generation
        Grows with each publication.
    """

    rules: RuleSet = field(default_factory=RuleSet)
    columns: Mapping[str, SignalColumn] = field(default_factory=dict)
    tripped: Mapping[str, BoolArray] = field(default_factory=dict)
    open_valves: frozenset[str] = frozenset()
    generation: int = 0
