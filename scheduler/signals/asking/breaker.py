"""A circuit breaker: after some failures in a row, one attempt at growing distances instead of all."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Final

_FAILURES: Final = 3
"""So many in a row open it."""
_MIN_SHARE: Final = 0.5


class Breaker:
    """Closed, open or trying; threads may share it.

    Parameters
    ----------
    first_s, cap_s
        The first and the longest pause; each failed attempt doubles it. A pause is drawn between half and all of
        that, so that many instances do not come back in step.
    chance
        Returns a number in [0, 1).
    """

    def __init__(
        self,
        clock: Callable[[], float],
        first_s: float = 1.0,
        cap_s: float = 15.0,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._clock = clock
        self._first_s = first_s
        self._cap_s = cap_s
        self._chance = chance
        self._lock = threading.Lock()
        self._n_failures = 0
        self._closed_until_s = 0.0
        self._is_trying = False

    def limit(self, cap_s: float) -> None:
        """Make no pause longer than this, in seconds, from the next one on."""
        with self._lock:
            self._cap_s = cap_s

    @property
    def is_open(self) -> bool:
        return self._n_failures >= _FAILURES

    @property
    def next_s(self) -> float:
        """When the next attempt is due, by the clock; in the past while closed."""
        return self._closed_until_s

    def allows(self) -> bool:
        """Whether to go ahead; while open, True means that the caller is the one attempt of this pause."""
        with self._lock:
            if not self.is_open:
                return True
            if self._is_trying or self._clock() < self._closed_until_s:
                return False
            self._is_trying = True
            return True

    def withdraw(self) -> None:
        """Give back what `allows` allowed: nothing was attempted."""
        with self._lock:
            self._is_trying = False

    def succeeded(self) -> bool:
        """Close; return whether it was open."""
        with self._lock:
            was_open = self.is_open
            self._n_failures = 0
            self._is_trying = False
            return was_open

    def failed(self) -> bool:
        """Count a failure; return whether this one opened it."""
        with self._lock:
            self._n_failures += 1
            self._is_trying = False
            if not self.is_open:
                return False
            exponent = min(self._n_failures - _FAILURES, 30)
            pause_s = min(self._first_s * 2.0**exponent, self._cap_s)
            share = _MIN_SHARE + (1.0 - _MIN_SHARE) * self._chance()
            self._closed_until_s = self._clock() + pause_s * share
            return self._n_failures == _FAILURES
