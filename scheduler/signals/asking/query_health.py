"""The health of a signal's queries: what only the process that asks knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from scheduler.model.rules import Signal
from scheduler.signals.answers import SignalAnswer
from scheduler.signals.asking.breaker import Breaker
from scheduler.signals.problems import MissingReason

Pause = Literal["", "breaker", "outage"]
"""Why a signal is asked with pauses: its own query has failed several times, or its server does not answer."""


@dataclass(frozen=True, slots=True)
class QueryHealth:
    """One signal at one moment.

    last
        The last answer or failure; None before the first.
    last_ago_s
        Seconds since that ended.
    missing
        Key (node, domain) -> why it has no value in the last answer; keys without any series are left out.
    next_try_s
        Seconds until it is asked again, 0 while a query runs or is due.
    """

    last: SignalAnswer | None
    last_ago_s: float = 0.0
    missing: Mapping[str, MissingReason] = field(default_factory=dict)
    pause: Pause = ""
    next_try_s: float = 0.0


class Asker(Protocol):
    """The part of a SignalAsker that is read here."""

    signal: Signal
    breaker: Breaker
    started_s: float
    missing: dict[str, MissingReason]

    @property
    def is_running(self) -> bool: ...


def query_health_of(asker: Asker, server: Breaker, last: SignalAnswer | None, now_s: float) -> QueryHealth:
    """Return the health of a signal's queries at `now_s`; `server` is its server's breaker."""
    pause: Pause = "outage" if server.is_open else "breaker" if asker.breaker.is_open else ""
    next_s = asker.started_s + asker.signal.interval_s
    if pause:
        next_s = max(next_s, server.next_s if server.is_open else asker.breaker.next_s)
    return QueryHealth(
        last,
        0.0 if last is None else max(now_s - last.evaluated_at_s, 0.0),
        asker.missing,
        pause,
        0.0 if asker.is_running else max(next_s - now_s, 0.0),
    )
