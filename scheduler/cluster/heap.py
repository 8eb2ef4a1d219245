"""KeyedHeap: a priority queue from which any entity can be taken by its UID."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import Any

from scheduler.framework.queued import QueuedEntity

_SLACK = 64


class KeyedHeap:
    """Entities in the order of `key`, equal keys in the order of arrival.

    Taking an entity out of the middle only unlinks it; what is left of it in the heap is skipped when it
    surfaces, and swept when more than half of the heap is such remains.
    """

    def __init__(self, key: Callable[[QueuedEntity], tuple[Any, ...]]) -> None:
        self._key = key
        self._heap: list[tuple[tuple[Any, ...], int, str]] = []
        self._live: dict[str, tuple[tuple[Any, ...], int, QueuedEntity]] = {}
        self._arrivals = 0

    def __len__(self) -> int:
        return len(self._live)

    def __contains__(self, uid: str) -> bool:
        return uid in self._live

    def __iter__(self) -> Iterator[QueuedEntity]:
        return iter([entity for _, _, entity in self._live.values()])

    def get(self, uid: str) -> QueuedEntity | None:
        found = self._live.get(uid)
        return None if found is None else found[2]

    def add(self, entity: QueuedEntity) -> None:
        """Add an entity, or put it where it belongs now; one whose key has not changed keeps its turn."""
        key = self._key(entity)
        known = self._live.get(entity.uid)
        if known is not None and known[0] == key:
            self._live[entity.uid] = (key, known[1], entity)
            return
        self._arrivals += 1
        self._live[entity.uid] = (key, self._arrivals, entity)
        heapq.heappush(self._heap, (key, self._arrivals, entity.uid))
        if len(self._heap) > 2 * len(self._live) + _SLACK:
            self._heap = [(key, arrival, entity.uid) for key, arrival, entity in self._live.values()]
            heapq.heapify(self._heap)

    def remove(self, uid: str) -> QueuedEntity | None:
        found = self._live.pop(uid, None)
        return None if found is None else found[2]

    def peek(self) -> QueuedEntity | None:
        """Return the first entity without taking it."""
        while self._heap:
            _, arrival, uid = self._heap[0]
            found = self._live.get(uid)
            if found is not None and found[1] == arrival:
                return found[2]
            heapq.heappop(self._heap)
        return None

    def pop(self) -> QueuedEntity | None:
        first = self.peek()
        if first is not None:
            heapq.heappop(self._heap)
            del self._live[first.uid]
        return first
