"""What the store publishes: the answers in force and the trip bits over them, immutable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from scheduler.model.arrays import BoolArray, FloatArray, read_only
from scheduler.model.rules import FilterMissing, RuleFilter, RuleSet, Signal
from scheduler.signals.answers import SignalAnswer
from scheduler.signals.columns.key_memory import KeyMemory, smooth
from scheduler.signals.columns.keys import Keys
from scheduler.signals.columns.trips import Trips, refused


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """One answer in force.

    keys, values
        Of what the samples are; float64 (n_keys,), read-only, NaN: no sample.
    as_of_s
        Monotonic seconds for which the samples speak: evaluation less lag.
    is_suspect
        The last answer was doubtful; `values` are then those of the last good one, where that is in force.
    is_partial
        No good answer was in force, so `values` are those of a doubtful one.
    lags_s
        float64 (n_keys,), how much older than `as_of_s` each key's sample is; None where none is.
    smoothed
        For smoothing: when each key had its last sample, and the smoothed value then.
    """

    answer: SignalAnswer
    keys: Keys
    values: FloatArray
    as_of_s: float
    is_suspect: bool
    is_partial: bool
    lags_s: FloatArray | None = None
    smoothed: KeyMemory | None = None

    @property
    def as_of_unix_s(self) -> float:
        """The moment for which the samples speak as UNIX time, NaN where the answer does not say it."""
        return self.answer.evaluated_unix_s - self.answer.lag_s

    @property
    def sampled_at_s(self) -> FloatArray:
        """Float64 (n_keys,), monotonic: the moment for which each key's sample speaks."""
        return np.full(len(self.values), self.as_of_s) - (0.0 if self.lags_s is None else self.lags_s)

    def smoothed_from(self, before: Held | None) -> Held:
        """Return it with smoothed values, where the signal says so; `before` is the answer in force until now."""
        half_life_s, max_gap_s = self.answer.smoothing_s, self.answer.max_age_s
        if half_life_s <= 0.0:
            return self
        memory = None if before is None else before.smoothed
        values, smoothed = smooth(half_life_s, max_gap_s, self.values, self.keys, self.sampled_at_s, memory)
        return replace(self, values=read_only(values), smoothed=smoothed)

    def is_in_force(self, now_s: float) -> bool:
        return now_s - self.as_of_s <= self.answer.max_age_s

    def verdict(self, limits: RuleFilter, trips: Trips) -> Trips:
        """Return which keys a filter refuses, for lack of a sample too."""
        return Trips(self.keys, refused(limits, trips.bits, ~np.isnan(self.values)))


@dataclass(frozen=True, slots=True, eq=False)
class Published:
    """The answers in force by signal, the trip bits by rule; both lack what never had an answer.

    `labels` are the node labels that join signals and nodes, `asked` the signals of `rules` that are asked for, paced
    as their samples come.
    """

    rules: RuleSet = field(default_factory=RuleSet)
    held: Mapping[str, Held] = field(default_factory=dict)
    trips: Mapping[str, Trips] = field(default_factory=dict)
    generation: int = 0
    labels: frozenset[str] = frozenset()
    asked: Mapping[str, Signal] = field(default_factory=dict)


def paced(rules: RuleSet, held: Mapping[str, Held], before: Mapping[str, Signal]) -> dict[str, Signal]:
    """Return the signals that are asked for with the spacing of their samples; what has not changed stays as it is."""
    asked: dict[str, Signal] = {}
    for name, signal in rules.asked.items():
        one = signal.paced(held[name].answer.spacing_s) if name in held else signal
        asked[name] = before[name] if before.get(name) == one else one
    return asked


def joining_labels(rules: RuleSet) -> frozenset[str]:
    """Return the node labels that join signals and nodes."""
    return frozenset(signal.label for signal in rules.signals.values() if signal.label)


def has_verdict_changed(limits: RuleFilter, old: tuple[Held, Trips] | None, new: tuple[Held, Trips]) -> bool:
    """Whether some key is refused now and was not, or the reverse; what had no answer had no sample."""
    is_refused_unknown = limits.missing is FilterMissing.REJECT
    after: BoolArray = new[0].verdict(limits, new[1]).bits
    if old is None:
        return bool((after != is_refused_unknown).any()) or new[0].is_suspect
    verdict = old[0].verdict(limits, old[1])
    before = verdict.along(new[0].keys, default=is_refused_unknown)
    # A key that is not there any more is missing now.
    has_lost = np.count_nonzero(verdict.bits != is_refused_unknown) != np.count_nonzero(before != is_refused_unknown)
    # Of pairs, a Pod reads a mean: among several, some refused, it may pass a limit while no pair does.
    is_mixed = bool(new[0].answer.keyed is not None and new[0].answer.keyed.domains and (before | after).any())
    return old[0].is_suspect != new[0].is_suspect or has_lost or is_mixed or bool((after != before).any())
