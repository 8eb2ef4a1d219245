"""Backoff: how long a refused or failed Pod waits before it may be tried again.

Source: kube-scheduler v1.37 backend/queue/backoff_queue.go (behaviour).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

from scheduler.cluster.heap import KeyedHeap
from scheduler.framework.queued import QueuedEntity

_MAX_DOUBLINGS = 62


@dataclass(frozen=True, slots=True)
class Timings:
    """The queue's times in seconds; all but the last two are kube-scheduler's.

    initial_backoff_s, max_backoff_s
        1, 2, 4, 8, 10, 10 … after each failure in a row; a maximum of 0 switches backoff off.
    max_unschedulable_s, flush_interval_s
        A Pod that no event has moved for so long is tried again; looked for at this interval.
    signal_spread_s
        Pods that new samples may have freed come back spread over this time, by a hash of their UID. It stays
        below the 2 s within which a freed Pod has to be tried.
    max_activations_per_s
        No more than so many of them come back within any one second, the most urgent of those due first:
        5,000 Pods freed at once take 28 s instead of burying the new arrivals. The API server is asked for no more
        than 200 binds in any one second then, though some of them are held up on their way.
    """

    initial_backoff_s: float = 1.0
    max_backoff_s: float = 10.0
    max_unschedulable_s: float = 300.0
    flush_interval_s: float = 30.0
    signal_spread_s: float = 1.0
    max_activations_per_s: int = 180


DEFAULT_TIMINGS = Timings()


class BackoffQueue:
    """Entities that wait out their backoff: refused ones, which may be popped early, and failed ones.

    Ends of backoff are whole seconds. Within one second refused entities stand in the order of the active queue,
    and one whose second has come still waits until that second is over, so that whole seconds move together.
    """

    def __init__(self, timings: Timings, sort_key: Callable[[QueuedEntity], tuple[Any, ...]]) -> None:
        self._timings = timings
        self._refused = KeyedHeap(lambda entity: (self.expiry_s(entity), *sort_key(entity)))
        self._failed = KeyedHeap(lambda entity: (self.expiry_s(entity),))

    def __len__(self) -> int:
        return len(self._refused) + len(self._failed)

    def __iter__(self) -> Iterator[QueuedEntity]:
        return chain(self._refused, self._failed)

    def duration_s(self, entity: QueuedEntity) -> float:
        """Return the backoff after the last failure; more than one member raises the maximum by the root."""
        count = entity.consecutive_errors or entity.unschedulable_count
        if count == 0 or self._timings.max_backoff_s == 0:
            return 0.0
        longest = self._timings.max_backoff_s * math.sqrt(len(entity.members))
        return min(longest, self._timings.initial_backoff_s * 2.0 ** min(count - 1, _MAX_DOUBLINGS))

    def expiry_s(self, entity: QueuedEntity) -> float:
        """Return the whole second in which its backoff ends, -inf if it has none."""
        duration_s = self.duration_s(entity)
        return float(math.floor(entity.timestamp_s + duration_s)) if duration_s > 0 else -math.inf

    def is_waiting(self, entity: QueuedEntity, now_s: float) -> bool:
        return self.expiry_s(entity) >= math.floor(now_s)

    def add(self, entity: QueuedEntity) -> None:
        """Add an entity, or put it where it belongs now; one that no plugin has refused had failed by an error."""
        (self._refused if entity.rejected_by else self._failed).add(entity)

    def get(self, uid: str) -> QueuedEntity | None:
        return self._refused.get(uid) or self._failed.get(uid)

    def is_error(self, uid: str) -> bool:
        return uid in self._failed

    def remove(self, uid: str) -> QueuedEntity | None:
        return self._refused.remove(uid) or self._failed.remove(uid)

    def refused(self) -> Iterator[QueuedEntity]:
        return iter(self._refused)

    def pop_early(self) -> QueuedEntity | None:
        """Take the refused entity that is next, backoff over or not; failed ones wait until theirs is over."""
        return self._refused.pop()

    def pop_completed(self, now_s: float) -> list[QueuedEntity]:
        """Take all whose backoff ended in an earlier second than this one."""
        completed: list[QueuedEntity] = []
        for heap in (self._refused, self._failed):
            while (first := heap.peek()) is not None and not self.is_waiting(first, now_s):
                heap.pop()
                completed.append(first)
        return completed

    def next_deadline(self) -> float | None:
        """Return when `pop_completed` next has something, monotonic seconds."""
        firsts = (self._refused.peek(), self._failed.peek())
        ends = [self.expiry_s(first) + 1 for first in firsts if first is not None]
        return min(ends, default=None)

    @property
    def has_early(self) -> bool:
        """Whether `pop_early` would find one."""
        return len(self._refused) > 0
