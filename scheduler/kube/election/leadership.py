"""Leadership: whether we lead, until when, and whether we are to end. The elector's threads share it."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Literal

from scheduler.kube.binder.messages import LeaseUntil
from scheduler.kube.election.settings import ElectionSettings

Phase = Literal["standing by", "leading", "lost", "ended"]


class Leadership:
    """Goes from standing by to leading, and from either to an end; never back.

    `changed` guards all of it, and is notified of every change.
    """

    def __init__(self, settings: ElectionSettings, clock: Callable[[], float]) -> None:
        self.changed = threading.Condition()
        self._settings = settings
        self._clock = clock
        self._phase: Phase = "standing by"
        self._until = LeaseUntil(not_after=-math.inf, ends_at=-math.inf)
        self._end_by_s = math.inf

    @property
    def phase(self) -> Phase:
        with self.changed:
            return self._phase

    @property
    def is_leading(self) -> bool:
        """Whether the lease was ours when we last heard; see `is_running` for now."""
        return self.phase == "leading"

    @property
    def is_running(self) -> bool:
        """Whether we lead now, and the time to renew is not over."""
        with self.changed:
            return self._phase == "leading" and self._clock() < self._until.not_after

    @property
    def left_s(self) -> float:
        """Seconds until the lease is lost if it is not renewed, negative after that; infinite while standing by."""
        with self.changed:
            return self._until.not_after - self._clock() if self._phase == "leading" else math.inf

    @property
    def is_to_end(self) -> bool:
        with self.changed:
            return self._end_by_s < math.inf

    @property
    def left_to_end_s(self) -> float:
        with self.changed:
            return self._end_by_s - self._clock()

    def prolong(self, started_s: float) -> LeaseUntil | None:
        """Begin the term or make it longer, by an answered renewal that was begun then.

        None where the answer came after the time that it would have given us, or was left: it is worth nothing.
        """
        until = LeaseUntil(
            not_after=started_s + self._settings.renew_deadline_s, ends_at=started_s + self._settings.lease_duration_s
        )
        with self.changed:
            limit_s = self._until.not_after if self._phase == "leading" else until.not_after
            if self._phase not in ("standing by", "leading") or self._clock() >= limit_s:
                return None
            self._phase = "leading"
            self._until = until
            self.changed.notify_all()
            return until

    def lose(self) -> bool:
        """Say that the lease is lost; return False where we did not lead."""
        with self.changed:
            if self._phase != "leading":
                return False
            self._phase = "lost"
            self.changed.notify_all()
            return True

    def end(self) -> Phase:
        """End, unless the lease is lost; return the phase until now."""
        with self.changed:
            before = self._phase
            if before != "lost":
                self._phase = "ended"
                self.changed.notify_all()
            return before

    def ask_to_end(self, timeout_s: float) -> None:
        with self.changed:
            self._end_by_s = self._clock() + timeout_s
            self.changed.notify_all()

    def lead_until(self, until_s: float) -> bool:
        """Wait, and return whether we still lead, in time to renew, and are not to end."""
        with self.changed:
            while self.is_running and not self.is_to_end and (left_s := until_s - self._clock()) > 0:
                self.changed.wait(left_s)
            return self.is_running and not self.is_to_end

    def wait_for_end(self) -> None:
        """Wait until we no longer lead, or the time to renew is over."""
        with self.changed:
            while self._phase == "leading" and (left_s := self.left_s) > 0:
                self.changed.wait(left_s)
