"""Fence: keeps the binder process from writing once another replica may hold the lease."""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Callable
from typing import Protocol

from scheduler.kube.binder.messages import LeaseUntil

EXIT_CODE = 128 + signal.SIGALRM
"""With which the process ends if the lease is found to have ended; the kernel's end of it is the signal itself."""

_LATE_S = 0.001
"""By how much reading two clocks one after the other may differ without the timer being armed again."""


class Timer(Protocol):
    """The kernel's timer that ends this process; seconds."""

    def arm(self, seconds: float) -> None: ...

    def left_s(self) -> float: ...


class AlarmTimer:
    """ITIMER_REAL, with SIGALRM at its default action: the kernel ends the process, whatever it is doing."""

    def __init__(self) -> None:
        # Both are inherited through exec, and a SIGALRM that is ignored or blocked would end nothing.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})

    def arm(self, seconds: float) -> None:
        signal.setitimer(signal.ITIMER_REAL, seconds)

    def left_s(self) -> float:
        return signal.getitimer(signal.ITIMER_REAL)[0]


class Fence:
    """Two moments, in monotonic seconds: no bind and no patch begins after `not_after`, at `ends_at` the process ends.

    The first is looked at before each request. That alone is no fence: a process that is stopped (SIGSTOP, a frozen
    cgroup, a starved machine) between the look and the send goes on with the send whenever it is woken. So the second
    is the kernel's to keep: a timer whose SIGALRM, at its default action, terminates. A signal that became pending
    while the process was stopped is delivered before it runs another instruction, so nothing at all happens after
    `ends_at`. Sockets are set to be reset when closed (`connections.fenced_socket`): what the kernel still holds unsent
    does not outlive the process either.

    The timer counts from when it is armed, and the process may have been stopped just before that. So what is left is
    compared with the clock afterwards: a timer that would ring too late is armed again, and an end that has passed is
    made true at once.

    Without leader election no term ever comes, and both moments are never.
    """

    def __init__(
        self,
        timer: Timer,
        clock: Callable[[], float] = time.monotonic,
        exit_now: Callable[[int], object] = os._exit,
    ) -> None:
        self._timer = timer
        self._clock = clock
        self._exit_now = exit_now
        self._ends_at = math.inf
        self.not_after = math.inf

    @property
    def is_closed(self) -> bool:
        """Whether no bind and no patch may begin now."""
        return self._clock() >= self.not_after

    @property
    def left_s(self) -> float:
        """Seconds until no request may begin; zero or negative after that."""
        return self.not_after - self._clock()

    def extend(self, term: LeaseUntil) -> None:
        """Take a term over; one that is in force already costs a comparison."""
        self.not_after = term.not_after
        if term.ends_at == self._ends_at:
            return
        self._ends_at = term.ends_at
        while (left_s := term.ends_at - self._clock()) > 0:
            self._timer.arm(left_s)
            # The timer is read first, so that a stop between the two makes it look late and never early.
            if self._timer.left_s() + self._clock() <= term.ends_at + _LATE_S:
                return
        self._exit_now(EXIT_CODE)
