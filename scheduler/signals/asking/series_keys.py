"""What series with two keys speak of: a card of a node, a workload on a node, or a pair of domains."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from scheduler.model.arrays import FloatArray, HashArray, IntArray
from scheduler.model.hashing import hash64, mix64
from scheduler.model.rules import KEYED, ByKind, Signal
from scheduler.signals.answers import KeyedValues
from scheduler.signals.asking.resolver import UNMAPPED, NodeResolver
from scheduler.signals.asking.session import Series
from scheduler.signals.series_labels import CARD_LABELS, PART_LABELS

_MAX_REMEMBERED: Final = 200_000

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
            by_value=np.lexsort((values, inner)).astype(np.int32).tobytes() if self.has_cards else b"",
        )

    def covered(self, values: FloatArray, names: Sequence[str]) -> frozenset[str]:
        """Return the nodes, of `names`, or the domains that call, of which some key has a value."""
        known = self.domains or names
        return frozenset(known[i] for i in np.unique(self.inner[~np.isnan(values)]).tolist())


def names_nodes(signal: Signal) -> bool:
    """Whether its series speak of nodes by name, so that they can't be read before the nodes are known."""
    return signal.by in (ByKind.NODE, ByKind.GPU, ByKind.WORKLOAD)


def keys_of(signal: Signal, series: Sequence[Series], resolver: NodeResolver) -> tuple[SeriesKeys, IntArray]:
    """Return the keys of the series, and per series the index of its key, int64, UNMAPPED where it has none."""
    if signal.by not in KEYED:
        raise ValueError(f"signal {signal.name!r} is by {signal.by.value}, which has one key")
    parts = [_parts(signal, one.metric, resolver) for one in series]
    known = [part for part in parts if part is not None]
    # Sorted, so that nothing depends on the order of the series.
    groups = tuple(sorted({group for group, _, _ in known})) or ("",)
    cards = sorted({card for _, _, card in known})
    is_pair = signal.by is ByKind.PAIR
    domains = tuple(sorted({str(inner) for _, inner, _ in known})) if is_pair else ()
    names = domains if is_pair else resolver.identity.names
    group_number, card_number = _numbers(groups), _numbers(cards)
    domain_number = _numbers(domains)
    n_inner, n_cards = max(len(names), 1), max(len(cards), 1)
    combined = np.full(len(parts), UNMAPPED, dtype=np.int64)
    for i, part in enumerate(parts):
        if part is not None:
            group, inner, card = part
            number = domain_number[inner] if isinstance(inner, str) else inner
            combined[i] = (group_number[group] * n_inner + number) * n_cards + card_number[card]
    keys, of_series = np.unique(combined, return_inverse=True)
    n_unmapped_keys = int(len(keys) > 0 and keys[0] == UNMAPPED)
    keys = keys[n_unmapped_keys:]
    of_group, of_inner = keys // (n_cards * n_inner), keys // n_cards % n_inner
    codes = np.zeros(0, dtype=np.uint64)
    if len(keys):
        codes = mix64(mix64(_hashes(groups)[of_group]) + _hashes(names)[of_inner])
        codes = mix64(codes + _hashes(cards)[keys % n_cards])
    keyed = SeriesKeys(groups, domains, of_group, of_inner, codes, has_cards=signal.by is ByKind.GPU)
    return keyed, of_series.astype(np.int64) - n_unmapped_keys


def _parts(signal: Signal, labels: Mapping[str, str], resolver: NodeResolver) -> tuple[str, int | str, str] | None:
    """Return group, inner key and card of one series, None where a label is missing or names nothing."""
    if signal.pair is not None:
        source, target = labels.get(signal.pair.source, ""), labels.get(signal.pair.target, "")
        return (target, source, "") if source and target else None
    node = resolver.index_of(labels)
    if node == UNMAPPED:
        return None
    if signal.workload is None:
        return "", node, card_of(labels)
    name = labels.get(signal.workload.label, "")
    if not signal.workload.namespace:
        return (name, node, "") if name else None
    namespace = labels.get(signal.workload.namespace, "")
    return (f"{namespace}/{name}", node, "") if name and namespace else None


def card_of(labels: Mapping[str, str]) -> str:
    """Return what names a card among those of its node, with its part; empty where no label does."""
    card = next((value for label in CARD_LABELS if (value := labels.get(label))), "")
    part = next((value for label in PART_LABELS if (value := labels.get(label))), "")
    return f"{card}/{part}" if part else card


def _numbers(names: Sequence[str]) -> dict[str, int]:
    return {name: i for i, name in enumerate(names)}


def _hashes(names: Sequence[str]) -> HashArray:
    return np.array([_hash(name) for name in names], dtype=np.uint64)
