from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_GIB = 1024.0**3

# Shares of the busy time, about those of a machine that runs services.
_BUSY_MODES = {"user": 0.75, "system": 0.2, "softirq": 0.05}
_UNUSED_MODES = ("iowait", "irq", "nice", "steal")


@dataclass
class _Counter:
    """Advances with real time at a rate that may change; what it has counted stays."""

    rate: float
    since: float
    value: float = 0.0

    def set_rate(self, rate: float, now: float) -> None:
        self.value, self.since, self.rate = self.at(now), now, rate

    def at(self, now: float) -> float:
        return self.value + self.rate * (now - self.since)


@dataclass
class _Node:
    cores: int
    down: bool = False
    gauges: dict[str, float] = field(default_factory=dict)
    counters: dict[str, _Counter] = field(default_factory=dict)
    stamps: dict[str, Callable[[], float]] = field(default_factory=dict)


class NodeExporter:
    """node_exporter's families for any number of simulated nodes: one server, a path per node."""

    def __init__(self, nodes: Iterable[str] = (), cores: int = 4, memory: float = 32 * _GIB) -> None:
        self._nodes: dict[str, _Node] = {}
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.exporter = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="exporter", daemon=True)
        for name in nodes:
            self.add_node(name, cores, memory)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"

    @property
    def nodes(self) -> list[str]:
        with self._lock:
            return list(self._nodes)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        if self._thread.ident is not None:
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def add_node(self, name: str, cores: int = 4, memory: float = 32 * _GIB, cpu: float = 0.0) -> None:
        """Add an idle node, or one of this CPU utilisation; Prometheus scrapes it from its next `reload` on."""
        with self._lock:
            self._nodes[name] = _Node(cores)
        self.set_cpu(name, cpu)
        self.set_memory(name, 0.1, total=memory)
        for series, value in (
            ("node_load1", 0.0),
            ("node_load5", 0.0),
            ("node_load15", 0.0),
            ('node_filesystem_size_bytes{device="/dev/vda1",fstype="ext4",mountpoint="/"}', 100 * _GIB),
            ('node_filesystem_avail_bytes{device="/dev/vda1",fstype="ext4",mountpoint="/"}', 80 * _GIB),
            (f'node_uname_info{{nodename="{name}",sysname="Linux"}}', 1.0),
        ):
            self.set_gauge(name, series, value)
        for series in (
            'node_network_receive_bytes_total{device="eth0"}',
            'node_network_transmit_bytes_total{device="eth0"}',
            'node_disk_io_time_seconds_total{device="vda"}',
            "node_pressure_cpu_waiting_seconds_total",
        ):
            self.set_rate(name, series, 0.0)

    def set_cpu(self, name: str, utilisation: float) -> None:
        """Set the share of CPU time in use, 0 to 1, from now on."""
        shares = {mode: utilisation * share for mode, share in _BUSY_MODES.items()}
        shares |= dict.fromkeys(_UNUSED_MODES, 0.0) | {"idle": 1.0 - utilisation}
        for core in range(self._node(name).cores):
            for mode, share in shares.items():
                self.set_rate(name, f'node_cpu_seconds_total{{cpu="{core}",mode="{mode}"}}', share)

    def set_memory(self, name: str, utilisation: float, total: float | None = None) -> None:
        """Set the share of memory in use, 0 to 1."""
        if total is None:
            total = self._node(name).gauges["node_memory_MemTotal_bytes"]
        self.set_gauge(name, "node_memory_MemTotal_bytes", total)
        self.set_gauge(name, "node_memory_MemAvailable_bytes", total * (1.0 - utilisation))

    def set_gauge(self, name: str, series: str, value: float) -> None:
        """Set a series, written as `name{label="value"}`; any series may be added."""
        with self._lock:
            self._nodes[name].gauges[series] = value

    def stamp(self, name: str, series: str, clock: Callable[[], float]) -> None:
        """Expose a series with the time of this clock, in Unix seconds.

        To be called before Prometheus knows the series: one that gets a timestamp later has ended for it.
        """
        with self._lock:
            self._nodes[name].stamps[series] = clock

    def set_rate(self, name: str, series: str, per_second: float) -> None:
        """Let a counter advance at this rate from now on; any series may be added."""
        now = time.monotonic()
        with self._lock:
            counters = self._nodes[name].counters
            if series in counters:
                counters[series].set_rate(per_second, now)
            else:
                counters[series] = _Counter(per_second, now)

    def remove(self, name: str, series: str) -> None:
        """Stop exposing a series."""
        with self._lock:
            node = self._nodes[name]
            node.gauges.pop(series, None)
            node.counters.pop(series, None)

    def set_down(self, name: str, down: bool = True) -> None:
        """Let the scrapes of one node fail."""
        self._node(name).down = down

    def exposition(self, name: str) -> str | None:
        """Return a node's metrics in the text format, None where its exporter is down or it doesn't exist."""
        now = time.monotonic()
        with self._lock:
            node = self._nodes.get(name)
            if node is None or node.down:
                return None
            samples = [(series, "gauge", value) for series, value in node.gauges.items()]
            samples += [(series, "counter", counter.at(now)) for series, counter in node.counters.items()]
            stamps = {series: clock() for series, clock in node.stamps.items()}
        return _text_format(samples, stamps)

    def static_configs(self) -> list[dict[str, Any]]:
        """Return a target per node, `instance` being the node's name as kube-prometheus relabels it."""
        return [
            {"targets": [self.address], "labels": {"instance": name, "__metrics_path__": f"/node/{name}/metrics"}}
            for name in self.nodes
        ]

    def scrape_config(self, **settings: Any) -> dict[str, Any]:
        return {"job_name": "node-exporter", "static_configs": self.static_configs(), **settings}

    def _node(self, name: str) -> _Node:
        with self._lock:
            return self._nodes[name]


def _text_format(samples: Iterable[tuple[str, str, float]], stamps: Mapping[str, float]) -> str:
    families: dict[str, list[str]] = {}
    types: dict[str, str] = {}
    for series, type_, value in samples:
        family = series.partition("{")[0]
        types[family] = type_
        stamp = f" {round(stamps[series] * 1000)}" if series in stamps else ""
        families.setdefault(family, []).append(f"{series} {value!r}{stamp}")
    lines: list[str] = []
    for family, exposed in families.items():
        lines += [f"# TYPE {family} {types[family]}", *exposed]
    return "\n".join(lines) + "\n"


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # One connection per node and scrape interval, and all of them at Prometheus' start.
    request_queue_size = 1024
    exporter: NodeExporter

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A Prometheus that is killed is part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Prometheus keeps its connections; a thread of one must not outlive the server's stop for long.
    timeout = 5
    server: _Server

    def do_GET(self) -> None:
        parts = self.path.split("?")[0].strip("/").split("/")
        text = self.server.exporter.exposition(parts[1]) if len(parts) == 3 and parts[0] == "node" else None
        body = (text or "").encode()
        self.send_response(503 if text is None else 200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the scrapes out of the tests' output."""


def labelled(name: str, labels: Mapping[str, str]) -> str:
    """Return a series as `name{label="value"}`, its label values escaped."""
    escaped = (value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") for value in labels.values())
    pairs = ",".join(f'{label}="{value}"' for label, value in zip(labels, escaped, strict=True))
    return f"{name}{{{pairs}}}"
