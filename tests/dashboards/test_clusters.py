"""The variable `cluster`, on a real Prometheus with the series of two clusters."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.dashboards.written import filled, queries
from tests.support.exporter import NodeExporter
from tests.support.plugin import StartPrometheus
from tests.support.prometheus import PrometheusServer
from tests.support.waiting import wait_until

NODES = ("10.0.0.1", "10.0.0.2")
BY_PANEL = {asked.panel: asked.expr for asked in queries()}


@pytest.fixture
def prometheus(start_prometheus: StartPrometheus) -> Iterator[PrometheusServer]:
    exporters, configs = [], []
    for cluster, use in (("prod", 0.3), ("edge", 0.95)):
        exporter = NodeExporter()
        exporters.append(exporter)
        for node in NODES:
            exporter.add_node(node, cpu=use)
            exporter.set_gauge(node, f'DCGM_FI_DEV_GPU_UTIL{{Hostname="{node}",gpu="0"}}', 100.0 * use)
        exporter.start()
        config = exporter.scrape_config(job_name=f"node-exporter-{cluster}")
        for target in config["static_configs"]:
            target["labels"] |= {"cluster": cluster, "job": "node-exporter"}
        configs.append(config)
    server = start_prometheus(configs)
    wait_until(lambda: server.query("count(rate(node_cpu_seconds_total{mode='idle'}[4s])) == 16"), 15.0, "rates")
    yield server
    for exporter in exporters:
        exporter.stop()


def test_a_cluster_is_shown_alone_or_beside_the_others(prometheus: PrometheusServer) -> None:
    def shown(panel: str, chosen: dict[str, str]) -> list[float]:
        return [float(one["value"][1]) for one in prometheus.query(filled(BY_PANEL[panel], "4s", chosen))]

    for chosen, n_nodes, hot, use in (
        ({"cluster": "prod"}, 2, 0, 30.0),
        ({"cluster": "edge"}, 2, 2, 95.0),
        ({"cluster": "prod|edge"}, 4, 2, 62.5),
        ({}, 4, 2, 62.5),
    ):
        found = [shown(panel, dict(chosen)) for panel in ("Nodes measured", "Hot nodes", "GPUs", "GPU in use")]
        assert found == [[n_nodes], [hot], [n_nodes], [pytest.approx(use)]], chosen
        assert len(shown("GPU in use by node", dict(chosen))) == n_nodes, "equal names are two lines"
