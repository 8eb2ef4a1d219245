"""WakeTimes: entities that wait for a moment besides events."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator


class WakeTimes:
    """UIDs with the moment, in monotonic seconds, at which each is to be tried again."""

    def __init__(self) -> None:
        self._due_s: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []

    def set(self, uid: str, due_s: float) -> None:
        """Give an entity its moment, in place of any that it had; inf: none."""
        self.discard(uid)
        if due_s < math.inf:
            self._due_s[uid] = due_s
            heapq.heappush(self._heap, (due_s, uid))

    def discard(self, uid: str) -> None:
        self._due_s.pop(uid, None)
        if len(self._heap) > 2 * len(self._due_s) + 64:
            self._heap = [(due_s, uid) for uid, due_s in self._due_s.items()]
            heapq.heapify(self._heap)

    def pop_due(self, now_s: float) -> Iterator[str]:
        """Take the UIDs whose moment has come, the earliest first."""
        while self._heap and self._heap[0][0] <= now_s:
            due_s, uid = heapq.heappop(self._heap)
            if self._due_s.get(uid) == due_s:
                del self._due_s[uid]
                yield uid

    def next_deadline(self) -> float | None:
        """Return when `pop_due` next has something, at worst too early; None for never."""
        return self._heap[0][0] if self._due_s else None
