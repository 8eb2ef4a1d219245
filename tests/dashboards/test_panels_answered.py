"""Every query of every panel, asked of a real Prometheus that scrapes a running Vane under load."""

from __future__ import annotations

import math
import re
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.dashboards.test_alerts import ALERTS
from tests.dashboards.written import LABEL_VALUES, Asked, dashboards, filled, queries, variables
from tests.e2e.conftest import StartVane
from tests.e2e.world import CPU_EXPR, SIGNAL, refuse_above
from tests.support import manifests
from tests.support.exporter import NodeExporter
from tests.support.kubeapi import KubeApi
from tests.support.plugin import StartPrometheus
from tests.support.prometheus import PrometheusServer
from tests.support.vane import VaneProcess
from tests.support.waiting import wait_until

NODES = [f"node-{i}" for i in range(6)]
HOT = NODES[0]
WITH_GPUS = NODES[1:3]
# Grafana's four scrapes, here of a second each.
RATE_INTERVAL = "4s"

RULES = f"""{SIGNAL}
  burn: {{expr: vector(1), by: cluster, interval: 1s, max_age: 10s}}
rules:
{refuse_above(0.8)}
  - name: prefer-idle-nodes
    signal: node_cpu
    score: {{best: 0, worst: 1}}
    weight: {{signal: burn, points: [[0, 1], [2, 9]]}}
"""

# The dashboard's title, the panel's title, the legend -> what it must show of this world.
SHOWN = {
    ("Vane / Scheduling", "Leaders", "leaders"): 1.0,
    ("Vane / Scheduling", "Nodes", "nodes"): 6.0,
    ("Vane / Scheduling", "Errors", "errors"): 0.0,
    ("Vane / Signals", "Prometheus answers", "answers"): 1.0,
    ("Vane / Signals", "Fresh signals", "fresh"): 2.0,
    ("Vane / Signals", "Lowest coverage", "coverage"): 1.0,
    ("Vane / Rules", "Rules", "rules"): 2.0,
    ("Vane / Rules", "Nodes refused", "nodes"): 1.0,
    ("Vane / Rules", "Open valves", "open"): 0.0,
    ("Vane / Rules", "Weight", "{{rule}}"): 5.0,
    ("Vane / Rules", "Pods held back", "Pods"): 1.0,
    ("Vane / Cluster balance and GPU", "Nodes measured", "nodes"): 6.0,
    ("Vane / Cluster balance and GPU", "Hot nodes", "nodes"): 1.0,
    ("Vane / Cluster balance and GPU", "GPUs", "GPUs"): 4.0,
    ("Vane / Cluster balance and GPU", "GPU in use", "used"): 45.0,
    ("Vane / Cluster balance and GPU", "Idle GPUs", "GPUs"): 2.0,
    # 30,000 of 110,000 MiB that are free lie on cards in use.
    ("Vane / Cluster balance and GPU", "Fragmentation", "fragmented"): 30_000 / 110_000,
}


@pytest.fixture
def measured(exporter: NodeExporter) -> NodeExporter:
    """Six nodes, one of them hot, two with two GPUs each, one of which is nearly full and one empty."""
    for node in NODES:
        exporter.add_node(node, cpu=0.95 if node == HOT else 0.3)
    for node in WITH_GPUS:
        for gpu, (use, free, used) in enumerate([(90, 15_000, 25_000), (0, 40_000, 0)]):
            labels = f'{{Hostname="{node}",gpu="{gpu}"}}'
            for name, value in (
                ("GPU_UTIL", use),
                ("FB_FREE", free),
                ("FB_USED", used),
                ("GPU_TEMP", 60),
                ("POWER_USAGE", 200),
            ):
                exporter.set_gauge(node, f"DCGM_FI_DEV_{name}{labels}", float(value))
    return exporter


