"""Packs on recorded samples: what their expressions give in a real Prometheus, per node and at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.model.rules import RuleSet
from scheduler.signals.format.parsing import parse_rule_files
from scheduler.signals.format.promql import selectors
from tests.support.plugin import Recorded
from tests.support.prometheus import PrometheusServer, Samples

RULES = Path(__file__).parents[2] / "rules"
START = 1_700_000_000.0
NOW = START + 300.0
STEP_S = 15.0
N_CPUS = 2
GIB = 2.0**30

pytestmark = pytest.mark.controlplane

# By `instance`, in both ways that exporters name a node: busy share of each CPU, memory in use of 16 GiB.
NODES = {"node-a": (0.25, 4.0), "node-b": (0.9, 12.0), "10.0.0.3:9100": (0.0, 16.0)}


def node_exporter() -> dict[str, Samples]:
    """Return 5 minutes of node_exporter's CPU and memory families for every node."""
    times = [START + STEP_S * i for i in range(int((NOW - START) / STEP_S) + 1)]
    series: dict[str, Samples] = {}
    for instance, (busy, used_gib) in NODES.items():
        for cpu in range(N_CPUS):
            for mode, share in (("idle", 1.0 - busy), ("user", 0.75 * busy), ("system", 0.25 * busy)):
                name = f'node_cpu_seconds_total{{cpu="{cpu}",instance="{instance}",job="node-exporter",mode="{mode}"}}'
                series[name] = [(time, 1_000.0 * cpu + share * (time - START)) for time in times]
        labels = f'{{instance="{instance}",job="node-exporter"}}'
        series[f"node_memory_MemTotal_bytes{labels}"] = [(time, 16.0 * GIB) for time in times]
        series[f"node_memory_MemAvailable_bytes{labels}"] = [(time, (16.0 - used_gib) * GIB) for time in times]
    return series


@pytest.fixture
def pack() -> RuleSet:
    return parse_rule_files({"pack": (RULES / "node-utilisation.yaml").read_bytes()})


@pytest.fixture
def prometheus(recorded: Recorded) -> PrometheusServer:
    return recorded(node_exporter())


def test_node_utilisation_measures_every_node(pack: RuleSet, prometheus: PrometheusServer) -> None:
    cpu = prometheus.values(pack.signals["node_cpu_use"].expr, time=NOW)
    memory = prometheus.values(pack.signals["node_memory_use"].expr, time=NOW)
    assert cpu == pytest.approx({instance: busy for instance, (busy, _) in NODES.items()}, abs=1e-9)
    assert memory == pytest.approx({instance: used / 16.0 for instance, (_, used) in NODES.items()}, abs=1e-9)


def test_node_utilisation_stays_within_its_range(pack: RuleSet, prometheus: PrometheusServer) -> None:
    for signal in pack.signals.values():
        assert signal.range is not None
        for second in range(60, 301, 7):
            for value in prometheus.values(signal.expr, time=START + second).values():
                assert signal.range[0] <= value <= signal.range[1]


def test_the_selectors_of_a_pack_can_be_asked_for_their_time(pack: RuleSet, prometheus: PrometheusServer) -> None:
    for signal in pack.signals.values():
        found = selectors(signal.expr)
        assert found
        for selector in found:
            stamps = prometheus.values(f"max by (instance) (timestamp({selector}))", time=NOW + 7.0)
            assert stamps == dict.fromkeys(NODES, NOW)
