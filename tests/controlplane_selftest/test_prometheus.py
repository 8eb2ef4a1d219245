from __future__ import annotations

import urllib.error
import urllib.request

import pytest

from tests.support.exporter import NodeExporter, labelled
from tests.support.plugin import Recorded, StartPrometheus
from tests.support.prometheus import openmetrics_text

UTILISATION = '1 - avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[3s]))'
MEMORY_IN_USE = "1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes"


@pytest.fixture
def nodes(exporter: NodeExporter) -> NodeExporter:
    for name in ("node-a", "node-b"):
        exporter.add_node(name)
    return exporter


def test_utilisation_shows_up_in_the_rate(nodes: NodeExporter, start_prometheus: StartPrometheus) -> None:
    nodes.set_cpu("node-a", 0.95)
    prometheus = start_prometheus([nodes.scrape_config()], scrape_interval="500ms")
    prometheus.wait_for_value(UTILISATION, "node-a", 0.94, 0.96)
    prometheus.wait_for_value(UTILISATION, "node-b", 0.0, 0.01)
    nodes.set_cpu("node-a", 0.10)
    nodes.set_cpu("node-b", 0.95)
    prometheus.wait_for_value(UTILISATION, "node-a", 0.09, 0.11)
    prometheus.wait_for_value(UTILISATION, "node-b", 0.94, 0.96)


def test_other_signals_and_new_nodes(nodes: NodeExporter, start_prometheus: StartPrometheus) -> None:
    nodes.set_memory("node-a", 0.75)
    prometheus = start_prometheus([nodes.scrape_config()], scrape_interval="500ms")
    prometheus.wait_for_value(MEMORY_IN_USE, "node-a", 0.749, 0.751)
    nodes.add_node("node-c", cpu=0.5)
    nodes.set_gauge("node-c", labelled("queue_depth", {"queue": 'a"b'}), 7.0)
    prometheus.reload([nodes.scrape_config()])
    prometheus.wait_for_value(UTILISATION, "node-c", 0.49, 0.51)
    prometheus.wait_for_value("queue_depth", "node-c", 7.0, 7.0)


def test_node_whose_exporter_is_down(nodes: NodeExporter, start_prometheus: StartPrometheus) -> None:
    prometheus = start_prometheus([nodes.scrape_config()], scrape_interval="500ms")
    prometheus.wait_for_value("up", "node-a", 1, 1)
    nodes.set_down("node-a")
    prometheus.wait_for_value("up", "node-a", 0, 0)
    prometheus.wait_for_value("up", "node-b", 1, 1)


def test_killed_server_refuses_and_keeps_its_data(nodes: NodeExporter, start_prometheus: StartPrometheus) -> None:
    prometheus = start_prometheus([nodes.scrape_config()], scrape_interval="500ms")
    prometheus.wait_for_value("up", "node-a", 1, 1)
    prometheus.kill()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"{prometheus.url}/-/ready", timeout=5)
    nodes.stop()
    prometheus.restart()
    assert prometheus.values("max_over_time(up[1m])")["node-a"] == 1


def test_recorded_samples_can_be_queried(recorded: Recorded) -> None:
    start = 1_700_000_000.0
    series = {
        labelled("node_load1", {"instance": name}): [(start + 15 * step, load) for step in range(40)]
        for name, load in (("node-a", 0.5), ("node-b", 3.25))
    }
    prometheus = recorded(series)
    assert prometheus.values("node_load1", time=start + 60) == {"node-a": 0.5, "node-b": 3.25}
    assert prometheus.values("node_load1") == {}
    (averages,) = prometheus.query_range("avg(node_load1)", start, start + 60, 30)
    assert [value for _, value in averages["values"]] == ["1.875"] * 3


def test_recorded_samples_can_span_hours(recorded: Recorded) -> None:
    start = 1_700_000_000.0
    prometheus = recorded({"requests_total": [(start + 60 * minute, 30.0 * minute) for minute in range(600)]})
    assert prometheus.values("rate(requests_total[5m])", time=start + 30_000) == {"": pytest.approx(0.5)}


def test_openmetrics_text_keeps_families_together() -> None:
    text = openmetrics_text({'a{x="1"}': [(2.0, 1.0), (1.0, 0.0)], "a_b": [(1.0, 5.0)], 'a{x="2"}': [(1.0, 2.0)]})
    assert text.splitlines() == [
        'a{x="1"} 0.0 1.0',
        'a{x="1"} 1.0 2.0',
        'a{x="2"} 2.0 1.0',
        "a_b 5.0 1.0",
        "# EOF",
    ]
