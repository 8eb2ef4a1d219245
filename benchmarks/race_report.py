"""The race's figures, and how they are shown: medians over the rounds in tables, all rounds as JSON."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from benchmarks.race_kinds import PLAIN
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

_KINDS = """\
## Kinds of Pods

{table}

The same with Pods that ask for more, on nodes in three zones:
{sizes}.
The limit is that of plain Pods. *spread*: a hard constraint over the zones, maxSkew 5. *anti-affinity*: no two of a set
on a host. *preferred-affinity*: rather in the zone of the others. Sets are of 1,000 Pods. *mix*: these three and plain
Pods in turn. At the end of each turn every Pod has a node, and zones and hosts are looked at: who breaks a hard
constraint, or leaves less than nine tenths of a set that wants to be together in one zone, has no figures."""


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

    kind: str
    competitor: str
    n_nodes: int
    number: int
    burst: Burst
    steady: Steady | None

    def line(self) -> str:
        burst, steady = self.burst, self.steady
        text = (
            f"{self.kind}, {self.n_nodes} nodes, round {self.number}, {self.competitor}: "
            f"{burst.binds_per_s:.0f} binds/s, "
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
    """Return plain Pods' Markdown table, one row for each number of nodes and competitor; "" if there were none."""
    heads = ["nodes", "", "binds/s", "of kube-scheduler", "of the limit", "with Events/s", "CPU-ms/Pod",
             "steady CPU-ms/Pod", "p50 ms", "p99 ms", "RSS MiB", "PSS MiB", "servers' CPU-ms/Pod"]  # fmt: skip
    plain = [turn for turn in turns if turn.kind == PLAIN.name]
    rows = []
    for n_nodes in sorted({turn.n_nodes for turn in plain}):
        here = [turn for turn in plain if turn.n_nodes == n_nodes]
        for name in dict.fromkeys(turn.competitor for turn in here):
            its = _Medians(here, name)
            memory = [its.burst("rss_mib", 0), its.burst("pss_mib", 0), its.burst("servers_cpu_ms_per_pod", 2)]
            rows.append([f"{n_nodes:,}", name, *its.rates(), its.burst("done_per_s", 0), *its.costs(), *memory])
    return _markdown(heads, rows)


def table_of_kinds(turns: Sequence[Turn]) -> str:
    """Return the other kinds' Markdown table, one row for each kind and competitor; "" if there were none."""
    heads = ["kind", "nodes", "", "binds/s", "of kube-scheduler", "of the limit", "CPU-ms/Pod", "steady CPU-ms/Pod",
             "p50 ms", "p99 ms"]  # fmt: skip
    rows = []
    for kind, n_nodes in dict.fromkeys((turn.kind, turn.n_nodes) for turn in turns if turn.kind != PLAIN.name):
        here = [turn for turn in turns if turn.kind == kind and turn.n_nodes == n_nodes]
        limit = [turn for turn in turns if turn.competitor == "limit" and turn.n_nodes == n_nodes]
        for name in dict.fromkeys(turn.competitor for turn in here):
            its = _Medians([*here, *limit], name)
            rows.append([kind, f"{n_nodes:,}", name, *its.rates(), *its.costs()])
    return _markdown(heads, rows)


def write(folder: Path, turns: Sequence[Turn], courses: Mapping[str, tuple[int, int, float]]) -> None:
    """Write RESULTS.json and RESULTS.md; `courses` has each kind's backlog, rounds, and Pods created a second."""
    about = {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": _machine(),
        "vane": __version__,
        "kubernetes": KUBERNETES,
        "python": platform.python_version(),
    }
    content = {**about, "turns": [asdict(turn) for turn in turns]}
    (folder / "RESULTS.json").write_bytes(msgspec.json.format(msgspec.json.encode(content)) + b"\n")
    strangers = max(turn.burst.strangers for turn in turns)
    conditions = (
        f"{about['machine']}, {about['date']}, "
        f"Vane {__version__}, kube-scheduler {KUBERNETES}. Ratios of one run can be compared, absolute figures only "
        f"on one machine. Programs foreign to the race took at most {strangers:.1%} of the machine in any turn."
    )
    parts = ["# Vane beside kube-scheduler", table(turns), conditions]
    if PLAIN.name in courses:
        n_pods, n_rounds, rate = courses[PLAIN.name]
        parts.append(_METHOD.format(kubernetes=KUBERNETES, n_rounds=n_rounds, n_pods=n_pods, rate=rate))
    sizes = {course for kind, course in courses.items() if kind != PLAIN.name}
    if sizes:
        told = "; ".join(
            f"{n_rounds} rounds with a backlog of {n_pods:,}, then {rate:g} a second"
            for n_pods, n_rounds, rate in sorted(sizes)
        )
        parts.append(_KINDS.format(table=table_of_kinds(turns), sizes=told))
    (folder / "RESULTS.md").write_text("\n\n".join(filter(None, parts)) + "\n")


class _Medians:
    """Medians over the rounds of one competitor, as text, "" where it has no such figure."""

    def __init__(self, turns: Sequence[Turn], name: str) -> None:
        self._turns = turns
        self._name = name

    def rates(self) -> list[str]:
        """Return binds a second, and their ratios to those of kube-scheduler and of the limit."""
        own, other, limit = (self._binds_per_s(name) for name in (self._name, "kube-scheduler", "limit"))
        return [_figure(own, 0), _ratio(own, other), _ratio(own, limit)]

    def costs(self) -> list[str]:
        """Return CPU time per Pod in the burst and at the steady rate, and the latencies there."""
        return [
            self.burst("cpu_ms_per_pod", 2),
            self._steady("cpu_ms_per_pod", 2),
            self._steady("latency_p50_ms", 1),
            self._steady("latency_p99_ms", 1),
        ]

    def burst(self, field: str, digits: int) -> str:
        found = [float(getattr(turn.burst, field)) for turn in self._turns if turn.competitor == self._name]
        return _figure(_median(found), digits)

    def _steady(self, field: str, digits: int) -> str:
        steady = [turn.steady for turn in self._turns if turn.competitor == self._name and turn.steady is not None]
        return _figure(_median([float(getattr(one, field)) for one in steady]), digits)

    def _binds_per_s(self, name: str) -> float | None:
        return _median([turn.burst.binds_per_s for turn in self._turns if turn.competitor == name])


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def _markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    lines = ["| " + " | ".join(row) + " |" for row in (heads, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(heads), *lines[1:]])


def _figure(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def _ratio(value: float | None, base: float | None) -> str:
    return "" if value is None or base is None else f"{value / base:.2f}"


def _machine() -> str:
    return (
        f"{os.cpu_count()} cores of an {platform.machine()} server, {platform.system()}, "
        f"{platform.python_implementation()} {platform.python_version()}"
    )
