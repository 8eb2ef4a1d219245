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
    longest_unanswered_s: float = 4.0
    """Where nothing answers nobody is overloaded by us, and what waits for its end waits no longer than this."""
    healthy_after_s: float = 120.0
    """After this long without a failure the delays start over."""


class Backoff:
    """Delays that double with each failure: delay · (1 + random), so never less than `first_s`."""

    def __init__(self, settings: BackoffSettings, clock: Callable[[], float], random: Callable[[], float]) -> None:
        self._settings = settings
        self._clock = clock
        self._random = random
        self._last_s: float | None = None
        self.start_over()

    def start_over(self) -> None:
        """Begin with short delays again: what failed is over."""
        self._delay_s = self._unanswered_s = self._settings.first_s

    def next_s(self, at_least_s: float = 0.0, is_answered: bool = True) -> float:
        """Return the delay after a failure now; `at_least_s` is what the server asked for (Retry-After).

        Delays without an answer are counted apart, and half of the longest of them is left to chance.
        """
        now, settings = self._clock(), self._settings
        if self._last_s is not None and now - self._last_s >= settings.healthy_after_s:
            self.start_over()
        if is_answered:
            delay = self._delay_s
            self._delay_s = min(delay * settings.factor, settings.longest_s)
        else:
            delay = self._unanswered_s
            longest_s = max(settings.longest_unanswered_s / 2.0, settings.first_s)
            self._unanswered_s = min(delay * settings.factor, longest_s)
        wait = min(delay * (1.0 + self._random()), settings.longest_s)
        if at_least_s > 0:
            # All clients were given the same second: come back a little later, each at another moment.
            wait = max(wait, at_least_s * (1.0 + 0.1 * self._random()))
        self._last_s = now + wait
        return wait


def retry_after_s(value: str | None) -> float:
    """Return a Retry-After header in seconds; 0 if absent or not a number, which API servers never send."""
    return float(value) if value is not None and value.strip().isdigit() else 0.0
