"""What samples belong to: names, or pairs of them; and how those of two answers meet."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from scheduler.model.arrays import CodeArray, HashArray, IntArray

CLUSTER_KEYS: Final = ("",)
"""The one key of a signal that is a single number."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class CodedKeys:
    """The keys of one answer, one for each sample.

    starts, inner
        As in KeyedColumn.
    names
        What inner keys are: nodes, or domains.
    codes, by_code
        uint64 and int32 (n_samples,): what the keys are, and the samples in order of that.
    """

    groups: Mapping[str, int]
    starts: IntArray
    inner: IntArray
    names: Sequence[str]
    codes: HashArray
    by_code: CodeArray
    _found: list[tuple[weakref.ref[CodedKeys], IntArray]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.codes)

    def positions_in(self, others: CodedKeys) -> IntArray:
        """Return int64 (n_samples,): where each key stands among `others`, -1 where it does not."""
        # Each rule over the signal asks, and twice: all of the keys of the answer before.
        for keys, found in self._found:
            if keys() is others:
                return found
        positions = np.full(len(self), -1, dtype=np.int64)
        if len(others):
            ours, theirs = self.codes[self.by_code], others.codes[others.by_code]
            # Both are sorted, so the search walks along.
            at = np.minimum(np.searchsorted(theirs, ours), len(theirs) - 1)
            positions[self.by_code] = np.where(theirs[at] == ours, others.by_code[at], -1)
        self._found[:] = [(weakref.ref(others), positions)]
        return positions


Keys = Sequence[str] | CodedKeys
"""Names of nodes, values of a node label, one empty string for the cluster; or the keys of groups and inner keys."""


def positions(keys: Keys, others: Keys) -> IntArray:
    """Return int64 (n_keys,): where each key stands among `others`, -1 where it does not."""
    if isinstance(keys, CodedKeys) and isinstance(others, CodedKeys):
        return keys.positions_in(others)
    if isinstance(keys, CodedKeys) or isinstance(others, CodedKeys):
        return np.full(len(keys), -1, dtype=np.int64)
    position = {key: i for i, key in enumerate(others)}
    return np.array([position.get(key, -1) for key in keys], dtype=np.int64)


def names_at(keys: Keys, which: IntArray) -> Sequence[str | int]:
    """Return by what the keys at these indexes, int64, are known from answer to answer: a name or a code."""
    if isinstance(keys, CodedKeys):
        codes: list[int] = keys.codes[which].tolist()
        return codes
    return [keys[i] for i in which.tolist()]
