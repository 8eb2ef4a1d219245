"""Backoff: how long to wait before the next try of a request to the API server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BackoffSettings:
    """Seconds. The defaults are client-go's for reflectors: relisting replicas spread over the doubled delay."""

    first_s: float = 0.8
    factor: float = 2.0
    longest_s: float = 30.0
    healthy_after_s: float = 120.0
    """After this long without a failure the delays start over."""


class Backoff:
    """Delays that double with each failure: delay · (1 + random), so never less than `first_s`."""

    def __init__(self, settings: BackoffSettings, clock: Callable[[], float], random: Callable[[], float]) -> None:
        self._settings = settings
        self._clock = clock
        self._random = random
        self._delay_s = settings.first_s
        self._last_s: float | None = None

    def next_s(self, at_least_s: float = 0.0) -> float:
        """Return the delay after a failure now; `at_least_s` is what the server asked for (Retry-After)."""
        now = self._clock()
        if self._last_s is not None and now - self._last_s >= self._settings.healthy_after_s:
            self._delay_s = self._settings.first_s
        delay = self._delay_s
        self._delay_s = min(delay * self._settings.factor, self._settings.longest_s)
        wait = min(delay * (1.0 + self._random()), self._settings.longest_s)
        if at_least_s > 0:
            # All clients were given the same second: come back a little later, each at another moment.
            wait = max(wait, at_least_s * (1.0 + 0.1 * self._random()))
        self._last_s = now + wait
        return wait


def retry_after_s(value: str | None) -> float:
    """Return a Retry-After header in seconds; 0 if absent or not a number, which API servers never send."""
    return float(value) if value is not None and value.strip().isdigit() else 0.0
