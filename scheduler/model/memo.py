"""Memo: what was derived from immutable columns, kept for the next cycles while those columns stand."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from operator import is_
from typing import Any, TypeVar

T = TypeVar("T")

_CAPACITY = 1_024


class Memo:
    """Results by key, each with the very objects it was made from.

    A result depends on its key and sources only, so asking the memo or computing again is the same: `decide`
    stays pure. Sources are compared by identity and held, so that no other object can take their place.
    """

    def __init__(self, capacity: int = _CAPACITY) -> None:
        self._capacity = capacity
        self._entries: dict[Hashable, tuple[tuple[object, ...], Any]] = {}

    def known(self, key: Hashable) -> Any:
        """Return the result for `key` that has no sources, None if it was not asked for yet: `get` in half the time."""
        entry = self._entries.get(key)
        return entry[1] if entry is not None and not entry[0] else None

    def get(self, key: Hashable, sources: tuple[object, ...], compute: Callable[[], T]) -> T:
        """Return the result for `key` and `sources`, computed now unless it is known."""
        entry = self._entries.get(key)
        if entry is not None:
            known = entry[0]
            # Without sources both are the one empty tuple.
            if known is sources or (len(known) == len(sources) and all(map(is_, known, sources))):
                result: T = entry[1]
                return result
        result = compute()
        self._entries[key] = (sources, result)
        if len(self._entries) > self._capacity:
            del self._entries[next(iter(self._entries))]
        return result
