"""Samples by series, in memory, kept for a time.

One thread appends; any number may read meanwhile, because what a reader has been given is never written again: an
append fills a place behind it, and growing or forgetting makes new arrays.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from scheduler.evaluator.values import NAME, Floats, LabelKey, Labels, label_key, label_text

Times = NDArray[np.int64]

STALE_BITS: Final = 0x7FF0000000000002
STALE_NAN: Final[float] = struct.unpack("<d", struct.pack("<Q", STALE_BITS))[0]
"""What a Prometheus writes when a series has left its target; it ends here, without waiting for the lookback."""

_Number = TypeVar("_Number", np.int64, np.float64)

_FIRST_CAPACITY: Final = 64
_SWEEPS_PER_RETENTION: Final = 8


class Series:
    """The samples of one label set, times in Unix milliseconds rising."""

    __slots__ = ("_state", "labels")

    def __init__(self, labels: Labels) -> None:
        self.labels = labels
        # One tuple, so that a reader in another thread sees the three of one moment.
        self._state: tuple[Times, Floats, int] = (
            np.empty(_FIRST_CAPACITY, dtype=np.int64),
            np.empty(_FIRST_CAPACITY, dtype=np.float64),
            0,
        )

    def samples(self) -> tuple[Times, Floats]:
        """Return times and values, shape (n_samples,) each, stale markers among them."""
        times, values, n = self._state
        return times[:n], values[:n]

    @property
    def last_ms(self) -> int | None:
        times, _, n = self._state
        return int(times[n - 1]) if n else None

    def append(self, at_ms: int, value: float, keep_from_ms: int) -> None:
        """Add a sample behind the last; those before `keep_from_ms` may be forgotten."""
        times, values, n = self._state
        if n == len(times):
            first = int(np.searchsorted(times, keep_from_ms))
            n -= first
            capacity = max(2 * n, _FIRST_CAPACITY)
            times, values = _moved(times[first:], capacity), _moved(values[first:], capacity)
        times[n] = at_ms
        values[n] = value
        self._state = (times, values, n + 1)


class SeriesStore:
    """Series by label set; each keeps its samples for at least `retention_s` behind the newest of all."""

    def __init__(self, retention_s: float = 3600.0) -> None:
        self._retention_ms = round(retention_s * 1000)
        self._series: dict[LabelKey, Series] = {}
        # Lists beside the table, because a reader may go through them while they grow.
        self._all: list[Series] = []
        self._by_name: dict[str, list[Series]] = {}
        self._newest_ms: int | None = None
        self._next_sweep_ms = 0

    def __len__(self) -> int:
        return len(self._series)

    def append(self, labels: Labels, at_s: float, value: float) -> None:
        """Add a sample; `labels` hold `__name__`, `at_s` is in Unix seconds and counts to the millisecond.

        Raises
        ------
        ValueError
            Where the series has no name, or has a sample of that time or a later one.
        """
        at_ms = round(at_s * 1000)
        key = label_key(labels)
        series = self._series.get(key)
        if series is None:
            series = self._add_series(labels)
        last_ms = series.last_ms
        if last_ms is not None and at_ms <= last_ms:
            found = f"its last is of {last_ms / 1000}, got one of {at_ms / 1000}"
            raise ValueError(f"{label_text(series.labels)}: samples must come in the order of time, {found}")
        self._newest_ms = at_ms if self._newest_ms is None else max(at_ms, self._newest_ms)
        series.append(at_ms, value, self._newest_ms - self._retention_ms)
        if self._newest_ms >= self._next_sweep_ms:
            self._sweep(self._newest_ms)

    def select(self, name: str | None, accepts: Callable[[Labels], bool]) -> list[Series]:
        """Return the series of that name, or of any, whose labels are accepted.

        They are in the order in which they came, as in a Prometheus that has not yet written a block; it decides
        which of equals a `topk` shows.
        """
        series = self._all if name is None else self._by_name.get(name, ())
        return [one for one in series if accepts(one.labels)]

    def all_labels(self) -> Iterator[Labels]:
        return (one.labels for one in self._all)

    def _add_series(self, labels: Labels) -> Series:
        kept = {name: value for name, value in labels.items() if value}
        if not kept.get(NAME):
            raise ValueError(f"{label_text(labels)}: a series needs a label {NAME}")
        # A label with an empty value is none, so this may be the other way to write a known series.
        series = self._series.get(label_key(kept))
        if series is None:
            series = Series(kept)
            self._all.append(series)
            self._by_name.setdefault(kept[NAME], []).append(series)
            self._series[label_key(kept)] = series
        return series

    def _sweep(self, newest_ms: int) -> None:
        """Forget series that have had no sample for as long as samples are kept."""
        self._next_sweep_ms = newest_ms + self._retention_ms // _SWEEPS_PER_RETENTION
        oldest_ms = newest_ms - self._retention_ms
        gone = [key for key, one in self._series.items() if one.last_ms is not None and one.last_ms < oldest_ms]
        if not gone:
            return
        for key in gone:
            del self._series[key]
        # New lists: whoever reads the old ones goes on with what was there.
        by_name: dict[str, list[Series]] = {}
        for series in self._series.values():
            by_name.setdefault(series.labels[NAME], []).append(series)
        self._all, self._by_name = list(self._series.values()), by_name


def is_stale(values: Floats) -> NDArray[np.bool_]:
    """Return which values are stale markers; any other NaN is a value."""
    found: NDArray[np.bool_] = values.view(np.uint64) == STALE_BITS
    return found


def _moved(kept: NDArray[_Number], capacity: int) -> NDArray[_Number]:
    made = np.empty(capacity, dtype=kept.dtype)
    made[: len(kept)] = kept
    return made
