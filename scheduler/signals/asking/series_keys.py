"""What series with two keys speak of: a card of a node, a workload on a node, or a pair of domains."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Final

import numpy as np

from scheduler.model.arrays import BoolArray, FloatArray, HashArray, IntArray, read_only
from scheduler.model.hashing import hash64, mix64
from scheduler.model.rules import KEYED, ByKind, Signal
from scheduler.signals.answers import KeyedValues
from scheduler.signals.asking.resolver import UNMAPPED, NodeResolver, label_names
from scheduler.signals.asking.session import ResultSeries
from scheduler.signals.series_labels import CARD_LABELS, PART_LABELS

_MAX_REMEMBERED: Final = 200_000

_NO_NODES: Final = read_only(np.zeros(0, dtype=np.int64))

_hash = functools.lru_cache(_MAX_REMEMBERED)(hash64)


@dataclass(frozen=True, slots=True, eq=False)
class SeriesKeys:
    """The keys of one answer, each once, in order of group and inner key, cards by name.

    groups
        Workloads, domains that are called, or one empty string for the cards of all nodes.
    domains
        Of pairs: the domains that call; otherwise empty, and inner keys are nodes.
    group, inner
        int64 (n_keys,), indexes of `groups` and of `domains` or nodes.
    codes
        uint64 (n_keys,): hashes of what the keys are.
    has_cards
        Several keys may have one group and inner key.
    """

    groups: tuple[str, ...]
    domains: tuple[str, ...]
    group: IntArray
    inner: IntArray
    codes: HashArray
    has_cards: bool

    def __len__(self) -> int:
        return len(self.group)

    def packed(self, values: FloatArray) -> KeyedValues:
        """Return the keys that have a value, float64 (n_keys,), as they cross to the deciding process."""
        kept = np.flatnonzero(~np.isnan(values))
        values, inner, codes = values[kept], self.inner[kept], self.codes[kept]
        return KeyedValues(
            groups=self.groups,
            domains=self.domains,
            group=self.group[kept].astype(np.int32).tobytes(),
            inner=inner.astype(np.int32).tobytes(),
            codes=codes.tobytes(),
            by_code=np.argsort(codes).astype(np.int32).tobytes(),
            values=values.tobytes(),
            by_value=_by_value(inner, values).astype(np.int32).tobytes() if self.has_cards else b"",
        )

    def covered(self, values: FloatArray, names: Sequence[str]) -> frozenset[str]:
        """Return the nodes, of `names`, or the domains that call, of which some key has a value."""
        known = self.domains or names
        return frozenset(known[i] for i in np.unique(self.inner[~np.isnan(values)]).tolist())


def names_nodes(signal: Signal) -> bool:
    """Whether its series speak of nodes by name, so that they can't be read before the nodes are known."""
    return signal.by in (ByKind.NODE, ByKind.GPU, ByKind.WORKLOAD)


def keys_of(signal: Signal, series: Sequence[ResultSeries], resolver: NodeResolver) -> tuple[SeriesKeys, IntArray]:
    """Return the keys of the series, and per series the index of its key, int64, UNMAPPED where it has none."""
    if signal.by not in KEYED:
        raise ValueError(f"signal {signal.name!r} is by {signal.by.value}, which has one key")
    parts = _parts(signal, [one.metric for one in series], resolver)
    # Sorted, so that nothing depends on the order of the series.
    groups, of_groups = _sorted(parts.groups)
    cards, of_cards = _sorted(parts.cards)
    domains: tuple[str, ...] = ()
    if signal.by is ByKind.PAIR:
        domains, inner = _sorted(parts.domains)
    else:
        inner = parts.nodes
    n_inner, n_cards = max(len(domains) or len(resolver.identity.names), 1), max(len(cards), 1)
    combined = np.full(len(series), UNMAPPED, dtype=np.int64)
    combined[parts.is_known] = (of_groups * n_inner + inner) * n_cards + of_cards
    keys, of_series = np.unique(combined, return_inverse=True)
    n_unmapped_keys = int(len(keys) > 0 and keys[0] == UNMAPPED)
    keys = keys[n_unmapped_keys:]
    of_group, of_inner = keys // (n_cards * n_inner), keys // n_cards % n_inner
    codes = np.zeros(0, dtype=np.uint64)
    if len(keys):
        codes = mix64(mix64(_hashes(groups)[of_group]) + (_hashes(domains) if domains else resolver.hashes)[of_inner])
        codes = mix64(codes + _hashes(cards)[keys % n_cards])
    keyed = SeriesKeys(groups or ("",), domains, of_group, of_inner, codes, has_cards=signal.by is ByKind.GPU)
    return keyed, of_series.astype(np.int64) - n_unmapped_keys


