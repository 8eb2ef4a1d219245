"""What one query of a signal brought, as it crosses from the refresher process to the deciding one."""

from __future__ import annotations

import hashlib
import math

import msgspec
import numpy as np

from scheduler.model.arrays import FloatArray
from scheduler.model.rules import Signal


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


class KeyedValues(msgspec.Struct, frozen=True):
    """Samples by two keys, in order of both, cards by name; arrays in machine order, one entry a sample.

    groups
        `by: workload`: workloads, with the namespace before a slash where the signal has one; `by: pair`: the domains
        that are called; `by: gpu`: one empty string.
    domains
        `by: pair`: the domains that call; otherwise empty, and inner keys are the nodes of `identity_generation`.
    group, inner
        int32, indexes of `groups` and of `domains` or nodes.
    codes
        uint64, what the keys are, cards included, whatever the indexes: to find a sample again in the next answer.
    by_code
        int32, the samples in order of their codes.
    values
        float64, never NaN.
    by_value
        int32, the samples in order of inner key and value; only `by: gpu`.
    """

    groups: tuple[str, ...]
    domains: tuple[str, ...]
    group: bytes
    inner: bytes
    codes: bytes
    by_code: bytes
    values: bytes
    by_value: bytes = b""


class SignalAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """One signal asked once.

    signature
        `signature(signal)` of what was asked: an answer belongs to a signal only while the two agree.
    max_age_s
        How long the answer may be kept: the signal's, where its samples come `spacing_s` apart.
    spacing_s
        How far apart samples come, in seconds, 0 where that is not known.
    smoothing_s
        The half-life of past samples, from the signal; the values here are as measured.
    values
        `by: node`: float64 in machine order, in the order of the names of `identity_generation`; NaN: no sample.
    by_label
        `by:` a node label: value by value of that label.
    value
        `by: cluster`.
    keyed
        `by: gpu`, `workload` and `pair`.
    evaluated_at_s
        CLOCK_MONOTONIC of this machine.
    evaluated_unix_s
        The same moment by the wall clock of this machine, to compare with the times that Pods carry; NaN: not known.
    lag_s
        How far the newest samples behind the expression were in the past at that moment.
    lag_by_key
        The same of the nodes (domains) with a value whose own samples were notably further behind, usually of none.
    is_suspect
        Warnings in the answer, or far fewer nodes than before.
    clock_skew_s
        The server's clock less ours; 0 where nothing says it. Nothing goes by it.
    n_series, n_mapped
        Series in the answer; nodes (domains, 1 for the cluster) that got a value; of pairs, the domains that call.
    error, error_kind
        Why there is no answer, else empty; then everything else about values is empty too.
    """

    signal: str
    signature: str
    rules_generation: int
    max_age_s: float
    evaluated_at_s: float
    spacing_s: float = 0.0
    smoothing_s: float = 0.0
    evaluated_unix_s: float = math.nan
    duration_s: float = 0.0
    lag_s: float = 0.0
    lag_by_key: dict[str, float] = {}
    identity_generation: int = 0
    values: bytes = b""
    by_label: dict[str, float] = {}
    value: float | None = None
    keyed: KeyedValues | None = None
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
    keys = (signal.by, signal.label, signal.workload, signal.pair, signal.node_label)
    measured = (signal.expr, signal.server, signal.built_in, keys, signal.unit, signal.range, signal.reduce)
    return hashlib.blake2b(msgspec.msgpack.encode(measured), digest_size=8).hexdigest()
