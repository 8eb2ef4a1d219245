"""By which labels the series of an answer name what they speak of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Final

from scheduler.model.rules import ByKind, Signal
from scheduler.signals.asking.resolver import UNMAPPED, NodeResolver
from scheduler.signals.asking.session import ResultSeries
from scheduler.signals.series_labels import CARD_LABELS, INSTANCE, NODE_LABELS, PART_LABELS, domain_labels

_LOOKED_AT: Final = 64


def naming_labels(signal: Signal, series: Sequence[ResultSeries], resolver: NodeResolver) -> tuple[str, ...]:
    """Return the labels that name the keys of `series`, sorted; nothing where no series names one.

    Some of the series are looked at, from all over the answer: one query gives all of its series the same labels,
    or a few sorts of them.
    """
    found: set[str] = set()
    for one in series[:: max(1, len(series) // _LOOKED_AT)]:
        found.update(_naming(signal, one.metric, resolver))
    return tuple(sorted(found))


def _naming(signal: Signal, labels: Mapping[str, str], resolver: NodeResolver) -> list[str]:
    if signal.by is ByKind.CLUSTER:
        return []
    if signal.pair is not None:
        return [signal.pair.source, signal.pair.target]
    if signal.by is ByKind.LABEL:
        return _first(domain_labels(signal.label), labels)
    for label in (*NODE_LABELS, INSTANCE):
        value = labels.get(label)
        if value and resolver.index_of({label: value}) != UNMAPPED:
            return [label, *_within_node(signal, labels)]
    return []


def _within_node(signal: Signal, labels: Mapping[str, str]) -> list[str]:
    if signal.workload is not None:
        return [label for label in (signal.workload.label, signal.workload.namespace) if label]
    if signal.by is ByKind.GPU:
        return _first(CARD_LABELS, labels) + _first(PART_LABELS, labels)
    return []


def _first(known: Sequence[str], labels: Mapping[str, str]) -> list[str]:
    return list(islice((label for label in known if labels.get(label)), 1))
