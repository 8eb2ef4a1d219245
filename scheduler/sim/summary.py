"""The end of the tour in one table."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from scheduler.sim.arm import Feed
from scheduler.sim.statistics import TARGET_MS, Figures

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


def summary(figures: Mapping[Feed, Figures], seed: int) -> str:
    """Return the table as text, a line per figure, a column per arm."""
    name_width = max(len(name) for name, _ in _ROWS)
    header = " " * name_width + "".join(f"{feed.value:>{_WIDTH}}" for feed in figures)
    lines = [f"Summary: the same Pods, the same load (seed {seed})", "", header]
    for name, shown in _ROWS:
        lines.append(f"{name:<{name_width}}" + "".join(f"{shown(one):>{_WIDTH}}" for one in figures.values()))
    lines += [
        "",
        "Fragments: framebuffer left free on cards in use, mean over time. Times are of one machine under all arms.",
        "The nodes follow the law in scheduler/sim/README.md. One run is one sample: other seeds, other figures.",
    ]
    return "\n".join(lines)


def _number(value: float, unit: str) -> str:
    return "-" if math.isnan(value) else f"{value:.0f} {unit}"


def _percent(share: float) -> str:
    return "-" if math.isnan(share) else f"{100.0 * share:.1f} %"