@dataclass(frozen=True, slots=True)
class _Parts:
    """What the known series speak of, in their order; `nodes` or `domains` are empty, as the signal's kind has it.

    `is_known` is bool (n_series,), False where a label is missing or names nothing.
    """

    is_known: BoolArray
    groups: Sequence[str]
    cards: Sequence[str]
    nodes: IntArray
    domains: Sequence[str] = ()


def _parts(signal: Signal, series: Sequence[Mapping[str, str]], resolver: NodeResolver) -> _Parts:
    if signal.pair is not None:
        sources, targets = _values(series, signal.pair.source), _values(series, signal.pair.target)
        is_known: BoolArray = _mask(sources) & _mask(targets)
        groups = _kept(targets, is_known)
        return _Parts(is_known, groups, [""] * len(groups), _NO_NODES, _kept(sources, is_known))
    present = label_names(series)
    nodes = resolver.indexes_of(series, present)
    is_known = nodes != UNMAPPED
    if signal.workload is None:
        cards = _kept(_cards(series, present), is_known)
        return _Parts(is_known, [""] * len(cards), cards, nodes[is_known])
    names = _values(series, signal.workload.label)
    is_known &= _mask(names)
    if signal.workload.namespace:
        namespaces = _values(series, signal.workload.namespace)
        is_known &= _mask(namespaces)
        names = [f"{namespace}/{name}" for namespace, name in zip(namespaces, names, strict=True)]
    groups = _kept(names, is_known)
    return _Parts(is_known, groups, [""] * len(groups), nodes[is_known])


def _kept(names: list[str], is_known: BoolArray) -> list[str]:
    return names if is_known.all() else list(compress(names, is_known.tolist()))


def _cards(series: Sequence[Mapping[str, str]], present: Collection[str]) -> list[str]:
    """Return `card_of` for each series; where one label names the cards of all, it is read from all at once.

    `present` are the names of all labels that any of the series has.
    """
    naming = [label for label in CARD_LABELS if label in present]
    if len(naming) == 1 and not any(label in present for label in PART_LABELS):
        return _values(series, naming[0])
    return [card_of(labels) for labels in series]


def card_of(labels: Mapping[str, str]) -> str:
    """Return what names a card among those of its node, with its part; empty where no label does."""
    card = next((value for label in CARD_LABELS if (value := labels.get(label))), "")
    part = next((value for label in PART_LABELS if (value := labels.get(label))), "")
    return f"{card}/{part}" if part else card


def _values(series: Sequence[Mapping[str, str]], label: str) -> list[str]:
    return [labels.get(label, "") for labels in series]


def _mask(names: Sequence[str]) -> BoolArray:
    """Return bool (n,), False where the name is empty."""
    return np.fromiter(map(bool, names), dtype=np.bool_, count=len(names))


def _by_value(inner: IntArray, values: FloatArray) -> IntArray:
    """Return int64 (n,), the order by inner key and then by value: np.lexsort in a sixth of its time."""
    order = np.argsort(values)
    # numpy sorts 16 bits by counting, and wider numbers several times as slowly.
    keys = inner.astype(np.uint16) if inner.max(initial=0) <= np.iinfo(np.uint16).max else inner
    by_value: IntArray = order[np.argsort(keys[order], kind="stable")]
    return by_value


def _sorted(names: Sequence[str]) -> tuple[tuple[str, ...], IntArray]:
    """Return each name once, sorted, and per name its place there, int64."""
    once = tuple(sorted(set(names)))
    if len(once) == 1:
        return once, np.zeros(len(names), dtype=np.int64)
    place = {name: i for i, name in enumerate(once)}
    return once, np.fromiter(map(place.__getitem__, names), dtype=np.int64, count=len(names))


def _hashes(names: Sequence[str]) -> HashArray:
    return np.array([_hash(name) for name in names], dtype=np.uint64)
