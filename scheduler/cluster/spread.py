"""Spread: Pods that new samples have freed come back one after the other instead of all at once, behind what is new."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from scheduler.framework.queued import QueuedEntity

_SEEDS: Final = 2.0**64
_MANY_AHEAD: Final = 10
"""A quarter of the binds that are sent at once, so that new Pods find a free place among them, and not many ahead."""
_APART_S: Final = 0.05
"""How far apart they come while there are many ahead: then, too, none waits for ever."""


class Spread:
    """Entities with the time at which they may come back; at most `max_per_s` do within any one second.

    The time is now plus a share of `spread_s` given by the hash of the Pod's UID: no chance, and the same on a
    replay. Of those that are due the first in the order of the active queue goes first. Where the API server cannot
    keep up, or others are waiting already, they come no faster than one in 50 ms: a wave must not become a queue in
    which new Pods wait.
    """

    def __init__(self, spread_s: float, max_per_s: int, sort_key: Callable[[QueuedEntity], tuple[Any, ...]]) -> None:
        self._spread_s = spread_s
        self._sort_key = sort_key
        self._due_s: dict[str, float] = {}
        self._later: list[tuple[float, tuple[Any, ...], str]] = []
        self._now: list[tuple[tuple[Any, ...], float, str]] = []
        self._released_s: deque[float] = deque(maxlen=max_per_s)
        self._are_many_ahead = False

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

    def release(self, now_s: float, n_ahead: int) -> str | None:
        """Take the UID of one entity whose time has come, None if there is none or it would be too many.

        `n_ahead` Pods are to be tried before it, or their binds are under way.
        """
        self._are_many_ahead = n_ahead >= _MANY_AHEAD
        while self._later and self._later[0][0] <= now_s:
            due_s, key, uid = heapq.heappop(self._later)
            heapq.heappush(self._now, (key, due_s, uid))
        while self._now and now_s >= self._free_s():
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
        return max(due_s, self._free_s())

    def _free_s(self) -> float:
        """Return when the next may come back."""
        released_s = self._released_s
        free_s = released_s[0] + 1 if len(released_s) == released_s.maxlen else float("-inf")
        return max(free_s, released_s[-1] + _APART_S) if self._are_many_ahead and released_s else free_s
