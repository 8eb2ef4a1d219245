"""Makes `data/<pack>.om`: `python -m tests.packs.record`.

Each file holds what the exporters of a pack expose, with their names, labels and units, as Prometheus stores it
after the usual relabelling. The loads are chosen so that every verdict of the pack occurs; `test_verdicts` says which.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.packs.recording import Recording

DATA = Path(__file__).parent / "data"
GIB = 2.0**30

# Node, zone, address. Nobody measures node-6.
NODES = (
    ("node-1", "zone-a", "10.0.0.1"),
    ("node-2", "zone-a", "10.0.0.2"),
    ("node-3", "zone-b", "10.0.0.3"),
    ("node-4", "zone-b", "10.0.0.4"),
    ("node-5", "zone-c", "10.0.0.5"),
    ("node-6", "zone-c", "10.0.0.6"),
)

# By `instance`, in both ways that a node is named there: parts of the CPU time and of 16 GiB in use.
UTILISATION = {
    "node-1": (0.25, 0.25),
    "node-2": (0.85, 0.4),
    "node-3": (0.0, 0.85),
    "10.0.0.4:9100": (0.5, 0.5),
    "node-5": (0.78, 0.1),
}
# How the busy part of the CPU time is spent.
MODES = {"user": 0.7, "system": 0.2, "softirq": 0.06, "iowait": 0.03, "irq": 0.01, "nice": 0.0, "steal": 0.0}


def node_utilisation() -> Recording:
    """node_exporter 1.x: five minutes of CPU times and memory, two CPUs a node."""
    recording = Recording(length_s=300)
    for instance, (cpu_use, memory_use) in UTILISATION.items():
        target = {"instance": instance, "job": "node-exporter"}
        for cpu in ("0", "1"):
            shares = {mode: cpu_use * share for mode, share in MODES.items()} | {"idle": 1.0 - cpu_use}
            for mode, share in shares.items():
                labels = {"cpu": cpu, **target, "mode": mode}
                recording.counter("node_cpu_seconds_total", labels, share, start=1_000.0 * share)
        recording.gauge("node_memory_MemTotal_bytes", target, 16 * GIB)
        recording.gauge("node_memory_MemAvailable_bytes", target, 16 * GIB * (1.0 - memory_use))
    return recording


RECORDINGS: dict[str, Callable[[], Recording]] = {
    "node-utilisation": node_utilisation,
}


def main() -> None:
    DATA.mkdir(exist_ok=True)
    for pack, record in RECORDINGS.items():
        (DATA / f"{pack}.om").write_text(record().text())


if __name__ == "__main__":
    main()
