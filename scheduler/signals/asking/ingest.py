"""From series to values: the boundary that no NaN, infinity or impossible number passes.

Deterministic: the result does not depend on the order of the series.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from scheduler.model.arrays import BoolArray, FloatArray, IntArray
from scheduler.model.rules import Reduce, Signal
from scheduler.signals.answers import Drops
from scheduler.signals.asking.answer_keys import AnswerKeys
from scheduler.signals.asking.groupings import grouping_of
from scheduler.signals.asking.resolver import UNMAPPED, NodeResolver
from scheduler.signals.asking.session import ReadSeries, ResultSeries
from scheduler.signals.problems import MissingReason

_VALUE: Final = attrgetter("value")
_NUMBER: Final = itemgetter(1)
_REASONS: Final = (
    MissingReason.DUPLICATE,
    MissingReason.PARSE,
    MissingReason.NAN,
    MissingReason.INF,
    MissingReason.RANGE,
)

ReasonCodes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Ingested:
    """The values of one answer.

    values
        float64 (n_keys,), NaN where there is none; everything else is finite and within the signal's range.
    missing
        uint8 (n_keys,): why a key that series speak of has no value, an index of `_REASONS` counted from 1.
    """

    keys: AnswerKeys
    values: FloatArray
    drops: Drops
    missing: ReasonCodes

    @property
    def has_value(self) -> BoolArray:
        return ~np.isnan(self.values)

    def covered(self) -> frozenset[str]:
        """Return the nodes or domains that have a value, the cluster as an empty string."""
        return self.keys.covered(self.values)

    def missing_reasons(self, given: Ingested) -> dict[str, MissingReason]:
        """Return key -> why it has no value; `given` is the answer while it had what is too old.

        Empty where keys have no names of their own.
        """
        names = self.keys.names
        if names is None:
            return {}
        reasons = {names[i]: _REASONS[int(given.missing[i]) - 1] for i in np.flatnonzero(given.missing).tolist()}
        stale: list[int] = np.flatnonzero(given.has_value & ~self.has_value).tolist()
        return reasons | {names[i]: MissingReason.STALE for i in stale}


def ingest(signal: Signal, series: Sequence[ResultSeries], resolver: NodeResolver) -> Ingested:
    """Sort the series by key, drop values that are not numbers, and make one value of each group.

    With `reduce: sum` a node of which one part has no usable number has no value, and the range holds for the
    sum; the other ways of reducing take the parts that there are, each within the range.
    """
    keys, groups = grouping_of(signal).keys(series, resolver)
    is_mapped = groups != UNMAPPED
    n_unmapped = len(groups) - int(is_mapped.sum())
    samples, is_readable = _parsed(series)
    samples, is_readable, groups = samples[is_mapped], is_readable[is_mapped], groups[is_mapped]

    n_duplicate, duplicates = 0, groups[:0]
    if signal.reduce is None:
        is_single = (np.bincount(groups, minlength=len(keys)) == 1)[groups]
        n_duplicate, duplicates = len(groups) - int(is_single.sum()), groups[~is_single]
        samples, is_readable, groups = samples[is_single], is_readable[is_single], groups[is_single]

    is_nan = np.isnan(samples) & is_readable
    is_inf = np.isinf(samples)
    is_outside = _outside(signal, samples) if signal.reduce is not Reduce.SUM else np.zeros_like(is_nan)
    is_good = is_readable & ~is_nan & ~is_inf & ~is_outside
    values = _reduced(signal.reduce, np.where(is_good, samples, np.nan), groups, len(keys))

    # A sum or an average of finite numbers may still be infinite, and a sum beyond the range.
    overflowed = np.isinf(values)
    beyond = _outside(signal, values)
    values[overflowed | beyond] = np.nan
    drops = Drops(
        nan=int(is_nan.sum()),
        inf=int(is_inf.sum()) + int(overflowed.sum()),
        parse=len(is_readable) - int(is_readable.sum()),
        range=int(is_outside.sum()) + int(beyond.sum()),
        unmapped=n_unmapped,
        duplicate=n_duplicate,
    )
    dropped = {
        MissingReason.DUPLICATE: duplicates,
        MissingReason.PARSE: groups[~is_readable],
        MissingReason.NAN: groups[is_nan],
        MissingReason.INF: np.concatenate((groups[is_inf], np.flatnonzero(overflowed))),
        MissingReason.RANGE: np.concatenate((groups[is_outside], np.flatnonzero(beyond))),
    }
    return Ingested(keys, values, drops, _reason_codes(values, dropped))


def _reason_codes(values: FloatArray, dropped: Mapping[MissingReason, IntArray]) -> ReasonCodes:
    """Return `Ingested.missing`; `dropped` are the keys of the samples dropped by reason.

    A key that has a value all the same, of its other series, misses none.
    """
    codes = np.zeros(len(values), dtype=np.uint8)
    for reason, keys in dropped.items():
        codes[keys] = _REASONS.index(reason) + 1
    codes[~np.isnan(values)] = 0
    return codes


def _parsed(series: Sequence[ResultSeries]) -> tuple[FloatArray, BoolArray]:
    """Return float64 (n_series,), NaN where there is no number, and bool, True where the text is one."""
    is_readable = np.ones(len(series), dtype=np.bool_)
    samples = _read_before(series)
    if samples is None:
        samples = np.full(len(series), np.nan)
        for i, one in enumerate(series):
            number = parse_number(one.value[1] if one.value else "")
            if number is None:
                is_readable[i] = False
            else:
                samples[i] = number
    # Adding zero turns -0.0 into 0.0, which would print and hash differently.
    return samples + 0.0, is_readable


def _read_before(series: Sequence[ResultSeries]) -> FloatArray | None:
    """Return float64 (n_series,) where the numbers were read with the answer, which they were all or none."""
    if not series or not isinstance(series[0], ReadSeries):
        return None
    try:
        return np.array(list(map(_NUMBER, map(_VALUE, series))), dtype=np.float64)
    except TypeError:  # a native histogram has no value
        return None


def parse_number(text: float | str) -> float | None:
    """Return what Prometheus means by `text`, None where it is no number; Python alone would read more."""
    if isinstance(text, float):
        return text
    if "_" in text or not text.isascii() or text != text.strip():
        return None
    try:
        return float(text)
    except ValueError:
        return None


def _outside(signal: Signal, samples: FloatArray) -> BoolArray:
    """Return bool, True for finite numbers outside the signal's range."""
    if signal.range is None:
        return np.zeros(samples.shape, dtype=np.bool_)
    low, high = signal.range
    outside: BoolArray = np.isfinite(samples) & ((samples < low) | (samples > high))
    return outside


def _reduced(reduce: Reduce | None, samples: FloatArray, groups: IntArray, n_keys: int) -> FloatArray:
    """Return float64 (n_keys,), NaN for a group without a number."""
    values = np.full(n_keys, np.nan)
    if reduce is None:
        values[groups] = samples
        return values
    if reduce is not Reduce.SUM:
        is_number = ~np.isnan(samples)
        samples, groups = samples[is_number], groups[is_number]
    if not len(samples):
        return values
    # Sorted by group, then by value: sums of floats depend on the order, and that of the series is chance.
    order = np.lexsort((samples, groups))
    samples, groups = samples[order], groups[order]
    starts = np.flatnonzero(np.concatenate(([True], groups[1:] != groups[:-1])))
    ends = np.append(starts[1:], len(groups)) - 1
    lowest, highest = samples[starts], samples[ends]
    if reduce is Reduce.MIN:
        reduced = lowest
    elif reduce is Reduce.MAX:
        reduced = highest
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            reduced = np.add.reduceat(samples, starts)
            if reduce is Reduce.AVG:
                # Rounding must not push an average beyond what it averages, and so beyond the range.
                reduced = np.clip(reduced / (ends - starts + 1), lowest, highest)
    values[groups[starts]] = reduced
    return values
