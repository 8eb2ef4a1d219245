"""What a Pod of each workload adds to a signal, learned from past placements.

A node is quiet while the samples show all its Pods whole and none has left within the window. From one quiet moment to
the next the value changes by what the Pods that came between add: where they are of one workload, each adds its part.
What a workload adds is the median of its last observations, and is used from the third on; until then its Pods count
as an effect that is not learned says. What cannot be told apart, burst or drift, is left out.
"""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from scheduler.model.arrays import BoolArray, FloatArray, IntArray
from scheduler.model.rules import Effect, EffectKind, Signal, Unit, effect_scale
from scheduler.model.snapshot import Snapshot
from scheduler.rules.pending_load import PendingPods, PendingQuestion, Workload

MIN_OBSERVATIONS: Final = 3
_KEPT: Final = 32
_MAX_WORKLOADS: Final = 1_000
_MAX_ROWS: Final = 500
"""Nodes that are looked at one by one after one publication, some 5 us each; the others begin anew."""
_ONE_EACH: Final = Effect(EffectKind.CONSTANT, "", 1.0)
_MAX_AMOUNT: Final = 1 << 43


@dataclass(frozen=True, slots=True)
class Learned:
    """What was learned of one workload: how often, and the median, the lower and the upper quartile per Pod.

    Amounts are in millicores for cpu, whole units of other resources, or parts of the signal's unit.
    """

    n: int
    median: float
    low: float
    high: float


@dataclass(slots=True)
class _Quiet:
    """When each node was quiet last, as columns over rows: its value and number of Pods then; NaN: not known."""

    layout: int
    value: FloatArray
    n_pods: IntArray
    as_of_s: FloatArray
    not_before_s: FloatArray

    @classmethod
    def nothing(cls, layout: int, n_rows: int) -> _Quiet:
        never = np.full(n_rows, -np.inf)
        return cls(layout, np.full(n_rows, np.nan), np.zeros(n_rows, dtype=np.int64), never, never.copy())


@dataclass(slots=True)
class _Memory:
    quiet: _Quiet
    observed: dict[Workload, deque[float]] = field(default_factory=dict)
    amounts: Mapping[Workload, int] = field(default_factory=dict)


class LearnedEffects:
    """Memories by signal; owned by the deciding thread."""

    def __init__(self) -> None:
        self._memories: dict[Signal, _Memory] = {}
        self.amounts: Mapping[str, Mapping[Workload, int]] = {}

    def keep(self, signals: Mapping[str, Signal]) -> None:
        """Forget what was learned of signals that are gone or mean something else now."""
        known = {_meaning(signal) for signal in signals.values()}
        self._memories = {signal: memory for signal, memory in self._memories.items() if signal in known}
        self._renew()

    def told(self, signal: Signal) -> Mapping[Workload, Learned]:
        """Return what was learned of each workload, with its spread."""
        memory = self._memories.get(_meaning(signal))
        return {} if memory is None else {key: _summed_up(observed) for key, observed in memory.observed.items()}

    def observe(self, name: str, snapshot: Snapshot) -> None:
        """Learn from a signal that has just been published; a suspect or timeless answer teaches nothing."""
        column = snapshot.signals.columns.get(name)
        if column is None or np.isnan(column.as_of_unix_s):
            return
        signal, nodes = _meaning(column.signal), snapshot.nodes
        memory = self._memories.get(signal)
        if memory is None or memory.quiet.layout != nodes.layout:
            observed = {} if memory is None else memory.observed
            memory = self._memories[signal] = _Memory(_Quiet.nothing(nodes.layout, nodes.n_rows), observed)
        quiet, as_of_s = memory.quiet, column.as_of_unix_s
        has_left = nodes.n_pods < quiet.n_pods
        quiet.not_before_s[has_left] = as_of_s + column.signal.shown_after_s
        question = PendingQuestion(name, _ONE_EACH, column.signal.shown_after_s, as_of_s, {})
        unseen = snapshot.index(PendingPods).counted(question, nodes.n_rows)
        is_quiet: BoolArray = (unseen == 0) & (quiet.not_before_s <= as_of_s) & ~np.isnan(column.values) & ~has_left
        grown = np.flatnonzero(is_quiet & (nodes.n_pods > quiet.n_pods) & ~np.isnan(quiet.value))
        for row in grown[:_MAX_ROWS].tolist():
            self._learn(signal, memory, snapshot, row, float(column.values[row]))
        quiet.value[has_left] = np.nan
        quiet.n_pods[has_left] = nodes.n_pods[has_left]
        quiet.value[is_quiet], quiet.n_pods[is_quiet] = column.values[is_quiet], nodes.n_pods[is_quiet]
        quiet.as_of_s[is_quiet] = as_of_s
        memory.amounts = _amounts(memory)
        self._renew()

    def _learn(self, signal: Signal, memory: _Memory, snapshot: Snapshot, row: int, value: float) -> None:
        quiet = memory.quiet
        came = [pod for pod in snapshot.pods_on(row) if pod.running_s > quiet.as_of_s[row]]
        workloads = {pod.workload for pod in came}
        if len(came) != snapshot.nodes.n_pods[row] - quiet.n_pods[row] or len(workloads) != 1:
            return  # some have left meanwhile, or more than one workload has come
        (workload,) = workloads
        if not workload[1]:
            return
        each = (value - float(quiet.value[row])) / len(came)
        amount = _in_amounts(signal, each, snapshot, row)
        observed = memory.observed.pop(workload, None) or deque(maxlen=_KEPT)
        observed.append(amount)
        memory.observed[workload] = observed
        if len(memory.observed) > _MAX_WORKLOADS:
            del memory.observed[next(iter(memory.observed))]

    def _renew(self) -> None:
        self.amounts = {signal.name: memory.amounts for signal, memory in self._memories.items()}


def _meaning(signal: Signal) -> Signal:
    """Return the signal without its place and its ages: a file may be written anew, and samples come as they come."""
    return replace(signal, where="", max_age_s=0.0, spacing_s=0.0)


def _amounts(memory: _Memory) -> Mapping[Workload, int]:
    """Return what to go by; a Pod that comes lowers no load, so the minimum is zero."""
    return {
        workload: round(min(max(statistics.median(observed), 0.0), _MAX_AMOUNT))
        for workload, observed in memory.observed.items()
        if len(observed) >= MIN_OBSERVATIONS
    }


def _in_amounts(signal: Signal, each: float, snapshot: Snapshot, row: int) -> float:
    """Return a change of the value in the units of `Effect.amount`, the reverse of what a column adds."""
    effect = signal.inflight
    if effect is None or not effect.resource:
        return each * effect_scale(signal.unit)
    if signal.unit not in (Unit.RATIO, Unit.PERCENT):
        return each
    index = snapshot.nodes.resources.get(effect.resource)
    allocatable = 0 if index is None else int(snapshot.nodes.allocatable[index, row])
    return each * allocatable / (100.0 if signal.unit is Unit.PERCENT else 1.0)


def _summed_up(observed: deque[float]) -> Learned:
    low, median, high = (float(one) for one in np.quantile(list(observed), (0.25, 0.5, 0.75)))
    return Learned(len(observed), median, low, high)
