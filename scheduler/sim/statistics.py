"""What is counted of an arm while it runs, and the table that sums the arms up."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from scheduler.model.arrays import FloatArray
from scheduler.sim.law import HOT, answered_within, fragments_mib
from scheduler.sim.world import NodeState

TARGET_MS: Final = 250.0
"""The latency target of the web Pods."""

_NONE: Final = math.nan
# Fine enough that a percentile is right to a per cent.
_BOUNDS_MS: Final[FloatArray] = np.geomspace(1.0, 100_000.0, 1_200)


@dataclass(frozen=True, slots=True)
class Figures:
    """What one arm came to; NaN where there was nothing to measure.

    hot_pod_s, pod_s
        Pod-seconds on nodes above 80 % CPU use, and all.
    p99_ms, slow_share
        Of the requests served: the 99th percentile, and the share beyond the target.
    fragments_gib
        Free framebuffer on cards in use, mean over time.
    bind_p50_ms, bind_p99_ms
        From the creation of a Pod to its binding, in milliseconds, of all that were bound.
    """

    n_created: int
    n_bound: int
    hot_pod_s: float
    pod_s: float
    p99_ms: float
    slow_share: float
    fragments_gib: float
    bind_p50_ms: float
    bind_p99_ms: float

    @property
    def hot_share(self) -> float:
        return self.hot_pod_s / self.pod_s if self.pod_s else _NONE


class Ledger:
    """Adds up what happens in an arm."""

    def __init__(self) -> None:
        self._hot_pod_s = 0.0
        self._pod_s = 0.0
        self._elapsed_s = 0.0
        self._fragments_mib_s = 0.0
        self._n_requests = 0.0
        self._n_slow = 0.0
        self._within: FloatArray = np.zeros(len(_BOUNDS_MS))
        self._created_s: dict[str, float] = {}
        self._waits_s: list[float] = []
        self.first_bound_s: float | None = None
        """When the first Pod of the tour was bound, on the clock of the calls."""

    def created(self, uid: str, at_s: float) -> None:
        self._created_s[uid] = at_s

    def bound(self, uid: str, at_s: float) -> None:
        """Count a binding; of Pods that were not created by the tour nothing is counted."""
        if uid in self._created_s:
            self._waits_s.append(at_s - self._created_s[uid])
            if self.first_bound_s is None:
                self.first_bound_s = at_s

    @property
    def n_bound(self) -> int:
        return len(self._waits_s)

    def lasted(self, states: Sequence[NodeState], elapsed_s: float) -> None:
        """Count that the nodes were like this for so long."""
        self._elapsed_s += elapsed_s
        target = np.array([TARGET_MS])
        for state in states:
            pod_s = state.n_pods * elapsed_s
            self._pod_s += pod_s
            self._hot_pod_s += pod_s if state.cpu > HOT else 0.0
            self._fragments_mib_s += fragments_mib(state.cards) * elapsed_s
            n_requests = sum(per_s for _, per_s in state.serving) * elapsed_s
            if n_requests:
                self._n_requests += n_requests
                self._within += n_requests * answered_within(_BOUNDS_MS, state.distance_ms, state.cpu)
                in_time = float(answered_within(target, state.distance_ms, state.cpu)[0])
                self._n_slow += n_requests * (1.0 - in_time)

    def figures(self) -> Figures:
        return Figures(
            n_created=len(self._created_s),
            n_bound=len(self._waits_s),
            hot_pod_s=self._hot_pod_s,
            pod_s=self._pod_s,
            p99_ms=self._percentile(0.99),
            slow_share=self._n_slow / self._n_requests if self._n_requests else _NONE,
            fragments_gib=self._fragments_mib_s / self._elapsed_s / 1024.0 if self._elapsed_s else _NONE,
            bind_p50_ms=_quantile(self._waits_s, 0.5) * 1000.0,
            bind_p99_ms=_quantile(self._waits_s, 0.99) * 1000.0,
        )

    def _percentile(self, share: float) -> float:
        """Return the bound in milliseconds that this share of the requests kept."""
        if not self._n_requests:
            return _NONE
        return float(np.interp(share * self._n_requests, self._within, _BOUNDS_MS))


def _quantile(values: Sequence[float], share: float) -> float:
    return float(np.quantile(values, share)) if values else _NONE


_WIDTH: Final = 18

_ROWS: Final[Sequence[tuple[str, Callable[[Figures], str]]]] = (
    ("Pods placed", lambda f: f"{f.n_bound} of {f.n_created}"),
    ("Pod-seconds on nodes above 80 % CPU", lambda f: f"{f.hot_pod_s:.0f} ({_percent(f.hot_share)})"),
    ("p99 latency served", lambda f: _number(f.p99_ms, "ms")),
    (f"requests slower than {TARGET_MS:.0f} ms", lambda f: _percent(f.slow_share)),
    ("GPU memory in fragments", lambda f: _number(f.fragments_gib, "GiB")),
    ("creation to binding, p50", lambda f: _number(f.bind_p50_ms, "ms")),
    ("creation to binding, p99", lambda f: _number(f.bind_p99_ms, "ms")),
)


def summary(figures: Mapping[str, Figures], seed: int) -> str:
    """Return the end of the tour as a table: a line per figure, a column per arm, by the arms' titles."""
    name_width = max(len(name) for name, _ in _ROWS)
    header = " " * name_width + "".join(f"{title:>{_WIDTH}}" for title in figures)
    lines = [f"Summary: the same Pods, the same load (seed {seed})", "", header]
    for name, shown in _ROWS:
        lines.append(f"{name:<{name_width}}" + "".join(f"{shown(one):>{_WIDTH}}" for one in figures.values()))
    lines += [
        "",
        "Fragments: framebuffer left free on cards in use, mean over time. Times are of one machine under all arms.",
        "The nodes follow the law in scheduler/sim/README.md. One run is one sample: other seeds give other figures.",
    ]
    return "\n".join(lines)


def _number(value: float, unit: str) -> str:
    return "-" if math.isnan(value) else f"{value:.0f} {unit}"


def _percent(share: float) -> str:
    return "-" if math.isnan(share) else f"{100.0 * share:.1f} %"


# Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom; beyond, the normal one is close enough.
_T95: Final = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131),
    *(2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
_NORMAL95: Final = 1.960


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean and how far its 95 % confidence interval reaches to either side."""

    mean: float
    half: float

    def __str__(self) -> str:
        digits = 0 if self.half >= 10.0 else 1 if self.half >= 1.0 else 2
        return f"{self.mean:.{digits}f} ± {self.half:.{digits}f}"


def interval(values: Sequence[float]) -> Interval:
    """Return the mean of independent measurements with its interval, of at least two; Student's t."""
    n = len(values)
    if n < 2:
        raise ValueError(f"an interval needs at least two measurements, got {n}")
    t = _T95[n - 2] if n - 2 < len(_T95) else _NORMAL95
    spread = float(np.std(np.asarray(values), ddof=1))
    return Interval(float(np.mean(values)), t * spread / math.sqrt(n))
