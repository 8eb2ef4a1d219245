"""How the asking for one signal stands: what only the process that asks knows of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from scheduler.signals.answers import SignalAnswer
from scheduler.signals.problems import Lack

Pause = Literal["", "breaker", "outage"]
"""Why a signal is asked with pauses: it has failed some times itself, or its server does not answer."""


@dataclass(frozen=True, slots=True)
class Standing:
    """One signal at one moment.

    last
        The last answer, be it that there was none; None before the first has come.
    last_ago_s
        Seconds since that ended.
    lacks
        Key (node, domain) -> why it has no value in the last answer; keys without any series are not named.
    next_try_s
        Seconds until it is asked again, 0 where that is under way or due.
    """

    last: SignalAnswer | None
    last_ago_s: float = 0.0
    lacks: Mapping[str, Lack] = field(default_factory=dict)
    pause: Pause = ""
    next_try_s: float = 0.0
