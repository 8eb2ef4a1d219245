"""A small cluster whose nodes are measured: what the end-to-end tests play in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support import manifests
from tests.support.exporter import NodeExporter
from tests.support.kubeapi import KubeApi
from tests.support.prometheus import PrometheusServer
from tests.support.waiting import wait_until

INTERVAL_S = 1.0
CPU_EXPR = 'clamp_min(1 - avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[3s])), 0)'

SIGNAL = f"""\
apiVersion: vane.dev/v1
kind: Rules
signals:
  node_cpu:
    expr: {CPU_EXPR}
    by: node
    unit: ratio
    interval: {INTERVAL_S:g}s
    max_age: 10s
    range: [0, 1]
"""


def rules(*blocks: str) -> str:
    """Return a rule file with the signal and these rules; none: an empty list is no rule file, so no `rules` at all."""
    return SIGNAL + ("rules:\n" + "".join(blocks) if blocks else "")


def refuse_above(limit: float, name: str = "avoid-hot-nodes") -> str:
    return f"  - {{name: {name}, signal: node_cpu, filter: {{max: {limit}}}}}\n"


def prefer_idle(weight: float, name: str = "prefer-idle-nodes") -> str:
    return f"  - {{name: {name}, signal: node_cpu, score: {{best: 0, worst: 1}}, weight: {weight}}}\n"


def replace_file(path: Path, text: str) -> None:
    """Write a file as an editor does: a new one, moved over the old."""
    draft = path.with_suffix(".tmp")
    draft.write_text(text)
    draft.replace(path)


@dataclass
class MeasuredCluster:
    """Nodes with an exporter each, scraped by a real Prometheus."""

    api: KubeApi
    exporter: NodeExporter
    prometheus: PrometheusServer
    nodes: Sequence[str]

    def set_cpu(self, hot: Iterable[str], hot_use: float, other_use: float = 0.2) -> None:
        """Set the true load, and wait until Prometheus shows it."""
        chosen = set(hot)
        for node in self.nodes:
            self.exporter.set_cpu(node, hot_use if node in chosen else other_use)
        wait_until(lambda: self._shows(chosen, hot_use, other_use), 30.0, "the new load in Prometheus", interval=0.1)

    def _shows(self, hot: set[str], hot_use: float, other_use: float) -> bool:
        values = self.prometheus.values(CPU_EXPR)
        wanted = {node: hot_use if node in hot else other_use for node in self.nodes}
        return all(node in values and abs(values[node] - use) < 0.03 for node, use in wanted.items())

    def place(self, prefix: str, count: int, timeout: float = 30.0) -> Counter[str]:
        """Create Pods of ours and return how many came to each node, when all are bound."""
        names = {f"{prefix}-{i}" for i in range(count)}
        self.api.create_pods(
            manifests.pod(name, cpu="50m", memory="32Mi", scheduler_name="vane") for name in sorted(names)
        )

        def bound() -> Counter[str] | None:
            placed = {name: node for name, node in self.placements().items() if name in names}
            return Counter(placed.values()) if len(placed) == count else None

        return wait_until(bound, timeout, f"{count} Pods {prefix}-* bound", interval=0.05) or Counter()

    def placements(self) -> dict[str, str]:
        return {
            pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in self.api.pods() if pod["spec"].get("nodeName")
        }