def scraping(vane: VaneProcess, path: str) -> dict[str, Any]:
    """Scrape a page of Vane's with the labels that the operator gives."""
    labels = {"job": "vane", "namespace": "vane-system", "pod": "vane-0"}
    return {
        "job_name": path,
        "scheme": "https",
        "metrics_path": path,
        "tls_config": {"insecure_skip_verify": True},
        "static_configs": [{"targets": [f"127.0.0.1:{vane.port}"], "labels": labels}],
    }


def values(prometheus: PrometheusServer, expr: str) -> list[float]:
    """Return the values of a query that are numbers."""
    found = [float(sample["value"][1]) for sample in prometheus.query(filled(expr, RATE_INTERVAL))]
    return [value for value in found if not math.isnan(value)]


def metrics_in(expr: str) -> set[str]:
    return set(re.findall(r"([a-z_]+)\{", expr))


def test_no_panel_is_empty_under_load(
    api: KubeApi, measured: NodeExporter, start_vane: StartVane, start_prometheus: StartPrometheus, tmp_path: Path
) -> None:
    for node in NODES:
        api.create_node(node, labels={"kubernetes.io/hostname": node})
    rules = tmp_path / "rules.yaml"
    rules.write_text(RULES)
    prometheus = start_prometheus([measured.scrape_config()])
    prometheus.wait_for_value(CPU_EXPR, HOT, 0.9, 1.0)
    vane = start_vane(rules=[rules], prometheus=prometheus.url)
    prometheus.reload([measured.scrape_config(), scraping(vane, "/metrics"), scraping(vane, "/metrics/resources")])
    only_hot = {"nodeSelector": {"kubernetes.io/hostname": HOT}}
    api.create_pod("held-back", scheduler_name="vane", spec=only_hot)
    batches = count()
    empty: list[Asked] = queries()

    def all_answered() -> bool:
        batch = next(batches)
        pods = (manifests.pod(f"load-{batch}-{i}", cpu="1m", memory="1Mi", scheduler_name="vane") for i in range(5))
        api.create_pods(pods)
        api.wait_bound(f"load-{batch}-0")
        # One sweep over all of them, as a screen shows them at once.
        empty[:] = [asked for asked in queries() if not values(prometheus, asked.expr)]
        return not empty

    try:
        wait_until(all_answered, 40.0, "every panel answered", interval=0.2)
    except TimeoutError:
        pytest.fail("without an answer:\n" + "\n".join(f"{asked.panel}: {asked.expr}" for asked in empty))

    by_panel = {(asked.dashboard, asked.panel, asked.legend): asked.expr for asked in queries()}
    shown = {panel: values(prometheus, by_panel[panel]) for panel in SHOWN}
    assert shown == {panel: [pytest.approx(value)] for panel, value in SHOWN.items()}

    check_variables(prometheus)
    check_alerts(prometheus)


def check_variables(prometheus: PrometheusServer) -> None:
    """Every variable of every dashboard has something to choose from."""
    choices: dict[str, set[str]] = {}
    for dashboard in dashboards().values():
        for variable in variables(dashboard):
            found = LABEL_VALUES.fullmatch(variable["query"])
            assert found is not None
            samples = prometheus.query(f"group by ({found['label']}) ({filled(found['series'])})")
            choices.setdefault(variable["name"], set()).update(one["metric"].get(found["label"], "") for one in samples)
    assert choices.pop("instance")
    assert choices.pop("cluster") == {""}, "no series has the label, and every panel is answered"
    assert choices == {
        "namespace": {"vane-system"},
        "job": {"vane"},
        "signal": {"node_cpu", "burn"},
        "rule": {"avoid-hot-nodes", "prefer-idle-nodes"},
        "node": set(NODES),
    }


def check_alerts(prometheus: PrometheusServer) -> None:
    """Every metric that an alert reads is there, and only the Pod that a rule holds back is reported."""
    named = set[str]().union(*(metrics_in(alert["expr"]) for alert in ALERTS))
    assert len(named) > 8
    assert {name for name in named if not prometheus.query(f'count({{__name__="{name}", job="vane"}})')} == set()
    assert [alert["alert"] for alert in ALERTS if prometheus.query(alert["expr"])] == ["VanePodsHeldBack"]
