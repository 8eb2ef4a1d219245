"""AwaitedObjects: which Pods wait in PreBind for which objects, and until when. A heap of times, no blocked thread."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Collection
from dataclasses import dataclass

from scheduler.model.catalog import ObjectKey

LOOK_EVERY_S = 1.0
"""Seconds after which a Pod is checked although nothing has changed, as in kube-scheduler."""


@dataclass(slots=True)
class _Wait:
    until_s: float
    keys: frozenset[ObjectKey] = frozenset()
    moment: int = 0


class AwaitedObjects:
    """Pods by UID, all times in monotonic seconds."""

    def __init__(self) -> None:
        self._waits: dict[str, _Wait] = {}
        self._waiting_for: dict[ObjectKey, set[str]] = {}
        # When, the number of the moment, and who; a Pod's moment that is not its latest is no longer due.
        self._moments: list[tuple[float, int, str]] = []
        self._numbers = itertools.count(1)

    def __contains__(self, uid: str) -> bool:
        return uid in self._waits

    def __len__(self) -> int:
        return len(self._waits)

    def add(self, uid: str, until_s: float) -> None:
        """Have a Pod wait, for what `watch` says."""
        self._waits[uid] = _Wait(until_s)

    def watch(self, uid: str, keys: Collection[ObjectKey], now_s: float) -> None:
        """Say what a waiting Pod waits for from now on, and when to look again at the latest."""
        wait = self._waits[uid]
        self._unlink(uid, wait)
        wait.keys = frozenset(keys)
        for key in wait.keys:
            self._waiting_for.setdefault(key, set()).add(uid)
        self._look_at(uid, wait, min(now_s + LOOK_EVERY_S, wait.until_s))

    def changed(self, key: ObjectKey, now_s: float) -> None:
        """Have the Pods checked that wait for an object."""
        for uid in self._waiting_for.get(key, ()):
            self._look_at(uid, self._waits[uid], now_s)

    def remove(self, uid: str) -> None:
        wait = self._waits.pop(uid, None)
        if wait is not None:
            self._unlink(uid, wait)

    def is_late(self, uid: str, now_s: float) -> bool:
        """Return whether a Pod has waited for as long as it may."""
        return now_s >= self._waits[uid].until_s

    def due(self, now_s: float) -> str | None:
        """Return a Pod that is to be looked at, once; None if there is none."""
        while self._moments and self._moments[0][0] <= now_s:
            _, number, uid = heapq.heappop(self._moments)
            wait = self._waits.get(uid)
            if wait is not None and wait.moment == number:
                return uid
        return None

    def next_moment(self) -> float | None:
        """Return when `due` may next find a Pod."""
        return self._moments[0][0] if self._moments else None

    def _look_at(self, uid: str, wait: _Wait, at_s: float) -> None:
        wait.moment = next(self._numbers)
        heapq.heappush(self._moments, (at_s, wait.moment, uid))

    def _unlink(self, uid: str, wait: _Wait) -> None:
        for key in wait.keys:
            waiting = self._waiting_for[key]
            waiting.discard(uid)
            if not waiting:
                del self._waiting_for[key]
