"""How samples are written down: series of one exporter over a stretch of time, as OpenMetrics text."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.support.exporter import labelled
from tests.support.prometheus import openmetrics_text

START_S = 1_700_000_000.0
"""Unix time of the first sample."""

Values = Callable[[float], float]
"""The value at so many seconds after the first sample."""


class Recording:
    """The series of one pack, sampled every `step_s` from START_S on, for `length_s`."""

    def __init__(self, length_s: float, step_s: float = 15.0) -> None:
        self._times = [step_s * i for i in range(int(length_s / step_s) + 1)]
        self._series: dict[str, list[tuple[float, float]]] = {}

    def add(self, name: str, labels: Mapping[str, str], values: Values) -> None:
        # Three decimals: exporters give more, but nothing here depends on them.
        self._series[labelled(name, labels)] = [(START_S + time, round(values(time), 3)) for time in self._times]

    def gauge(self, name: str, labels: Mapping[str, str], value: float) -> None:
        self.add(name, labels, lambda _: value)

    def counter(self, name: str, labels: Mapping[str, str], per_s: float, start: float = 0.0) -> None:
        self.add(name, labels, lambda time: start + per_s * time)

    def text(self) -> str:
        return openmetrics_text(self._series)
