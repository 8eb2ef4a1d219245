"""All that a ClusterState holds, down to the bits of its columns, to be compared before and after a trial.

Found by looking into the objects, so that a new column or index is compared without being named here.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import msgspec
import numpy as np

from scheduler.framework.pod_groups import PodGroups
from scheduler.framework.usage_by_priority import RequestedByRow
from scheduler.model.pods import PodInfo
from scheduler.model.state import ClusterState
from scheduler.plugins.inter_pod_affinity.carried_terms import Answer
from scheduler.plugins.inter_pod_affinity.term_table import TermTable
from scheduler.rules.compiled import CompiledRules
from scheduler.rules.pending_load import PodTimes

COUNTERS = frozenset({"epoch", "generation", "row_generation", "_generation", "version"})
"""These count changes, those of trials too, and never go back."""

LIMITS = frozenset({"_capacity", "_width"})
"""How much is kept, or has room: says nothing of what is there."""

SAMPLES = frozenset({"sample"})
"""One of several Pods that are alike in all that is asked."""

_LEFT_OUT = COUNTERS | LIMITS | SAMPLES

KEPT_ANSWERS = frozenset({"memo", "row_memo"})
"""Whoever asks first adds to these; what was kept before must still be there."""


_SLOTS: dict[type, list[str]] = {}
_PLAIN = frozenset({type(None), bool, int, float, str, bytes})


class _Same:
    """An object that nobody changes, equal to itself alone."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)

    def __repr__(self) -> str:
        return repr(self.value)[:200]


def contents(state: ClusterState) -> dict[str, Any]:
    """Return by path ("nodes.requested", "HostPorts._ports", "memo") what is held there, comparable by `==`.

    Columns of NodeTable are taken as they are. Those of indexes have room for more rows at times, and tables that
    follow the catalog keep a column for what was there once: zeros at the end, and columns of zeros, are left out.
    Pods have an order on their node and in no index.
    """
    found: dict[str, Any] = {}
    for prefix, owner in _owners(state):
        reader = _Reader(is_index=owner in state.indexes, follows=prefix.startswith("derived."))
        for name, value in _attributes(owner):
            if prefix + name not in ("nodes", "nodes.room", "indexes", "catalog", "catalog._derived"):
                found[prefix + name] = reader.bits(value)
    return found


def differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, str]:
    """Return where the two differ and how, by path."""
    found = {}
    for path in sorted(before.keys() | after.keys()):
        old, new = before.get(path), after.get(path)
        if path in KEPT_ANSWERS and old is not None and new is not None:
            old, new = _kept(old), _kept(new)
            new = {key: new.get(key) for key in old}
        if old != new:
            found[path] = _difference(old, new)
    return found


def _kept(memo: Mapping[str, Any]) -> dict[Hashable, Any]:
    """Return all answers by key, whichever part of a memo they stand in."""
    return {key: answer for part in memo.values() if isinstance(part, dict) for key, answer in part.items()}


def _owners(state: ClusterState) -> Iterator[tuple[str, object]]:
    """Yield what has columns, and how its paths begin."""
    yield "", state
    yield "nodes.", state.nodes
    yield "nodes.room.", state.nodes.room
    yield "catalog.", state.catalog
    for index in state.indexes:
        yield f"{type(index).__name__}.", index
    for table in dict(_attributes(state.catalog))["_derived"].values():
        yield f"derived.{type(table).__name__}.", table


def _attributes(owner: object) -> Iterator[tuple[str, Any]]:
    for name in (*_slots(type(owner)), *getattr(owner, "__dict__", ())):
        if name not in _LEFT_OUT:
            yield name, getattr(owner, name)


def _slots(kind: type) -> list[str]:
    if kind not in _SLOTS:
        _SLOTS[kind] = [name for one in kind.__mro__ for name in getattr(one, "__slots__", ())]
    return _SLOTS[kind]


class _Reader:
    """Turns values into what `==` may compare; a dict has an order only where it is that of Pods."""

    def __init__(self, *, is_index: bool, follows: bool) -> None:
        self._has_room = self._is_unordered = is_index or follows
        self._follows = follows
        self._seen: dict[int, Any] = {}

    def bits(self, value: Any) -> Any:
        if type(value) in _PLAIN or (type(value) is tuple and _PLAIN.issuperset(map(type, value))):
            return value
        if isinstance(value, np.ndarray):
            return self._column(value)
        # What rules were compiled to remembers results for itself; that those are not of the past is shown elsewhere.
        if isinstance(value, PodInfo | msgspec.Struct | CompiledRules) or callable(value):
            return _Same(value)
        # An index may reach one object in many ways.
        if id(value) not in self._seen:
            self._seen[id(value)] = self._within(value)
        return self._seen[id(value)]

    def _column(self, value: np.ndarray) -> Any:
        if self._has_room:
            used = np.flatnonzero(value.any(axis=tuple(range(value.ndim - 1))))
            value = value[..., : used[-1] + 1 if len(used) else 0]
        return value.dtype.str, value.shape, value.tobytes()

    def _is_void(self, value: Any) -> bool:
        return self._follows and isinstance(value, np.ndarray) and not value.any()

    def _within(self, value: Any) -> Any:
        if isinstance(value, PodTimes | PodGroups | TermTable | Answer):
            # In which slot a Pod, group or term stands says nothing, nor do columns of nothing.
            return self._within(value.entries())
        if isinstance(value, RequestedByRow):
            # Whether it is kept as a dict or as a column depends on how much there was.
            return value.n_asking, value.entries()
        if isinstance(value, Mapping):
            held: dict[Hashable, Any] = {key: self.bits(one) for key, one in value.items() if not self._is_void(one)}
            is_ordered = not self._is_unordered and any(isinstance(one, PodInfo) for one in value.values())
            return tuple(held.items()) if is_ordered else held
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            named = zip(value._fields, value, strict=True)
            return {name: self.bits(one) for name, one in named if name not in COUNTERS}
        if isinstance(value, list | tuple):
            return [self.bits(one) for one in value]
        if isinstance(value, set | frozenset):
            return frozenset(value)
        return {name: self.bits(one) for name, one in _attributes(value)} or _Same(value)


def _difference(old: Any, new: Any) -> str:
    """Return the first place where the two differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        missing = object()
        for key in (*old, *new):
            one, other = old.get(key, missing), new.get(key, missing)
            if one is missing or other is missing:
                return f"[{key!r}] has {'come' if one is missing else 'gone'}"
            if one != other:
                return f"[{key!r}]{_difference(one, other)}"
    if isinstance(old, tuple) and isinstance(new, tuple) and isinstance(old[-1], bytes) and old[:2] == new[:2]:
        one, other = (np.frombuffer(bits, dtype=old[0]).reshape(old[1]) for bits in (old[-1], new[-1]))
        where = np.argwhere(one != other)[0].tolist()
        return f"{where}: {one[tuple(where)]} became {other[tuple(where)]}"
    return f": {old!r:.300} became {new!r:.300}"
