"""GarbageCollection: full collections run while no Pod waits, so that no cycle stalls for one.

A full collection goes through all objects that have come since the last freeze: tens of milliseconds where thousands of
Pods are new. What is frozen is not looked at again; it is freed as ever when the last reference to it goes. So the
first lists are frozen as they come, and the collector runs beside them: where a kind may not be listed, they never end.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable
from typing import Final

_FROZEN_AT_ONCE: Final = 2_000
"""Listed objects between two freezes: the collector goes through those of one at most, in a few milliseconds."""
_QUIET_S: Final = 2.0
_APART_S: Final = 60.0
# The usual two for young objects; a full collection by itself only where no moment is quiet for very long.
_THRESHOLDS: Final = (700, 10, 1_000)


def collect_and_freeze() -> None:
    gc.collect()
    gc.freeze()


class GarbageCollection:
    """Owned by the deciding thread."""

    def __init__(
        self, collect: Callable[[], None] = collect_and_freeze, freeze: Callable[[], None] = gc.freeze
    ) -> None:
        self._collect = collect
        self._freeze = freeze
        self._n_listed = 0
        self._settled_s = math.inf
        self._busy_s = -math.inf
        self._has_been_busy = False

    def start(self) -> None:
        """Let the collector run, and exclude what has been imported from collection."""
        gc.set_threshold(*_THRESHOLDS)
        self._freeze()
        gc.enable()

    def listed(self, n_objects: int) -> None:
        """Exclude what the first lists bring from collection; none of it is garbage yet."""
        self._n_listed += n_objects
        if math.isinf(self._settled_s) and self._n_listed >= _FROZEN_AT_ONCE:
            self._n_listed = 0
            self._freeze()

    def begin(self, now_s: float) -> None:
        """Collect for the first time: all lists are there."""
        self._settle(now_s)

    def busy(self, now_s: float) -> None:
        """Note that a Pod was decided."""
        self._busy_s, self._has_been_busy = now_s, True

    def idle(self, now_s: float) -> None:
        """Collect and freeze if it has been quiet for a while, and there was something to do since the last time."""
        is_quiet = now_s - self._busy_s >= _QUIET_S and now_s - self._settled_s >= _APART_S
        if is_quiet and self._has_been_busy:
            self._settle(now_s)

    def _settle(self, now_s: float) -> None:
        self._collect()
        self._settled_s, self._has_been_busy = now_s, False
