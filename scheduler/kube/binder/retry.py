"""When the binder process tries a request again: upstream's retry.DefaultBackoff, and Retry-After as client-go."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from scheduler.kube.binder.http import ApiAnswer, NoAnswerError

T = TypeVar("T")

Sleep = Callable[[float], Awaitable[object]]

_DELAYS_S = (0.010, 0.050, 0.250)
_JITTER = 0.1
_MAX_TOLD_TO_WAIT = 10
_LONGEST_TOLD_S = 60.0
_RETRIABLE = frozenset({500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Chance:
    """Sleep and random numbers, handed in."""

    sleep: Sleep
    random: Callable[[], float]


class Tries:
    """The tries of one request. `again` sleeps and says whether there is another one."""

    def __init__(self, chance: Chance, retry_conflict: bool = False) -> None:
        self._chance = chance
        self._retriable = _RETRIABLE | {409} if retry_conflict else _RETRIABLE
        self._n_failed = 0
        self._n_told = 0

    async def again(self, failure: ApiAnswer | NoAnswerError, conflict: bool = False) -> bool:
        """Return False where the failure is final, else wait as long as it asks for and return True."""
        delay = self._delay_s(failure, conflict)
        if delay is None:
            return False
        await self._chance.sleep(delay)
        return True

    def _delay_s(self, failure: ApiAnswer | NoAnswerError, conflict: bool) -> float | None:
        if isinstance(failure, ApiAnswer):
            if failure.code == 429 or (failure.code >= 500 and failure.retry_after_s > 0):
                return self._told_s(failure.retry_after_s)
            if failure.code not in self._retriable and not conflict:
                return None
        if self._n_failed == len(_DELAYS_S):
            return None
        delay = _DELAYS_S[self._n_failed]
        self._n_failed += 1
        return delay * (1.0 + _JITTER * self._chance.random())

    def _told_s(self, retry_after_s: float) -> float | None:
        if self._n_told == _MAX_TOLD_TO_WAIT:
            return None
        self._n_told += 1
        # Never before the second named; a little spread after it, so that 64 connections don't return as one.
        return min(retry_after_s or 1.0, _LONGEST_TOLD_S) * (1.0 + _JITTER * self._chance.random())
