"""What the series of a signal are of: one Grouping for each kind of signal.

A Grouping answers all that differs by kind where Prometheus is asked: the keys of series, the labels that name them,
how the lag is asked for by the same keys, which keys an answer is expected to cover, and how a message says what it
did cover. Nothing else in `asking` asks for the kind.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, islice
from typing import ClassVar, Final, TypeVar

import numpy as np

from scheduler.model.arrays import BoolArray, HashArray, IntArray
from scheduler.model.hashes import hash64, mix64
from scheduler.model.rules import ByKind, PairKey, Signal, WorkloadKey
from scheduler.signals.answers import SignalAnswer
from scheduler.signals.asking.answer_keys import AnswerKeys, ClusterKey, DomainKeys, SeriesKeys
from scheduler.signals.asking.resolver import UNMAPPED, NodeResolver, label_names
from scheduler.signals.asking.session import ResultSeries
from scheduler.signals.series_labels import CARD_LABELS, INSTANCE, NODE_LABELS, PART_LABELS, domain_labels

_MAX_REMEMBERED: Final = 200_000
_LOOKED_AT: Final = 64

T = TypeVar("T")
Labels = Mapping[str, str]
Keyed = tuple[AnswerKeys, IntArray]
"""The keys of an answer, and per series the index of its key, int64, UNMAPPED where it has none."""

_hash = functools.lru_cache(_MAX_REMEMBERED)(hash64)


class Grouping(ABC):
    """How the series of one kind of signal are grouped.

    names_nodes
        Series name nodes, so they can't be read before the nodes are known.
    takes_scalar
        A scalar is an answer, too.
    thing
        What a series has to name, in words.
    lag_else_by
        The label that groups series without any naming label in the query for the lag; empty: those are left out.
    """

    names_nodes: ClassVar[bool] = False
    takes_scalar: ClassVar[bool] = False
    thing: ClassVar[str]
    lag_else_by: ClassVar[str] = ""

    def __init__(self, signal: Signal) -> None:
        self._signal = signal

    @abstractmethod
    def keys(self, series: Sequence[ResultSeries], resolver: NodeResolver) -> Keyed:
        """Return the keys of the series, in an order that does not depend on theirs."""

    @abstractmethod
    def naming(self, labels: Labels, resolver: NodeResolver) -> list[str]:
        """Return those labels of one series that name its key; nothing where they name none."""

    @abstractmethod
    def coverage(self, answer: SignalAnswer) -> str:
        """Return how much of the cluster an answer covers, as a message says it; empty where that says nothing."""

    def n_nodes(self, answer: SignalAnswer, n_rows: int) -> int | None:
        """Return how many nodes get a value, None where that says nothing; `n_rows` of its column have one."""
        return answer.n_mapped if self.names_nodes else None

    def expected(self, resolver: NodeResolver) -> frozenset[str] | None:
        """Return the nodes that may be covered; None where only the answers themselves tell what there is."""
        return resolver.keys.known if self.names_nodes else None

    def naming_labels(self, series: Sequence[ResultSeries], resolver: NodeResolver) -> tuple[str, ...]:
        """Return the labels that name the keys of `series`, sorted; nothing where no series names one.

        Some of the series are looked at, from all over the answer: one query gives all of its series the same labels,
        or a few sorts of them.
        """
        found: set[str] = set()
        for one in series[:: max(1, len(series) // _LOOKED_AT)]:
            found.update(self.naming(one.metric, resolver))
        return tuple(sorted(found))


def grouping_of(signal: Signal) -> Grouping:
    """Return the Grouping of a signal that Prometheus is asked for."""
    return _GROUPINGS[signal.by](signal)


class _OnNodes(Grouping):
    """Each series names a node, and maybe something on it."""

    names_nodes = True
    thing = "node"

    def naming(self, labels: Labels, resolver: NodeResolver) -> list[str]:
        chosen = self._signal.node_label
        for label in (chosen,) if chosen else NODE_LABELS:
            value = labels.get(label)
            if value and resolver.index_of({label: value}, chosen) != UNMAPPED:
                return [label, *self._naming_on_node(labels)]
        return []

    def coverage(self, answer: SignalAnswer) -> str:
        return f" ({answer.n_mapped} nodes covered)"

    def _naming_on_node(self, labels: Labels) -> list[str]:
        return []


class NodeGrouping(_OnNodes):
    lag_else_by = INSTANCE

    def keys(self, series: Sequence[ResultSeries], resolver: NodeResolver) -> Keyed:
        metrics = [one.metric for one in series]
        return resolver.keys, resolver.indexes_of(metrics, node_label=self._signal.node_label)

    def coverage(self, answer: SignalAnswer) -> str:
        return f" ({answer.n_mapped} of {len(answer.node_values())} nodes covered)"

    def n_nodes(self, answer: SignalAnswer, n_rows: int) -> int | None:
        return n_rows


class LabelGrouping(Grouping):
    """Series name a domain: a value of a node label."""

    thing = "domain"

    def keys(self, series: Sequence[ResultSeries], resolver: NodeResolver) -> Keyed:
        labels = domain_labels(self._signal.label)
        domains = [next((value for label in labels if (value := one.metric.get(label))), "") for one in series]
        keys = tuple(sorted(set(domains) - {""}))
        index = {key: i for i, key in enumerate(keys)}
        return DomainKeys(keys), np.array([index.get(domain, UNMAPPED) for domain in domains], dtype=np.int64)

    def naming(self, labels: Labels, resolver: NodeResolver) -> list[str]:
        return _first(domain_labels(self._signal.label), labels)

    def coverage(self, answer: SignalAnswer) -> str:
        return _domains_covered(self._signal, answer)

    def n_nodes(self, answer: SignalAnswer, n_rows: int) -> int | None:
        return n_rows


class ClusterGrouping(Grouping):
    """All series are of the cluster."""

    takes_scalar = True
    thing = "cluster"

    def keys(self, series: Sequence[ResultSeries], resolver: NodeResolver) -> Keyed:
        return _CLUSTER, np.zeros(len(series), dtype=np.int64)

    def naming(self, labels: Labels, resolver: NodeResolver) -> list[str]:
        return []

    def coverage(self, answer: SignalAnswer) -> str:
        return ""


class CardGrouping(_OnNodes):
    """Series name a node and one of its cards."""

    def keys(self, series: Sequence[ResultSeries], resolver: NodeResolver) -> Keyed:
        metrics = [one.metric for one in series]
        present = label_names(metrics)
        nodes = resolver.indexes_of(metrics, present, self._signal.node_label)
        is_known: BoolArray = nodes != UNMAPPED
        cards = _kept(_cards(metrics, present), is_known)
        return _combined(is_known, [""] * len(cards), _nodes(nodes[is_known], resolver), resolver, cards)

    def _naming_on_node(self, labels: Labels) -> list[str]:
        return _first(CARD_LABELS, labels) + _first(PART_LABELS, labels)


class WorkloadGrouping(_OnNodes):
    """Series name a node and a workload on it."""

    thing = "node and workload"

    def __init__(self, signal: Signal) -> None:
        super().__init__(signal)
        self._workload: WorkloadKey = _given(signal, signal.workload)

    def keys(self, series: Sequence[ResultSeries], resolver: NodeResolver) -> Keyed:
        metrics = [one.metric for one in series]
        nodes = resolver.indexes_of(metrics, node_label=self._signal.node_label)
        names = _values(metrics, self._workload.label)
        is_known: BoolArray = (nodes != UNMAPPED) & _mask(names)
        if self._workload.namespace:
            namespaces = _values(metrics, self._workload.namespace)
            is_known &= _mask(namespaces)
            names = [f"{namespace}/{name}" for namespace, name in zip(namespaces, names, strict=True)]
        return _combined(is_known, _kept(names, is_known), _nodes(nodes[is_known], resolver), resolver)

    def _naming_on_node(self, labels: Labels) -> list[str]:
        return [label for label in (self._workload.label, self._workload.namespace) if label]


class PairGrouping(Grouping):
    """Series name two domains: the one that calls, and the one that is called."""

    thing = "pair of domains"

    def __init__(self, signal: Signal) -> None:
        super().__init__(signal)
        self._pair: PairKey = _given(signal, signal.pair)

    def keys(self, series: Sequence[ResultSeries], resolver: NodeResolver) -> Keyed:
        metrics = [one.metric for one in series]
        sources, targets = _values(metrics, self._pair.source), _values(metrics, self._pair.target)
        is_known: BoolArray = _mask(sources) & _mask(targets)
        return _combined(is_known, _kept(targets, is_known), _domains(_kept(sources, is_known)), resolver)

    def naming(self, labels: Labels, resolver: NodeResolver) -> list[str]:
        return [self._pair.source, self._pair.target]

    def coverage(self, answer: SignalAnswer) -> str:
        return _domains_covered(self._signal, answer)


_CLUSTER: Final = ClusterKey()
_GROUPINGS: Final[Mapping[ByKind, type[Grouping]]] = {
    ByKind.NODE: NodeGrouping,
    ByKind.LABEL: LabelGrouping,
    ByKind.CLUSTER: ClusterGrouping,
    ByKind.GPU: CardGrouping,
    ByKind.WORKLOAD: WorkloadGrouping,
    ByKind.PAIR: PairGrouping,
}


def _given(signal: Signal, key: T | None) -> T:
    if key is None:
        raise ValueError(f"signal {signal.name!r} is by {signal.by.value} and does not say by which labels")
    return key


def _domains_covered(signal: Signal, answer: SignalAnswer) -> str:
    return f" ({answer.n_mapped} values of {signal.label} covered)"


def _first(known: Sequence[str], labels: Labels) -> list[str]:
    return list(islice((label for label in known if labels.get(label)), 1))


@dataclass(frozen=True, slots=True)
class _InnerKeys:
    """Nodes or domains, their hashes, uint64, and which of them each of the known series names, int64."""

    names: Sequence[str]
    hashes: HashArray
    of_series: IntArray
    are_domains: bool


def _nodes(of_series: IntArray, resolver: NodeResolver) -> _InnerKeys:
    return _InnerKeys(resolver.identity.names, resolver.hashes, of_series, are_domains=False)


def _domains(named: Sequence[str]) -> _InnerKeys:
    domains, of_series = _sorted(named)
    return _InnerKeys(domains, _hashes(domains), of_series, are_domains=True)


def _combined(
    is_known: BoolArray,
    named_groups: Sequence[str],
    inner: _InnerKeys,
    resolver: NodeResolver,
    named_cards: Sequence[str] | None = None,
) -> Keyed:
    """Return the keys of series that name a group, an inner key and maybe a card.

    `is_known` is bool (n_series,), False where a label is missing or names nothing; all else is of the known ones.
    """
    # Sorted, so that nothing depends on the order of the series.
    groups, of_groups = _sorted(named_groups)
    cards, of_cards = _sorted([""] * len(named_groups) if named_cards is None else named_cards)
    n_inner, n_cards = max(len(inner.names), 1), max(len(cards), 1)
    combined = np.full(len(is_known), UNMAPPED, dtype=np.int64)
    combined[is_known] = (of_groups * n_inner + inner.of_series) * n_cards + of_cards
    keys, of_series = np.unique(combined, return_inverse=True)
    n_unmapped_keys = int(len(keys) > 0 and keys[0] == UNMAPPED)
    keys = keys[n_unmapped_keys:]
    of_group, of_inner = keys // (n_cards * n_inner), keys // n_cards % n_inner
    codes = np.zeros(0, dtype=np.uint64)
    if len(keys):
        codes = mix64(mix64(_hashes(groups)[of_group]) + inner.hashes[of_inner])
        codes = mix64(codes + _hashes(cards)[keys % n_cards])
    found = SeriesKeys(
        groups=groups or ("",),
        inner_names=inner.names,
        has_domains=inner.are_domains,
        identity_generation=resolver.identity.generation,
        group=of_group,
        inner=of_inner,
        codes=codes,
        has_cards=named_cards is not None,
    )
    return found, of_series.astype(np.int64) - n_unmapped_keys


def _kept(names: list[str], is_known: BoolArray) -> list[str]:
    return names if is_known.all() else list(compress(names, is_known.tolist()))


def _cards(series: Sequence[Labels], present: Collection[str]) -> list[str]:
    """Return `card_of` for each series; where one label names the cards of all, it is read from all at once.

    `present` are the names of all labels that any of the series has.
    """
    naming = [label for label in CARD_LABELS if label in present]
    if len(naming) == 1 and not any(label in present for label in PART_LABELS):
        return _values(series, naming[0])
    return [card_of(labels) for labels in series]


def card_of(labels: Labels) -> str:
    """Return what names a card among those of its node, with its part; empty where no label does."""
    card = next((value for label in CARD_LABELS if (value := labels.get(label))), "")
    part = next((value for label in PART_LABELS if (value := labels.get(label))), "")
    return f"{card}/{part}" if part else card


def _values(series: Sequence[Labels], label: str) -> list[str]:
    return [labels.get(label, "") for labels in series]


def _mask(names: Sequence[str]) -> BoolArray:
    """Return bool (n,), False where the name is empty."""
    return np.fromiter(map(bool, names), dtype=np.bool_, count=len(names))


def _sorted(names: Sequence[str]) -> tuple[tuple[str, ...], IntArray]:
    """Return each name once, sorted, and per name its place there, int64."""
    once = tuple(sorted(set(names)))
    if len(once) == 1:
        return once, np.zeros(len(names), dtype=np.int64)
    place = {name: i for i, name in enumerate(once)}
    return once, np.fromiter(map(place.__getitem__, names), dtype=np.int64, count=len(names))


def _hashes(names: Sequence[str]) -> HashArray:
    return np.array([_hash(name) for name in names], dtype=np.uint64)
