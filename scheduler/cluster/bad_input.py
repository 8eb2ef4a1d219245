"""BadInput: what in the cluster's objects could not be taken as it stands, said once per object and hour, and counted.

Whoever may write objects may write the same mistake a hundred times a second; the log must not grow with that.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable

_log = logging.getLogger(__name__)

_AGAIN_AFTER_S = 3_600.0
_REMEMBERED = 10_000
_LONGEST_TEXT = 500


class BadReason(enum.StrEnum):
    """Why an object does not count as it stands; `reason` of `vane_bad_objects_total`."""

    SCHEMA = "schema"
    QUANTITY = "quantity"
    TIME = "time"
    SIZE = "size"
    FAULT = "fault"


class BadInput:
    """Notes bad objects. `count` is told kind and reason each time, the log once per object, reason and hour."""

    def __init__(self, clock: Callable[[], float], count: Callable[[str, str], None]) -> None:
        self._clock = clock
        self._count = count
        self._said_s: dict[tuple[str, str, BadReason], float] = {}

    def note(self, kind: str, name: str, reason: BadReason, what: str, error: Exception | None = None) -> None:
        """Note that something is wrong with an object; `name` is namespace/name.

        `what` names the field, what was found there, and what follows from it; `error` is where the fault is ours.
        """
        self._count(kind, reason.value)
        key, now_s = (kind, name, reason), self._clock()
        said_s = self._said_s.get(key)
        if said_s is not None and now_s - said_s < _AGAIN_AFTER_S:
            return
        self._said_s.pop(key, None)
        self._said_s[key] = now_s
        if len(self._said_s) > _REMEMBERED:
            del self._said_s[next(iter(self._said_s))]
        text = what if len(what) <= _LONGEST_TEXT else f"{what[:_LONGEST_TEXT]}..."
        _log.warning("%s %s: %s", kind, name, text, exc_info=error, extra={"object": name, "reason": reason.value})


def unheard(_kind: str, _reason: str) -> None:
    """Count nowhere."""
