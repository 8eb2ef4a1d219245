"""How samples are written down: series of one exporter over a stretch of time, as OpenMetrics text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tests.support.exporter import labelled
from tests.support.prometheus import openmetrics_text

END_S = 1_700_000_300.0
"""Unix time of the last sample of every recording: ask at this time."""

Values = Callable[[float], float]
"""The value at so many seconds after the first sample."""


class Recording:
    """The series of one pack, sampled every `step_s` for `length_s`, up to END_S."""

    def __init__(self, length_s: float, step_s: float = 15.0) -> None:
        self._times = [step_s * i for i in range(int(length_s / step_s) + 1)]
        self._start_s = END_S - self._times[-1]
        self._series: dict[str, list[tuple[float, float]]] = {}

    def add(self, name: str, labels: Mapping[str, str], values: Values) -> None:
        # Rounded, so that the files do not depend on how a machine adds up floats.
        samples = [(self._start_s + time, round(values(time), 6)) for time in self._times]
        self._series[labelled(name, labels)] = samples

    def gauge(self, name: str, labels: Mapping[str, str], value: float) -> None:
        self.add(name, labels, lambda _: value)

    def counter(self, name: str, labels: Mapping[str, str], per_s: float, start: float = 0.0) -> None:
        self.add(name, labels, lambda time: start + per_s * time)

    def histogram(
        self, name: str, labels: Mapping[str, str], bounds: Sequence[str], per_s: Mapping[str, float]
    ) -> None:
        """Add the buckets, count and sum of a histogram.

        `bounds` are the upper ones without +Inf; `per_s` says how many observations a second end in which bucket.
        """
        total = 0.0
        for bound in (*bounds, "+Inf"):
            total += per_s.get(bound, 0.0)
            self.counter(f"{name}_bucket", {**labels, "le": bound}, total)
        self.counter(f"{name}_count", labels, total)
        self.counter(f"{name}_sum", labels, sum(float(bound) * rate for bound, rate in per_s.items()))

    def text(self) -> str:
        return openmetrics_text(self._series)
