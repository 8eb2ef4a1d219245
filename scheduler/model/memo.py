"""Memo: what was derived from immutable columns, kept for the next cycles while those columns stand."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from operator import is_
from typing import Any, TypeVar

T = TypeVar("T")

_CAPACITY = 1_024

_Entry = tuple[tuple[object, ...], Any]


class Memo:
    """Results by key, each with the very objects it was made from; those not asked for lately are forgotten.

    A result depends on its key and sources only, so asking the memo or computing again is the same: `decide`
    stays pure. Sources are compared by identity and held, so that no other object can take their place.

    At most `capacity` results are kept, in two halves: what is asked for moves to the newer one, and once that is full
    the older one goes. So what many keys pass through never pushes out what each decision asks for, and a hit costs no
    reordering.
    """

    def __init__(self, capacity: int = _CAPACITY) -> None:
        self._half = max(capacity // 2, 1)
        self._newer: dict[Hashable, _Entry] = {}
        self._older: dict[Hashable, _Entry] = {}

    def __len__(self) -> int:
        return len(self._newer) + len(self._older)

    def known(self, key: Hashable, source: object) -> Any:
        """Return the result for `key` that was made from this one source, None if there is none: faster than `get`."""
        entry = self._newer.get(key) or self._moved(key)
        return entry[1] if entry is not None and entry[0][0] is source else None

    def get(self, key: Hashable, sources: tuple[object, ...], compute: Callable[[], T]) -> T:
        """Return the result for `key` and `sources`, computed now unless it is known."""
        entry = self._newer.get(key) or self._moved(key)
        if entry is not None:
            known = entry[0]
            # Without sources both are the one empty tuple.
            if known is sources or (len(known) == len(sources) and all(map(is_, known, sources))):
                result: T = entry[1]
                return result
        result = compute()
        self._put(key, (sources, result))
        return result

    def _moved(self, key: Hashable) -> _Entry | None:
        entry = self._older.pop(key, None)
        if entry is not None:
            self._put(key, entry)
        return entry

    def _put(self, key: Hashable, entry: _Entry) -> None:
        self._older.pop(key, None)
        self._newer[key] = entry
        if len(self._newer) >= self._half:
            self._older, self._newer = self._newer, {}
