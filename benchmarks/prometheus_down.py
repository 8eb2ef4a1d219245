"""What an outage of Prometheus costs: create-to-bound of Pods before and after it is killed.

`python -m benchmarks.prometheus_down` starts a real kube-apiserver with 20 measured nodes, a real Prometheus and
`vane run` with a filtering and a scoring rule; creates Pods at a steady rate, kills Prometheus half-way, and
prints p50 and p99 of both halves and their ratio. Needs the programs of `make controlplane`.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from tests.controlplane.build import ensure_programs
from tests.e2e.world import MeasuredCluster, prefer_idle, refuse_above, rules
from tests.support import manifests
from tests.support.controlplane import ControlPlane
from tests.support.exporter import NodeExporter
from tests.support.kubeapi import KubeApi
from tests.support.prometheus import PrometheusServer
from tests.support.vane import VaneProcess, grant_vane
from tests.support.waiting import wait_until


class Stopwatch:
    """Seconds from the request that creates a Pod to the watch event that shows it bound."""

    def __init__(self, api: KubeApi) -> None:
        self._api = api
        self._created: dict[str, float] = {}
        self._bound: dict[str, float] = {}
        version = api.get("/api/v1/namespaces/default/pods")["metadata"]["resourceVersion"]
        self._watch = api.watch("/api/v1/namespaces/default/pods", version)
        threading.Thread(target=self._look, daemon=True).start()

    def stop(self) -> None:
        self._watch.close()

    def create(self, prefix: str, count: int, per_second: float) -> list[float]:
        """Create Pods at a steady rate; return the seconds of each, in order of creation."""
        names = [f"{prefix}-{i}" for i in range(count)]
        began = time.monotonic()
        for i, name in enumerate(names):
            time.sleep(max(0.0, began + i / per_second - time.monotonic()))
            pod = manifests.pod(name, cpu="10m", memory="8Mi", scheduler_name="vane")
            self._created[name] = time.monotonic()
            self._api.post("/api/v1/namespaces/default/pods", pod)
        wait_until(lambda: self._bound.keys() >= set(names), 30.0, f"{count} Pods {prefix}-* bound")
        return [self._bound[name] - self._created[name] for name in names]

    def _look(self) -> None:
        for event in self._watch:
            pod = event["object"]
            if pod.get("spec", {}).get("nodeName"):
                self._bound.setdefault(pod["metadata"]["name"], time.monotonic())


def measure(count: int, per_second: float, folder: Path) -> tuple[list[float], list[float]]:
    programs = ensure_programs()
    for part in ("prometheus", "vane"):
        (folder / part).mkdir()
    control_plane, exporter = ControlPlane(programs, folder), NodeExporter()
    prometheus = PrometheusServer(programs, folder / "prometheus", scrape_interval="500ms")
    vane: VaneProcess | None = None
    try:
        control_plane.start()
        exporter.start()
        api = control_plane.client()
        nodes = [f"node-{i:02}" for i in range(20)]
        for node in nodes:
            api.create_node(node, cpu="64", pods="1000")
            exporter.add_node(node)
        prometheus.start()
        prometheus.reload([exporter.scrape_config()])
        MeasuredCluster(api, exporter, prometheus, nodes).set_cpu(nodes[:3], 0.95)
        rule_file = folder / "rules.yaml"
        rule_file.write_text(rules(refuse_above(0.8), prefer_idle(5)))
        grant_vane(api, "vane")
        kubeconfig = control_plane.make_kubeconfig("vane")
        vane = VaneProcess(folder / "vane", kubeconfig, [rule_file], prometheus.url, is_audited=False)
        vane.start()
        stopwatch = Stopwatch(api)
        stopwatch.create("warm", 50, per_second)
        before = stopwatch.create("up", count, per_second)
        prometheus.kill()
        after = stopwatch.create("down", count, per_second)
        stopwatch.stop()
        return before, after
    finally:
        if vane is not None:
            vane.stop()
        prometheus.stop()
        exporter.stop()
        control_plane.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=600, help="in each half")
    parser.add_argument("--rate", type=float, default=20.0, help="Pods created a second")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        before, after = measure(arguments.pods, arguments.rate, Path(folder))
    figures = []
    for name, seconds in (("up", before), ("down", after)):
        p50, p99 = np.percentile(np.array(seconds) * 1e3, [50, 99])
        figures.append((p50, p99))
        print(f"Prometheus {name}: {len(seconds)} Pods bound, create-to-bound p50 {p50:.1f} ms, p99 {p99:.1f} ms")
    print(f"ratio: p50 {figures[1][0] / figures[0][0]:.2f}, p99 {figures[1][1] / figures[0][1]:.2f}")


if __name__ == "__main__":
    main()
