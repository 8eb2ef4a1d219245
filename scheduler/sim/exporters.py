"""The series that exporters would write of a node: names and labels exactly as they ship them.

Sources: node_exporter (cpu, meminfo collectors), DCGM exporter (default counters), Istio standard metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from scheduler.model.arrays import FloatArray
from scheduler.sim.law import answered_within, chance
from scheduler.sim.nodes import SimNode
from scheduler.sim.workloads import NAMESPACE
from scheduler.sim.world import NodeState

Labels = dict[str, str]
Append = Callable[[Mapping[str, str], float, float], None]
"""Takes labels with `__name__`, seconds since 1970, and the value."""

# Istio's default buckets as far as they can be reached here, in milliseconds.
BUCKETS_MS: Final = (0.5, 1.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2500.0, 5000.0, 10000.0)

# What CPU time in use is spent on; the rest is idle.
_MODES: Final = (("user", 0.75), ("system", 0.2), ("iowait", 0.05))
_DURATION: Final = "istio_request_duration_milliseconds"


class Exporters:
    """Counters of all nodes and Pods: moved on second by second, written when they are scraped."""

    def __init__(self, append: Append) -> None:
        self._append = append
        self._bounds: FloatArray = np.array(BUCKETS_MS)
        self._cpu: dict[str, list[tuple[Labels, float, float]]] = {}
        self._cpu_s: dict[str, FloatArray] = {}
        self._requests: dict[str, tuple[list[Labels], FloatArray]] = {}

    def count(self, states: Sequence[NodeState], elapsed_s: float) -> None:
        """Move the counters on by `elapsed_s` of these states, whether anybody reads them or not."""
        for state in states:
            self._count_cpu(state, elapsed_s)
            for pod, per_s in state.serving:
                self._count_requests(state, pod, per_s * elapsed_s)
        alive = {pod for state in states for pod, _ in state.serving}
        for gone in self._requests.keys() - alive:
            del self._requests[gone]

    def write(self, states: Sequence[NodeState], stamp_s: float) -> None:
        """Write every series with that time stamp: one scrape of all targets."""
        for state in states:
            for (labels, _, _), seconds in zip(
                self._cpu[state.node.name], self._cpu_s[state.node.name].tolist(), strict=True
            ):
                self._append(labels, stamp_s, seconds)
            for labels, value in (*_memory(state), *_cards(state)):
                self._append(labels, stamp_s, value)
        for series, counts in self._requests.values():
            for labels, n_within in zip(series, counts.tolist(), strict=True):
                self._append(labels, stamp_s, n_within)

    def _count_cpu(self, state: NodeState, elapsed_s: float) -> None:
        node = state.node
        series = self._cpu.get(node.name)
        if series is None:
            series = self._cpu[node.name] = list(_cpu_series(node))
            # A machine has been up for a while when it joins.
            self._cpu_s[node.name] = np.array([1_000.0 + 9_000.0 * chance(0, node.name, i) for i in range(len(series))])
        shares = np.array([used * state.cpu + constant for _, used, constant in series])
        self._cpu_s[node.name] += shares * elapsed_s

    def _count_requests(self, state: NodeState, pod: str, n_requests: float) -> None:
        found = self._requests.get(pod)
        if found is None:
            found = self._requests[pod] = (_request_series(pod, state.node), np.zeros(len(BUCKETS_MS) + 1))
        counts = found[1]
        counts[:-1] += n_requests * answered_within(self._bounds, state.distance_ms, state.cpu)
        counts[-1] += n_requests


def _cpu_series(node: SimNode) -> Iterable[tuple[Labels, float, float]]:
    """Return labels per core and mode, with what the mode gets of each second: `used` * use + `constant`."""
    base = {"__name__": "node_cpu_seconds_total", "job": "node-exporter", "instance": f"{node.address}:9100"}
    for core in range(node.cores):
        yield {**base, "cpu": str(core), "mode": "idle"}, -1.0, 1.0
        for mode, share in _MODES:
            yield {**base, "cpu": str(core), "mode": mode}, share, 0.0


def _memory(state: NodeState) -> Iterable[tuple[Labels, float]]:
    node = state.node
    base = {"job": "node-exporter", "instance": f"{node.address}:9100"}
    yield {"__name__": "node_memory_MemTotal_bytes", **base}, node.memory_bytes
    yield {"__name__": "node_memory_MemAvailable_bytes", **base}, node.memory_bytes * (1.0 - state.memory)


def _cards(state: NodeState) -> Iterable[tuple[Labels, float]]:
    for i, card in enumerate(state.cards):
        base = {"gpu": str(i), "device": f"nvidia{i}", "Hostname": state.node.name, "job": "dcgm-exporter"}
        yield {"__name__": "DCGM_FI_DEV_FB_USED", **base}, card.used_mib
        yield {"__name__": "DCGM_FI_DEV_FB_FREE", **base}, card.free_mib
        yield {"__name__": "DCGM_FI_DEV_GPU_UTIL", **base}, card.util_percent


def _request_series(pod: str, node: SimNode) -> list[Labels]:
    """Return the buckets' labels; the zone is the Pod's locality, as a relabelling puts it on every target."""
    base = {
        "__name__": f"{_DURATION}_bucket",
        "job": "istio-proxy",
        "reporter": "destination",
        "destination_service_name": "web",
        "destination_service_namespace": NAMESPACE,
        "response_code": "200",
        "pod": pod,
        "topology_kubernetes_io_zone": node.zone,
    }
    return [{**base, "le": le} for le in (*(f"{bound:g}" for bound in BUCKETS_MS), "+Inf")]
