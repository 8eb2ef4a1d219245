"""From series to values: the boundary that no NaN, infinity or impossible number passes.

Deterministic: the result does not depend on the order of the series.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from operator import attrgetter, itemgetter
from typing import Final

import numpy as np

from scheduler.model.arrays import BoolArray, FloatArray, IntArray
from scheduler.model.rules import KEYED, ByKind, Reduce, Signal
from scheduler.signals.answers import CLUSTER_KEYS, Drops
from scheduler.signals.asking.missing_reasons import Codes, codes_of
from scheduler.signals.asking.resolver import UNMAPPED, NodeResolver
from scheduler.signals.asking.series_keys import SeriesKeys, keys_of
from scheduler.signals.asking.session import ReadSeries, ResultSeries
from scheduler.signals.problems import MissingReason
from scheduler.signals.series_labels import domain_labels

_VALUE: Final = attrgetter("value")
_NUMBER: Final = itemgetter(1)


@dataclass(frozen=True, slots=True)
class Ingested:
    """The values of one answer.

    keys
        Names of nodes, values of a node label, one empty string for the cluster, or SeriesKeys of the kinds with two
        keys.
    values
        float64 (n_keys,), NaN where there is none; everything else is finite and within the signal's range.
    missing
        uint8 (n_keys,): why a key has no value, see `lacking`.
    """

    keys: tuple[str, ...] | SeriesKeys
    values: FloatArray
    drops: Drops
    missing: Codes

    @property
    def has_value(self) -> BoolArray:
        return ~np.isnan(self.values)

    def covered(self, resolver: NodeResolver) -> frozenset[str]:
        """Return the nodes or domains that have a value, the cluster as an empty string."""
        if isinstance(self.keys, SeriesKeys):
            return self.keys.covered(self.values, resolver.identity.names)
        if self.keys is resolver.identity.names and self.has_value.all():
            return resolver.known_names
        return frozenset(compress(self.keys, self.has_value.tolist()))


def ingest(signal: Signal, series: Sequence[ResultSeries], resolver: NodeResolver) -> Ingested:
    """Sort the series by what they speak of, drop what is no number, and make one value of each group.

    With `reduce: sum` a node of which one part has no usable number has no value, and the range holds for the
    sum; the other ways of reducing take the parts that there are, each within the range.
    """
    keys, groups = _grouped(signal, series, resolver)
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
    return Ingested(keys, values, drops, codes_of(values, dropped))


def _grouped(
    signal: Signal, series: Sequence[ResultSeries], resolver: NodeResolver
) -> tuple[tuple[str, ...] | SeriesKeys, IntArray]:
    """Return the keys, and per series the index of its key, int64, UNMAPPED where it has none."""
    if signal.by in KEYED:
        return keys_of(signal, series, resolver)
    if signal.by is ByKind.CLUSTER:
        return CLUSTER_KEYS, np.zeros(len(series), dtype=np.int64)
    if signal.by is ByKind.NODE:
        return resolver.identity.names, resolver.indexes_of([one.metric for one in series])
    labels = domain_labels(signal.label)
    domains = [next((value for label in labels if (value := one.metric.get(label))), "") for one in series]
    keys = tuple(sorted(set(domains) - {""}))
    index = {key: i for i, key in enumerate(keys)}
    return keys, np.array([index.get(domain, UNMAPPED) for domain in domains], dtype=np.int64)


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
