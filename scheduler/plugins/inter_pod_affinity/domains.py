"""Domains: Pods, or the weights of terms, summed over the nodes that share a value of a topology key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from scheduler.model.arrays import BoolArray, CodeArray, IntArray, Rows
from scheduler.model.labels import ABSENT
from scheduler.model.views import NodeView


@dataclass(frozen=True, slots=True)
class AffinityDomains:
    """Pods by the value of one topology key.

    `codes` is int32 (n_rows,), ABSENT where a node lacks the key; `sums` is int64 (n_values + 1,) by code, and what
    ABSENT finds there is 0; `moved` holds what came or went since, by code. `gone`, int64 (n_rows,), is how many each
    row misses that no other row does.
    """

    codes: CodeArray
    sums: IntArray
    total: int
    moved: Mapping[int, int] = field(default_factory=dict)
    gone: IntArray | None = None

    @classmethod
    def of(cls, key: str, counts: IntArray, nodes: NodeView) -> AffinityDomains:
        """Return the domains of a key, with int64 (n_rows,) Pods on each row."""
        codes = _codes(key, nodes)
        sums = _by_value(counts, codes, len(nodes.label_values(key)))
        return cls(codes, sums, int(sums.sum()))

    def at(self, rows: Rows) -> IntArray:
        """Return int64 (len(rows),): the Pods in each node's domain, 0 where it has none."""
        codes = self.codes[rows]
        found: IntArray = self.sums[codes]
        for code, n in self.moved.items():
            found[codes == code] += n
        if self.gone is not None:
            found -= self._gone_from(rows, self.gone)
        return found

    def is_nowhere(self, rows: Rows) -> BoolArray:
        """Return bool (len(rows),): from where each node sees it, there are no Pods in any domain."""
        codes = self.codes[rows]
        totals = np.full(len(codes), self.total, dtype=np.int64)
        if self.gone is not None:
            totals -= self._gone_from(rows, self.gone)
        is_nowhere: BoolArray = totals == 0
        return is_nowhere

    def _gone_from(self, rows: Rows, gone: IntArray) -> IntArray:
        here: IntArray = np.where(self.codes[rows] == ABSENT, 0, gone[rows])
        return here

    def plus(self, row: int, n: int) -> AffinityDomains:
        """Return it with `n` more Pods on a row."""
        code = int(self.codes[row])
        if code == ABSENT:
            return self
        return replace(self, total=self.total + n, moved={**self.moved, code: self.moved.get(code, 0) + n})


@dataclass(frozen=True, slots=True)
class Pull:
    """What one topology key adds to the scores: codes as in AffinityDomains, int64 sums of weights by code."""

    codes: CodeArray
    sums: IntArray

    @classmethod
    def of(cls, key: str, both: IntArray, nodes: NodeView) -> Pull | None:
        """Return what a key adds, given int64 (2, n_rows): Pods, and sums of weights.

        None where no Pod with a term, or meant by one, is on a node that has the key.
        """
        codes, n_values = _codes(key, nodes), len(nodes.label_values(key))
        if not (both[0][codes != ABSENT]).any():
            return None
        return cls(codes, _by_value(both[1], codes, n_values))


def _codes(key: str, nodes: NodeView) -> CodeArray:
    codes = nodes.label_codes(key)
    return np.full(nodes.n_rows, ABSENT, dtype=np.int32) if codes is None else codes.astype(np.int32, copy=False)


def _by_value(amounts: IntArray, codes: CodeArray, n_values: int) -> IntArray:
    """Return int64 (n_values + 1,): sums of (n_rows,) amounts by code, 0 at the end, where ABSENT points to."""
    rows = np.flatnonzero(amounts)
    here = codes[rows]
    has_key = here != ABSENT
    # Weights make bincount add in floating point: exact below 2**53, far beyond weight times Pods.
    sums = np.bincount(here[has_key], weights=amounts[rows][has_key], minlength=n_values + 1)
    return sums.astype(np.int64)
