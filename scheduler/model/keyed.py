"""Signals whose value on a node depends on the Pod: samples by two keys, brought to the rows when a Pod reads them.

Nothing is kept here: who reads them remembers what it has brought to the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scheduler.model.arrays import BoolArray, CodeArray, FloatArray, IntArray, read_only


@dataclass(frozen=True, slots=True, eq=False)
class KeyedColumn:
    """The samples of one signal, in order of group and inner key.

    `by: gpu` has one group, and a node's cards as the samples of one inner key; `by: workload` a group for each
    workload, and nodes as inner keys; `by: pair` a group for each domain that is called, and the domains that call as
    inner keys.

    groups
        Name of the group -> its number.
    starts
        int64 (n_groups + 1,): samples `starts[i]` to `starts[i + 1]` are those of group i.
    inner, values
        int64 (n_samples,), below `n_inner`; float64 (n_samples,), never NaN.
    by_value
        int32 (n_samples,): the samples in order of inner key and value; only `by: gpu`, otherwise empty.
    alignment
        int64 (n_rows,): the inner key of each row, -1 where it has none.
    targets
        int64 (n_rows,): the group of each row's own domain, -1 where there is none; only `by: pair`.
    trips
        Rule name -> bool (n_samples,), True where the rule's filter refuses the sample.
    """

    groups: Mapping[str, int]
    starts: IntArray
    inner: IntArray
    values: FloatArray
    by_value: CodeArray
    n_inner: int
    alignment: IntArray
    targets: IntArray | None = None
    trips: Mapping[str, BoolArray] = field(default_factory=dict)

    def nothing(self) -> FloatArray:
        """Return float64 (n_rows,), all NaN: what Pods read that give nothing to look for."""
        return read_only(np.full(len(self.alignment), np.nan))

    def overview(self) -> FloatArray:
        """Return float64 (n_rows,): the mean over all samples of a node's inner key, NaN where there is none."""
        everything, once = np.arange(len(self.values)), np.ones(len(self.values))
        return self._by_row(self._mean(everything, once, self.values)[0], np.nan)

    def tripped_anywhere(self, rule: str) -> BoolArray:
        """Return bool (n_rows,), True where the rule refuses some sample of a node's inner key: to some Pod."""
        bits = self.trips[rule]
        return self._spread(np.flatnonzero(bits), bits, default=False)

    def of_group(self, group: int) -> FloatArray:
        """Return float64 (n_rows,), NaN where the group has no sample."""
        return self._spread(self._slice(group), self.values, np.nan)

    def tripped_of_group(self, group: int, rule: str) -> BoolArray:
        """Return bool (n_rows,), True where the rule refuses the group's sample."""
        return self._spread(self._slice(group), self.trips[rule], default=False)

    def cards(self) -> IntArray:
        """Return int64 (n_inner,): the cards of each node."""
        return np.bincount(self.inner, minlength=self.n_inner)

    def of_card(self, n: int, n_cards: IntArray, *, is_low_best: bool) -> FloatArray:
        """Return float64 (n_rows,): the value of each node's n-th best card, of its worst where it has fewer.

        `n_cards` is what `cards` has said.
        """
        ends = np.cumsum(n_cards)
        rank = np.minimum(n, n_cards)
        at = ends - n_cards + rank - 1 if is_low_best else ends - rank
        is_measured = n_cards > 0
        by_inner = np.full(self.n_inner, np.nan)
        by_inner[is_measured] = self.values[self.by_value[at[is_measured]]]
        return self._by_row(by_inner, np.nan)

    def lacking_cards(self, n: int, n_cards: IntArray, rule: str) -> BoolArray:
        """Return bool (n_rows,), True where the rule lets fewer than n of a node's cards pass, and not all of them."""
        n_passing = n_cards - np.bincount(self.inner[self.trips[rule]], minlength=self.n_inner)
        return self._by_row(n_passing < np.minimum(n, n_cards), default=False)

    def mean_of(self, counts: FloatArray) -> FloatArray:
        """Return float64 (n_rows,): the mean over groups, each counted so often; NaN where none of them has a sample.

        `counts` is float64 (n_groups,). Groups without a sample for an inner key are left out there.
        """
        at, weights = self._called(counts)
        mean, _ = self._mean(at, weights, self.values[at])
        return self._by_row(mean, np.nan)

    def tripped_share(self, counts: FloatArray, rule: str) -> FloatArray:
        """Return float64 (n_rows,): which part of what `mean_of` counts the rule refuses; NaN for none."""
        at, weights = self._called(counts)
        share, n_counted = self._mean(at, weights, self.trips[rule][at].astype(np.float64))
        share[n_counted == 0] = np.nan
        return self._by_row(share, np.nan)

    def _slice(self, group: int) -> slice:
        return slice(int(self.starts[group]), int(self.starts[group + 1]))

    def _spread(self, part: slice | IntArray, samples: NDArray[Any], default: float | bool) -> NDArray[Any]:
        by_inner = np.full(self.n_inner, default, dtype=samples.dtype)
        by_inner[self.inner[part]] = samples[part]
        return self._by_row(by_inner, default)

    def _by_row(self, by_inner: NDArray[Any], default: float | bool) -> NDArray[Any]:
        # One entry more: a row without an inner key, -1, reads the last.
        return read_only(np.append(by_inner, np.array([default], dtype=by_inner.dtype))[self.alignment])

    def _called(self, counts: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return the samples of all groups that count, int64, and how often each counts."""
        called = np.flatnonzero(counts)
        first, n_samples = self.starts[called], self.starts[called + 1] - self.starts[called]
        before = np.cumsum(n_samples) - n_samples
        at = np.repeat(first - before, n_samples) + np.arange(int(n_samples.sum()))
        return at, np.repeat(counts[called], n_samples)

    def _mean(self, at: IntArray, weights: FloatArray, samples: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the weighted mean by inner key, NaN for none, and the sum of its weights; float64 (n_inner,)."""
        inner = self.inner[at]
        n_counted: FloatArray = np.bincount(inner, weights=weights, minlength=self.n_inner).astype(np.float64)
        sums = np.bincount(inner, weights=weights * samples, minlength=self.n_inner)
        mean = np.full(self.n_inner, np.nan)
        np.divide(sums, n_counted, out=mean, where=n_counted > 0)
        return mean, n_counted
