"""Spread: Pods that new samples have freed come back one after the other instead of all at once."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from typing import Any

from scheduler.framework.queued import QueuedEntity

_SEEDS = 2.0**64


class Spread:
    """Entities with the time at which they may come back; at most `max_per_s` do within any one second.

    The time is now plus a share of `spread_s` given by the hash of the Pod's UID: no chance, and the same on a
    replay. Of those that are due the first in the order of the active queue goes first.
    """

    def __init__(self, spread_s: float, max_per_s: int, sort_key: Callable[[QueuedEntity], tuple[Any, ...]]) -> None:
        self._spread_s = spread_s
        self._sort_key = sort_key
        self._due_s: dict[str, float] = {}
        self._later: list[tuple[float, tuple[Any, ...], str]] = []
        self._now: list[tuple[tuple[Any, ...], float, str]] = []
        self._released_s: deque[float] = deque(maxlen=max_per_s)

    def __contains__(self, uid: str) -> bool:
        return uid in self._due_s

    def __len__(self) -> int:
        return len(self._due_s)

    def add(self, entity: QueuedEntity, now_s: float) -> None:
        """Give an entity its time; one that has a time keeps it."""
        if entity.uid in self._due_s:
            return
        due_s = now_s + self._spread_s * (entity.pod.seed / _SEEDS)
        self._due_s[entity.uid] = due_s
        heapq.heappush(self._later, (due_s, self._sort_key(entity), entity.uid))

    def discard(self, uid: str) -> None:
        self._due_s.pop(uid, None)

    def release(self, now_s: float) -> str | None:
        """Take the UID of one entity whose time has come, None if there is none or the second is full."""
        while self._later and self._later[0][0] <= now_s:
            due_s, key, uid = heapq.heappop(self._later)
            heapq.heappush(self._now, (key, due_s, uid))
        while self._now and not self._is_full(now_s):
            _, due_s, uid = heapq.heappop(self._now)
            if self._due_s.get(uid) == due_s:
                del self._due_s[uid]
                self._released_s.append(now_s)
                return uid
        return None

    def next_deadline(self) -> float | None:
        """Return when `release` next has something, monotonic seconds; at worst too early."""
        if not self._due_s:
            return None
        due_s = self._now[0][1] if self._now else self._later[0][0]
        return max(due_s, self._released_s[0] + 1) if self._is_full(due_s) else due_s

    def _is_full(self, now_s: float) -> bool:
        return len(self._released_s) == self._released_s.maxlen and now_s - self._released_s[0] < 1
