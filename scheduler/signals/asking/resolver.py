"""Which node a series names.

Exporters name their node in many ways, so the labels are tried in a fixed order, and a value counts only if it
is a known name of exactly one node. `node="0"` of `node_memory_numa_*` is a NUMA node and so matches nothing,
unless a node is called 0; the next labels are tried then. A signal may name one label itself: then no other counts.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Final

import numpy as np

from scheduler.model.arrays import HashArray, IntArray, read_only
from scheduler.model.hashes import hash64
from scheduler.model.identity import NodeIdentity
from scheduler.signals.asking.answer_keys import NodeKeys
from scheduler.signals.series_labels import INSTANCE, NODE_LABELS

UNMAPPED: Final = -1

_MAX_REMEMBERED: Final = 200_000
_MAX_ORDERS: Final = 4
# scheme://host:port/path, [v6]:port, host:port; a bare IPv6 address has no port to strip.
_ENDPOINT: Final = re.compile(r"(?:[a-z][a-z0-9+.-]*://)?(?:\[([^\]]+)\]|([^:/\[\]]+))(?::\d+)?(?:/.*)?", re.ASCII)


class NodeResolver:
    """Series labels to an index of `identity.names`, for one generation of it; threads may share it."""

    def __init__(self, identity: NodeIdentity) -> None:
        self.identity = identity
        self.keys = NodeKeys(identity)
        self._hits: dict[str, int] = {}
        self._endpoints: dict[str, int] = {}
        self._orders: dict[str, tuple[tuple[list[str], IntArray], ...]] = {}

    def index_of(self, labels: Mapping[str, str], node_label: str = "") -> int:
        """Return the index of the node, UNMAPPED where no label names one; with `node_label`, where this does not."""
        if node_label:
            return self._one(labels.get(node_label, ""), is_endpoint=True)
        return self._first(labels, NODE_LABELS)

    def indexes_of(
        self, series: Sequence[Mapping[str, str]], present: Collection[str] | None = None, node_label: str = ""
    ) -> IntArray:
        """Return `index_of` for the labels of each series, int64 (n_series,), read-only.

        Most queries leave one label that may name a node, the same for all: its values are looked up all at once.
        `present` are the `label_names` of the series, where they are known.
        """
        present = label_names(series) if present is None else present
        naming = [label for label in ((node_label,) if node_label else NODE_LABELS) if label in present]
        if len(naming) == 1:
            try:
                values = list(map(itemgetter(naming[0]), series))
            except KeyError:
                pass  # a series without the label
            else:
                return self._all_at_once(naming[0], values, is_endpoint=bool(node_label) or naming[0] == INSTANCE)
        if node_label:
            return _indexes(self.index_of(labels, node_label) for labels in series)
        return _indexes([self._first(labels, naming) for labels in series])

    def _first(self, labels: Mapping[str, str], naming: Sequence[str]) -> int:
        """Return the index of the node that the first of these labels names that names one."""
        for label in naming:
            value = labels.get(label)
            if value:
                index = (self._endpoints if label == INSTANCE else self._hits).get(value)
                if index is None:
                    index = self._one(value, is_endpoint=label == INSTANCE)
                if index != UNMAPPED:
                    return index
        return UNMAPPED

    def _one(self, value: str, *, is_endpoint: bool) -> int:
        """Return the index of the node with this name, or at this address where the value may have scheme and port."""
        memo = self._endpoints if is_endpoint else self._hits
        index = memo.get(value)
        if index is None:
            index = self._at(value) if is_endpoint else self._named(value)
            if len(memo) < _MAX_REMEMBERED:
                memo[value] = index
        return index

    def _all_at_once(self, label: str, values: list[str], *, is_endpoint: bool) -> IntArray:
        """Return `index_of` for series that have no other label by which they may name a node.

        Prometheus mostly gives the same series in the same order, to one query after the other over the same metrics,
        and comparing the values is cheaper than looking them up.
        """
        asked = f"{label}{' at' if is_endpoint else ''}"
        orders = self._orders.get(asked, ())
        for known, indexes in orders:
            if known == values:
                return indexes
        memo = self._endpoints if is_endpoint else self._hits
        try:
            indexes = _indexes(map(memo.__getitem__, values))
        except KeyError:  # a value that is new
            indexes = _indexes(self._one(value, is_endpoint=is_endpoint) for value in values)
        if len(values) <= _MAX_REMEMBERED // _MAX_ORDERS:
            self._orders[asked] = ((values, indexes), *orders)[:_MAX_ORDERS]
        return indexes

    def _named(self, value: str) -> int:
        index = self.identity.aliases.get(value, UNMAPPED)
        # The last part of a provider's id may be a bare number, as in a scale set of virtual machines.
        if index != UNMAPPED and value.isdigit() and self.identity.names[index] != value:
            return UNMAPPED
        return index

    def _at(self, instance: str) -> int:
        index = self._named(instance)
        if index != UNMAPPED:
            return index
        endpoint = _ENDPOINT.fullmatch(instance)
        return self._named(endpoint[1] or endpoint[2]) if endpoint else UNMAPPED

    @functools.cached_property
    def hashes(self) -> HashArray:
        """Uint64 (n_names,): hashes of the names of all nodes."""
        return np.array([hash64(name) for name in self.identity.names], dtype=np.uint64)


def _indexes(found: Iterable[int]) -> IntArray:
    return read_only(np.fromiter(found, dtype=np.int64))


def label_names(series: Iterable[Mapping[str, str]]) -> frozenset[str]:
    """Return the names of all labels that any of the series has."""
    return frozenset(chain.from_iterable(series))
