"""The settings of an election: names, times, and the observer that it reports to."""

from __future__ import annotations

import socket
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from random import SystemRandom
from typing import Protocol

from scheduler.kube.binder.messages import LeaseUntil
from scheduler.kube.election.roll_call import RollCall
from scheduler.kube.election.standby import JITTER


@dataclass(frozen=True, slots=True)
class ElectionSettings:
    """Names and times of the election; the defaults are kube-scheduler's but for the name.

    Others take the lease `lease_duration_s` after they last saw it renewed. The leader renews it every
    `retry_period_s`, and gives it up if it could not for `renew_deadline_s`, counted from when it began to send the
    last renewal that was answered.
    """

    lease_duration_s: float = 15.0
    renew_deadline_s: float = 10.0
    retry_period_s: float = 2.0
    name: str = "vane"
    namespace: str = "kube-system"

    def __post_init__(self) -> None:
        if not self.lease_duration_s > self.renew_deadline_s > JITTER * self.retry_period_s > 0:
            raise ValueError(
                "a lease duration must be longer than the renew deadline, and that longer than 1.2 retry periods: "
                f"{self.lease_duration_s:g}, {self.renew_deadline_s:g}, {self.retry_period_s:g} s"
            )


class ElectionObserver(Protocol):
    """What the election reports, from threads of its own; none of it may block or take long."""

    def on_term(self, term: LeaseUntil) -> None:
        """The lease is ours until then: once when it was taken, and again after each renewal."""

    def on_leading(self, roll_call: RollCall) -> None:
        """We lead, and know which Pods are pending; once, after the first `on_term`."""

    def on_lost(self, reason: str) -> None:
        """We led and have lost the lease, so the process must end; once."""


@dataclass(frozen=True, slots=True)
class Times:
    """Clocks and random numbers; `clock` in monotonic seconds, `now_ns` the wall clock in nanoseconds since 1970."""

    clock: Callable[[], float] = time.monotonic
    now_ns: Callable[[], int] = time.time_ns
    random: Callable[[], float] = SystemRandom().random


REAL_TIMES = Times()


def new_identity() -> str:
    """Return a replica's name, another for each start of it: `hostname_uuid`, as kube-scheduler's."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"
