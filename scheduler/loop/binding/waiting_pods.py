"""WaitingPods: which Pods wait at Permit, for which plugins and until when. A heap of deadlines, no blocked thread."""

from __future__ import annotations

import heapq
from collections.abc import Mapping

Deadline = tuple[float, str, str, float]
"""When (monotonic seconds), which Pod (UID), which plugin, after how long a wait (seconds)."""


class WaitingPods:
    """Pods by UID; each leaves when every plugin that has it waiting has let it go, or when it is removed."""

    def __init__(self) -> None:
        self._plugins: dict[str, set[str]] = {}
        self._deadlines: list[Deadline] = []

    def __contains__(self, uid: str) -> bool:
        return uid in self._plugins

    def __len__(self) -> int:
        return len(self._plugins)

    def add(self, uid: str, timeouts_s: Mapping[str, float], now_s: float) -> None:
        """Have a Pod wait for each of these plugins, for its timeout at most."""
        self._plugins[uid] = set(timeouts_s)
        for plugin, timeout_s in timeouts_s.items():
            heapq.heappush(self._deadlines, (now_s + timeout_s, uid, plugin, timeout_s))

    def plugins(self, uid: str) -> frozenset[str]:
        """Return the plugins that a Pod still waits for."""
        return frozenset(self._plugins.get(uid, ()))

    def allow(self, uid: str, plugin: str) -> bool:
        """Note that one plugin allows the Pod; return whether it was the last (the Pod has left then)."""
        plugins = self._plugins.get(uid)
        if plugins is None:
            return False
        plugins.discard(plugin)
        if plugins:
            return False
        del self._plugins[uid]
        return True

    def remove(self, uid: str) -> None:
        self._plugins.pop(uid, None)

    def expired(self, now_s: float) -> tuple[str, str, float] | None:
        """Return a Pod that has waited too long, the plugin and its timeout in seconds; None if there is none."""
        while self._deadlines and self._deadlines[0][0] <= now_s:
            _, uid, plugin, timeout_s = heapq.heappop(self._deadlines)
            if plugin in self._plugins.get(uid, ()):
                return uid, plugin, timeout_s
        return None

    def next_deadline(self) -> float | None:
        """Return when `expired` may next find a Pod, in monotonic seconds."""
        return self._deadlines[0][0] if self._deadlines else None
