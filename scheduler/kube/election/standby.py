"""What a replica that does not lead knows of the Lease, and what it does next. No network, no thread, no clock."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from scheduler.kube.election.lease import Lease

JITTER = 1.2
"""client-go's JitterFactor: what failed is tried again after one period to 2.2 of them."""

_QUIET_PERIODS = 2.0
_CONFLICTS_AT_ONCE = 3


@dataclass(frozen=True, slots=True)
class WaitForLease:
    """Nothing to do for this many seconds, unless the watch tells of the Lease."""

    seconds: float


@dataclass(frozen=True, slots=True)
class GetLease:
    """Get the Lease."""


@dataclass(frozen=True, slots=True)
class TakeLease:
    """Make the Lease ours as it was in `lease`; None: there is none, create it."""

    lease: Lease | None


Step = WaitForLease | GetLease | TakeLease


class StandBy:
    """Times the Lease by when *we* saw it change, never by the times that stand in it.

    It is free when it names no holder, when it names us (the answer to an earlier try was lost), when there is none,
    and when it has not changed for as long as its holder wrote into it. Deleting it releases nobody: its last holder
    does not know of that yet, and has the time it had.

    A watch tells of every change at once. Where nothing was heard from it for two periods, although leaders renew in
    every one, it is taken for broken, and the Lease is asked for in every period.
    """

    def __init__(self, identity: str, duration_s: float, period_s: float, random: Callable[[], float]) -> None:
        self._identity = identity
        self._duration_s = duration_s
        self._period_s = period_s
        self._random = random
        self._lease: Lease | None = None
        self._is_known = False
        self._free_at_s = -math.inf
        self._take_at_s = -math.inf
        self._ask_at_s = -math.inf
        self._heard_s = -math.inf
        self._n_conflicts = 0

    @property
    def holder(self) -> str:
        """The holder of the Lease, as last seen; "" for none."""
        return self._lease.holder if self._lease is not None else ""

    def saw(self, lease: Lease | None, now_s: float) -> None:
        """Take over what an answer showed; None: there is no Lease."""
        self._ask_at_s = now_s + self._pause_s()
        self._note(lease, now_s)

    def watched(self, lease: Lease | None, now_s: float) -> None:
        """Take over what the watch showed, unless an answer has shown something newer."""
        self._heard_s = now_s
        if lease is None or self._lease is None or not _is_older(lease, self._lease):
            self._note(lease, now_s)

    def ask_failed(self, now_s: float) -> None:
        self._ask_at_s = now_s + self._pause_s()

    def take_failed(self, now_s: float) -> None:
        """Nothing, or no good answer, came to an attempt to take the Lease."""
        self._take_at_s = now_s + self._pause_s()

    def conflicted(self, now_s: float) -> None:
        """The Lease had changed: ask at once, but after three conflicts in a row wait a period."""
        self._is_known = False
        self._ask_at_s = now_s
        self._n_conflicts += 1
        if self._n_conflicts >= _CONFLICTS_AT_ONCE:
            self._n_conflicts = 0
            self.take_failed(now_s)

    def next(self, now_s: float) -> Step:
        ask_at_s = self._ask_at_s
        take_at_s = math.inf
        if self._is_known:
            ask_at_s = max(ask_at_s, self._heard_s + _QUIET_PERIODS * self._period_s)
            take_at_s = max(self._free_at_s, self._take_at_s)
        if now_s >= take_at_s:
            return TakeLease(self._lease)
        if now_s >= ask_at_s:
            return GetLease()
        return WaitForLease(min(ask_at_s, take_at_s) - now_s)

    def _note(self, lease: Lease | None, now_s: float) -> None:
        if lease is not None and not lease.is_same_as(self._lease):
            self._n_conflicts = 0
            is_held = lease.holder not in ("", self._identity)
            self._free_at_s = now_s + (lease.duration_s or self._duration_s) if is_held else -math.inf
        self._lease = lease
        self._is_known = True

    def _pause_s(self) -> float:
        return self._period_s * (1.0 + JITTER * self._random())


def _is_older(lease: Lease, other: Lease) -> bool:
    """Whether one state came before another; unknown, and so False, where the API server's versions are no numbers."""
    one, two = lease.metadata.resource_version, other.metadata.resource_version
    return one.isdecimal() and two.isdecimal() and int(one) < int(two)
