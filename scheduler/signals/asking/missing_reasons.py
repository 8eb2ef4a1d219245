"""Which keys have no value although series speak of them, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from scheduler.model.arrays import BoolArray, FloatArray, IntArray
from scheduler.signals.problems import MissingReason

Codes = NDArray[np.uint8]

_REASONS: Final = (
    MissingReason.DUPLICATE,
    MissingReason.PARSE,
    MissingReason.NAN,
    MissingReason.INF,
    MissingReason.RANGE,
)
"""Code 1 is the first; 0 is a value, or no series at all."""


class Found(Protocol):
    """The part of an Ingested that is read here."""

    @property
    def keys(self) -> object: ...

    @property
    def missing(self) -> Codes: ...

    @property
    def has_value(self) -> BoolArray: ...


def codes_of(values: FloatArray, dropped: Mapping[MissingReason, IntArray]) -> Codes:
    """Return per key why it has no value, uint8 (n_keys,); `dropped` are the keys of the samples dropped by reason.

    A key that has a value all the same, of its other series, is not missing.
    """
    codes = np.zeros(len(values), dtype=np.uint8)
    for reason, keys in dropped.items():
        codes[keys] = _REASONS.index(reason) + 1
    codes[~np.isnan(values)] = 0
    return codes


def missing_reasons(before: Found, after: Found) -> dict[str, MissingReason]:
    """Return key -> why it has no value; `after` is the same answer without what is too old.

    Empty for the kinds with two keys.
    """
    keys = before.keys
    if not isinstance(keys, tuple):
        return {}
    names: Sequence[str] = keys
    found = {names[i]: _REASONS[int(before.missing[i]) - 1] for i in np.flatnonzero(before.missing).tolist()}
    stale: list[int] = np.flatnonzero(before.has_value & ~after.has_value).tolist()
    return found | {names[i]: MissingReason.STALE for i in stale}
