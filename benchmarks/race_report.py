"""The race's figures, and how they are shown: medians over the rounds in tables, all rounds as JSON."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from scheduler import __version__

KUBERNETES = "1.37.1"

_METHOD = """\
One etcd and one kube-apiserver {kubernetes}, on the same machine as all else. Limit, kube-scheduler and Vane take turns
in one run, {n_rounds} rounds; medians. Each starts on a backlog of {n_pods:,} Pods (100m, 500Mi) created while nobody
ran; nodes have 4 CPU, 32Gi and room for 110 Pods. The first fifth of the binds is warm-up. binds/s: up to the last
bind; with Events/s: up to the last Event, which Vane writes after the binds where both wait. CPU: all processes of the
competitor, until its last Event is written. Then Pods are created at a steady rate of {rate:g} a second:
create-to-bound is from the request to the answer to the bind. Times are from the API server's audit log. The *limit* is
Vane's binder process alone, told where to bind: one bind and one Event for each Pod, nothing watched or decided. Nobody
is throttled, neither by its client nor by the API server (priority and fairness off), Events are on, leader election is
off. Vane runs without rules. `make bench` repeats this."""


@dataclass(frozen=True, slots=True)
class Burst:
    """A backlog bound as fast as can be. `servers` are etcd and kube-apiserver; memory is taken at the end.

    `done_per_s` are Pods a second until the last Event is written too. `strangers` is the part of the machine, 0..1,
    that went to programs which have nothing to do with the race.
    """

    binds_per_s: float
    done_per_s: float
    cpu_ms_per_pod: float
    cpu_ms_per_pod_of: dict[str, float]
    servers_cpu_ms_per_pod: float
    events_per_pod: float
    rss_mib: float
    pss_mib: float
    strangers: float


@dataclass(frozen=True, slots=True)
class Steady:
    """Pods created at a steady rate; latency is create-to-bound."""

    latency_p50_ms: float
    latency_p99_ms: float
    cpu_ms_per_pod: float
    cpu_ms_per_pod_of: dict[str, float]


@dataclass(frozen=True, slots=True)
class Turn:
    """One competitor's turn; `steady` is None for the limit, which waits for nobody's Pods."""

    competitor: str
    n_nodes: int
    number: int
    burst: Burst
    steady: Steady | None

    def line(self) -> str:
        burst, steady = self.burst, self.steady
        text = (
            f"{self.n_nodes} nodes, round {self.number}, {self.competitor}: {burst.binds_per_s:.0f} binds/s, "
            f"{burst.done_per_s:.0f} with Events, "
            f"{burst.cpu_ms_per_pod:.2f} CPU-ms per Pod ({_parts(burst)}; servers {burst.servers_cpu_ms_per_pod:.2f}), "
            f"{burst.events_per_pod:.2f} Events per Pod, {burst.rss_mib:.0f} MiB, "
            f"strangers {burst.strangers:.1%}"
        )
        if steady is not None:
            text += (
                f"; steady: p50 {steady.latency_p50_ms:.1f} ms, p99 {steady.latency_p99_ms:.1f} ms, "
                f"{steady.cpu_ms_per_pod:.2f} CPU-ms per Pod ({_parts(steady)})"
            )
        return text


def _parts(part: Burst | Steady) -> str:
    return ", ".join(f"{name} {ms:.2f}" for name, ms in part.cpu_ms_per_pod_of.items())


def table(turns: Sequence[Turn]) -> str:
    """Return a Markdown table, one row for each number of nodes and competitor."""
    rows = [
        ["nodes", "", "binds/s", "of kube-scheduler", "of the limit", "with Events/s", "CPU-ms/Pod",
         "steady CPU-ms/Pod", "p50 ms", "p99 ms", "RSS MiB", "PSS MiB", "servers' CPU-ms/Pod"]
    ]  # fmt: skip
    for n_nodes in sorted({turn.n_nodes for turn in turns}):
        here = [turn for turn in turns if turn.n_nodes == n_nodes]
        rows += [_row(here, name) for name in dict.fromkeys(turn.competitor for turn in here)]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def write(folder: Path, turns: Sequence[Turn], n_pods: int, rate_per_s: float) -> None:
    """Write RESULTS.json and RESULTS.md."""
    about = {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": _machine(),
        "vane": __version__,
        "kubernetes": KUBERNETES,
        "python": platform.python_version(),
    }
    content = {**about, "turns": [asdict(turn) for turn in turns]}
    (folder / "RESULTS.json").write_bytes(msgspec.json.format(msgspec.json.encode(content)) + b"\n")
    method = _METHOD.format(
        kubernetes=KUBERNETES, n_rounds=max(turn.number for turn in turns), n_pods=n_pods, rate=rate_per_s
    )
    strangers = max(turn.burst.strangers for turn in turns)
    text = (
        f"# Vane beside kube-scheduler\n\n{table(turns)}\n\n{about['machine']}, {about['date']}, "
        f"Vane {__version__}, kube-scheduler {KUBERNETES}. Ratios of one run can be compared, absolute figures only "
        f"on one machine. Programs foreign to the race took at most {strangers:.1%} of the machine in any turn.\n\n"
        f"{method}\n"
    )
    (folder / "RESULTS.md").write_text(text)


def _row(turns: Sequence[Turn], name: str) -> list[str]:
    def median(of: Callable[[Turn], float | None], competitor: str = name) -> float | None:
        found = [value for turn in turns if turn.competitor == competitor and (value := of(turn)) is not None]
        return statistics.median(found) if found else None

    def steady(field: str) -> float | None:
        return median(lambda turn: None if turn.steady is None else float(getattr(turn.steady, field)))

    def binds(turn: Turn) -> float:
        return turn.burst.binds_per_s

    return [
        f"{turns[0].n_nodes:,}",
        name,
        _figure(median(binds), 0),
        _ratio(median(binds), median(binds, "kube-scheduler")),
        _ratio(median(binds), median(binds, "limit")),
        _figure(median(lambda turn: turn.burst.done_per_s), 0),
        _figure(median(lambda turn: turn.burst.cpu_ms_per_pod), 2),
        _figure(steady("cpu_ms_per_pod"), 2),
        _figure(steady("latency_p50_ms"), 1),
        _figure(steady("latency_p99_ms"), 1),
        _figure(median(lambda turn: turn.burst.rss_mib), 0),
        _figure(median(lambda turn: turn.burst.pss_mib), 0),
        _figure(median(lambda turn: turn.burst.servers_cpu_ms_per_pod), 2),
    ]


def _figure(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def _ratio(value: float | None, base: float | None) -> str:
    return "" if value is None or base is None else f"{value / base:.2f}"


def _machine() -> str:
    return (
        f"{os.cpu_count()} cores of an {platform.machine()} server, {platform.system()}, "
        f"{platform.python_implementation()} {platform.python_version()}"
    )
