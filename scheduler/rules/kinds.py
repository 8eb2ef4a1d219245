"""Which reading goes with which kind of signal: the one place to name a new one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from scheduler.model.memo import Memo
from scheduler.model.rules import ByKind, Rule, Signal
from scheduler.rules.cards import CardReading
from scheduler.rules.counts import BUILT_IN
from scheduler.rules.label_match import LabelMatchReading
from scheduler.rules.pairs import pair_reading
from scheduler.rules.reading import Reading
from scheduler.rules.sampled import SampledReading
from scheduler.rules.workloads import WorkloadReading

ASKED: Final[Mapping[ByKind, Callable[[Rule, Signal, Memo], Reading]]] = {
    ByKind.NODE: SampledReading,
    ByKind.LABEL: SampledReading,
    ByKind.CLUSTER: SampledReading,
    ByKind.GPU: CardReading,
    ByKind.WORKLOAD: WorkloadReading,
    ByKind.PAIR: pair_reading,
}


def reading_of(rule: Rule, signal: Signal | None, kept: Memo) -> Reading:
    """Return what a rule reads; `signal` is that which it names, None for a label match; `kept`: see Reading."""
    if rule.label_match is not None:
        return LabelMatchReading(rule, kept, rule.label_match)
    if signal is None:
        return SampledReading(rule, None, kept)
    if signal.built_in is not None:
        return BUILT_IN[signal.built_in.kind](rule, signal, kept, signal.built_in)
    return ASKED[signal.by](rule, signal, kept)
