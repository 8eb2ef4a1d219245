"""What one query of a signal brought, as it crosses from the refresher process to the deciding one."""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec
import numpy as np

from scheduler.model.arrays import FloatArray
from scheduler.model.rules import Signal

CLUSTER_KEYS: Final = ("",)
"""The one key of a signal that is a single number."""


class Drops(msgspec.Struct, frozen=True, omit_defaults=True):
    """How many series of one answer gave no value, by reason.

    nan, inf, parse
        The value is no usable number; a native histogram counts as `parse`.
    range
        Outside the signal's `range`.
    unmapped
        No label names a known node, or the label of the signal's domain is missing.
    duplicate
        Several series of one node (domain, cluster) and no `reduce`.
    stale
        Older than the signal's `max_age`, by timestamps or by `lag`.
    """

    nan: int = 0
    inf: int = 0
    parse: int = 0
    range: int = 0
    unmapped: int = 0
    duplicate: int = 0
    stale: int = 0

    @property
    def total(self) -> int:
        return self.nan + self.inf + self.parse + self.range + self.unmapped + self.duplicate + self.stale


class SignalAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """One signal asked once.

    signature
        `signature(signal)` of what was asked: an answer belongs to a signal only while the two agree.
    max_age_s
        How long the answer may be kept, from the signal.
    values
        `by: node`: float64 in machine order, in the order of the names of `identity_generation`; NaN: no sample.
    by_label
        `by:` a node label: value by value of that label.
    value
        `by: cluster`.
    evaluated_at_s
        CLOCK_MONOTONIC of this machine.
    lag_s
        How far the newest samples behind the expression were in the past at that moment.
    is_suspect
        Warnings in the answer, or far fewer nodes than before.
    clock_skew_s
        The server's clock less ours, by its header Date; 0 without one. Nothing goes by it.
    n_series, n_mapped
        Series in the answer; nodes (domains, 1 for the cluster) that got a value.
    error, error_kind
        Why there is no answer, else empty; then everything else about values is empty too.
    """

    signal: str
    signature: str
    rules_generation: int
    max_age_s: float
    evaluated_at_s: float
    duration_s: float = 0.0
    lag_s: float = 0.0
    identity_generation: int = 0
    values: bytes = b""
    by_label: dict[str, float] = {}
    value: float | None = None
    is_suspect: bool = False
    warnings: tuple[str, ...] = ()
    n_series: int = 0
    n_mapped: int = 0
    clock_skew_s: float = 0.0
    drops: Drops = Drops()
    error: str = ""
    error_kind: str = ""

    def node_values(self) -> FloatArray:
        """Return float64 (n_names,), read-only, without a copy."""
        return np.frombuffer(self.values, dtype=np.float64)


def signature(signal: Signal) -> str:
    """Return a short hash of what is measured and how it is read, without how often and for how long."""
    measured = (signal.expr, signal.by, signal.label, signal.unit, signal.range, signal.reduce)
    return hashlib.blake2b(msgspec.msgpack.encode(measured), digest_size=8).hexdigest()
