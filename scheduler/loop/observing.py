"""Timing of the cycle: the core laps, the clock is read here."""

from __future__ import annotations

from scheduler.loop.ports import Clock
from scheduler.metrics import Metrics


class CycleObserver:
    """Turns the laps of one attempt into `scheduler_framework_extension_point_duration_seconds`."""

    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._metrics = metrics
        self._clock = clock
        self._profile = ""
        self._began_s = 0.0
        self._lap_s = 0.0

    def begin(self, profile: str, now_s: float) -> None:
        self._profile = profile
        self._began_s = self._lap_s = now_s

    def lap(self, point: str, status: str) -> None:
        now_s = self._clock()
        self._metrics.extension_point_duration(point, self._profile, status).observe(now_s - self._lap_s)
        self._lap_s = now_s

    def decided(self) -> float:
        """Count the whole of `decide`; return its seconds."""
        took_s = self._clock() - self._began_s
        self._metrics.scheduling_algorithm_duration().observe(took_s)
        return took_s
