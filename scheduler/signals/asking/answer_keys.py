"""What the values of one answer are of, in the forms in which they cross to the deciding process.

A value is of a node, of a domain or of the cluster; or of a group and an inner key, where Pods read different values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np

from scheduler.model.arrays import FloatArray, HashArray, IntArray
from scheduler.model.identity import NodeIdentity
from scheduler.signals.answers import KeyedValues


class AnswerKeys(ABC):
    """The keys of one answer, each once."""

    @property
    @abstractmethod
    def names(self) -> Sequence[str] | None:
        """A name for each key; None where a key has no name of its own: then nothing is reported of single keys."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def covered(self, values: FloatArray) -> frozenset[str]:
        """Return the nodes or domains that have a value; of pairs, the domains that call."""

    @abstractmethod
    def packed(self, values: FloatArray) -> dict[str, Any]:
        """Return the fields of SignalAnswer that carry the values, float64 (n_keys,), NaN for none."""

    @abstractmethod
    def positions_in(self, others: AnswerKeys) -> IntArray:
        """Return int64 (n_keys,): where each key stands among those of another answer, -1 where it does not."""


class _NamedKeys(AnswerKeys):
    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names

    @property
    def names(self) -> tuple[str, ...]:
        return self._names

    def __len__(self) -> int:
        return len(self._names)

    def covered(self, values: FloatArray) -> frozenset[str]:
        return frozenset(compress(self._names, (~np.isnan(values)).tolist()))

    def positions_in(self, others: AnswerKeys) -> IntArray:
        position = {name: i for i, name in enumerate(others.names or ())}
        return np.array([position.get(name, -1) for name in self._names], dtype=np.int64)


class NodeKeys(_NamedKeys):
    """All nodes of one generation of NodeIdentity, measured or not."""

    def __init__(self, identity: NodeIdentity) -> None:
        super().__init__(identity.names)
        self.known = frozenset(identity.names)
        self._generation = identity.generation

    def covered(self, values: FloatArray) -> frozenset[str]:
        # The same object from answer to answer, which takes no time to compare.
        return super().covered(values) if np.isnan(values).any() else self.known

    def packed(self, values: FloatArray) -> dict[str, Any]:
        return {"values": values.tobytes(), "identity_generation": self._generation}


class DomainKeys(_NamedKeys):
    """The values of a node label that series name."""

    def packed(self, values: FloatArray) -> dict[str, Any]:
        return {"by_label": {self._names[i]: float(values[i]) for i in np.flatnonzero(~np.isnan(values))}}


class ClusterKey(_NamedKeys):
    """The cluster, with an empty name."""

    def __init__(self) -> None:
        super().__init__(("",))

    def packed(self, values: FloatArray) -> dict[str, Any]:
        return {} if np.isnan(values[0]) else {"value": float(values[0])}


@dataclass(frozen=True, slots=True, eq=False)
class SeriesKeys(AnswerKeys):
    """Groups with inner keys, in order of both, cards by name.

    groups
        Workloads, domains that are called, or one empty string for the cards of all nodes.
    inner_names, has_domains
        What inner keys are: domains that call, or the nodes of `identity_generation`.
    group, inner
        int64 (n_keys,), indexes of `groups` and of `inner_names`.
    codes
        uint64 (n_keys,): hashes of what the keys are.
    has_cards
        Several keys may have one group and inner key.
    """

    groups: tuple[str, ...]
    inner_names: Sequence[str]
    has_domains: bool
    identity_generation: int
    group: IntArray
    inner: IntArray
    codes: HashArray
    has_cards: bool

    @property
    def names(self) -> None:
        return None

    def __len__(self) -> int:
        return len(self.group)

    def covered(self, values: FloatArray) -> frozenset[str]:
        return frozenset(self.inner_names[i] for i in np.unique(self.inner[~np.isnan(values)]).tolist())

    def packed(self, values: FloatArray) -> dict[str, Any]:
        kept = np.flatnonzero(~np.isnan(values))
        values, inner, codes = values[kept], self.inner[kept], self.codes[kept]
        keyed = KeyedValues(
            groups=self.groups,
            domains=tuple(self.inner_names) if self.has_domains else (),
            group=self.group[kept].astype(np.int32).tobytes(),
            inner=inner.astype(np.int32).tobytes(),
            codes=codes.tobytes(),
            by_code=np.argsort(codes).astype(np.int32).tobytes(),
            values=values.tobytes(),
            by_value=_by_value(inner, values).astype(np.int32).tobytes() if self.has_cards else b"",
        )
        return {"keyed": keyed, "identity_generation": self.identity_generation}

    def positions_in(self, others: AnswerKeys) -> IntArray:
        if not isinstance(others, SeriesKeys) or not len(others):
            return np.full(len(self), -1, dtype=np.int64)
        order = np.argsort(others.codes)
        at = np.minimum(np.searchsorted(others.codes[order], self.codes), len(order) - 1)
        return np.where(others.codes[order][at] == self.codes, order[at], -1)


def _by_value(inner: IntArray, values: FloatArray) -> IntArray:
    """Return int64 (n,), the order by inner key and then by value: np.lexsort in a sixth of its time."""
    order = np.argsort(values)
    # numpy sorts 16 bits by counting, and wider numbers several times as slowly.
    keys = inner.astype(np.uint16) if inner.max(initial=0) <= np.iinfo(np.uint16).max else inner
    by_value: IntArray = order[np.argsort(keys[order], kind="stable")]
    return by_value
