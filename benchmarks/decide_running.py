"""How long a decision takes in the running process, with everything else going on beside it.

`python -m benchmarks.decide_running` starts a real kube-apiserver with 5,000 nodes and a real Prometheus with 20
signals of 5,000 series each, asked every 15 s; patches nodes 50 times a second; creates basic Pods; and reads
from the scheduler's debug log how long each decision took. Needs the programs of `make controlplane`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.decide_alone import make_rules
from tests.controlplane.build import ensure_programs
from tests.support import manifests
from tests.support.controlplane import ControlPlane
from tests.support.exporter import NodeExporter
from tests.support.kubeapi import KubeApi
from tests.support.prometheus import PrometheusServer
from tests.support.vane import VaneProcess, grant_vane
from tests.support.waiting import wait_until


@contextlib.contextmanager
def measured(programs: Path, folder: Path, names: list[str]) -> Iterator[PrometheusServer]:
    """A Prometheus that scrapes one gauge per node from a single target."""
    exporter = NodeExporter(["all"])
    random = np.random.default_rng(7)
    for name, value in zip(names, random.random(len(names)) * 0.9, strict=True):
        exporter.set_gauge("all", f'use{{node="{name}"}}', float(value))
    exporter.start()
    prometheus = PrometheusServer(programs, folder, [exporter.scrape_config()], scrape_interval="5s")
    prometheus.start()
    try:
        wait_until(lambda: len(prometheus.values("use", "node")) == len(names), 60.0, "all series in Prometheus")
        yield prometheus
    finally:
        prometheus.stop()
        exporter.stop()


@contextlib.contextmanager
def patched(api: KubeApi, names: list[str], per_second: float) -> Iterator[None]:
    """Patch one node after the other, which the watch brings to every scheduler."""
    ended = threading.Event()

    def patch() -> None:
        turn = 0
        due = time.monotonic()
        while not ended.wait(max(0.0, due - time.monotonic())):
            name = names[turn * 37 % len(names)]
            api.patch(f"/api/v1/nodes/{name}", {"metadata": {"annotations": {"turn": str(turn)}}})
            turn += 1
            due += 1 / per_second

    thread = threading.Thread(target=patch, daemon=True)
    thread.start()
    yield
    ended.set()
    thread.join()


def create_pods(api: KubeApi, count: int, per_second: float) -> None:
    began = time.monotonic()
    for i in range(count):
        time.sleep(max(0.0, began + i / per_second - time.monotonic()))
        api.post(
            "/api/v1/namespaces/default/pods",
            manifests.pod(f"pod-{i}", cpu="100m", memory="500Mi", scheduler_name="vane"),
        )


def decided_in_s(log: str) -> list[float]:
    """Return the seconds of each decision that a JSON debug log tells of."""
    lines = [json.loads(line) for line in log.splitlines() if '"decided_in_s"' in line]
    return [line["decided_in_s"] for line in lines]


def measure(arguments: argparse.Namespace, folder: Path) -> list[float]:
    programs = ensure_programs()
    names = [f"node-{i:05}" for i in range(arguments.nodes)]
    control_plane = ControlPlane(programs, folder)
    control_plane.start()
    try:
        api = control_plane.client()
        api.create_nodes(manifests.node(name, cpu="4") for name in names)
        grant_vane(api, "vane")
        rules = folder / "rules.yaml"
        rules.write_bytes(make_rules(arguments.signals, "max by (node) (use) + 0.001 * {i}"))
        (folder / "prometheus").mkdir()
        (folder / "vane").mkdir()
        with measured(programs, folder / "prometheus", names) as prometheus:
            flags = ["-v", "4", "--logging-format", "json"]
            kubeconfig = control_plane.make_kubeconfig("vane")
            vane = VaneProcess(folder / "vane", kubeconfig, [rules], prometheus.url, flags, is_audited=False)
            vane.start(60.0)
            with patched(api, names, arguments.events):
                create_pods(api, arguments.pods, arguments.rate)
                wait_until(lambda: len(decided_in_s(vane.process.log_text())) >= arguments.pods, 60.0, "all decided")
            vane.stop()
            return decided_in_s(vane.process.log_text())
    finally:
        control_plane.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--signals", type=int, default=20)
    parser.add_argument("--events", type=float, default=50.0, help="node patches a second")
    parser.add_argument("--pods", type=int, default=1_500)
    parser.add_argument("--rate", type=float, default=25.0, help="Pods created a second")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        took = measure(arguments, Path(folder))
    p50, p99, worst = np.percentile(np.array(took) * 1e3, [50, 99, 100])
    print(f"{len(took)} decisions: p50 {p50:.2f} ms, p99 {p99:.2f} ms, worst {worst:.2f} ms")


if __name__ == "__main__":
    main()
