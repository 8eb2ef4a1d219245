"""When an answer was evaluated, by the clocks of the server and of whatever stands before it.

An answer carries two times that are none of ours: that of its samples, by Prometheus, and the header Date, by whoever
answered last. Where the two come from one clock, what lies between them is how long the answer was kept in a cache. A
proxy may write its own Date, by a clock that is hours off; then the difference is the same for answer after answer,
while the samples' time goes on as ours does.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

# The header Date is rounded down to a second.
_DATE_TOLERANCE_S: Final = 1.0
# How differently two clocks may run between two answers: more than a clock that is being set right does.
_DRIFT: Final = 0.001
_MAX_REMEMBERED: Final = 4096


@dataclass(frozen=True, slots=True)
class Exchange:
    """One question and its answer, in seconds.

    sent_s, received_s
        By our monotonic clock.
    sample_unix_s, date_unix_s
        Unix times of the answer, by other clocks; None where it does not say them.
    """

    sent_s: float
    received_s: float
    sample_unix_s: float | None
    date_unix_s: float | None


class ServerClock:
    """What is known of the clocks of one server; threads may share it."""

    def __init__(self, wall: Callable[[], float] = time.time) -> None:  # noqa: TID251  # compared with theirs
        self._wall = wall
        self._lock = threading.Lock()
        self._apart_s = 0.0
        self._doubted: OrderedDict[str, Exchange] = OrderedDict()

    def evaluated_at(self, expr: str, exchange: Exchange) -> float:
        """Return when an answer to `expr` was evaluated, by our clock: when we asked, or earlier if from a cache.

        Never later than it truly was, but for a proxy's clock that is set back while answers come out of a cache.
        """
        if exchange.sample_unix_s is None or exchange.date_unix_s is None:
            return exchange.sent_s
        tolerance_s = exchange.received_s - exchange.sent_s + _DATE_TOLERANCE_S
        with self._lock:
            apart_s = exchange.date_unix_s - exchange.sample_unix_s
            at_rest_s = apart_s - self._apart_s
            if abs(at_rest_s) <= tolerance_s:
                return exchange.sent_s
            before = self._remember(expr, exchange)
            # No answer is evaluated after its Date, so a smaller difference is that of the clocks.
            if at_rest_s < 0.0 or (before is not None and _goes_on(before, exchange)):
                self._apart_s = apart_s
                return exchange.sent_s
            return exchange.received_s - at_rest_s

    def skew_s(self, exchange: Exchange) -> float:
        """Return the server's clock less ours, the farther off of its two times; 0 where it says none.

        To be called at once after the answer.
        """
        times = [at_s for at_s in (exchange.sample_unix_s, exchange.date_unix_s) if at_s is not None]
        return max((at_s - self._wall() for at_s in times), key=abs, default=0.0)

    def _remember(self, expr: str, exchange: Exchange) -> Exchange | None:
        before = self._doubted.pop(expr, None)
        self._doubted[expr] = exchange
        if len(self._doubted) > _MAX_REMEMBERED:
            self._doubted.popitem(last=False)
        return before


def _goes_on(before: Exchange, after: Exchange) -> bool:
    """Whether the samples' time has gone on between two answers as ours has: then neither came out of a cache."""
    if before.sample_unix_s is None or after.sample_unix_s is None:
        return False
    went_on_s = after.sample_unix_s - before.sample_unix_s
    at_least_s, at_most_s = after.sent_s - before.received_s, after.received_s - before.sent_s
    return went_on_s > 0.0 and at_least_s * (1.0 - _DRIFT) <= went_on_s <= at_most_s * (1.0 + _DRIFT)
