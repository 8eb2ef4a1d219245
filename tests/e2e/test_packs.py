"""All packs at once where only node_exporter is scraped: `vane run --rules rules`, as a newcomer starts it."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.signals.loader import RuleLoader
from tests.e2e.conftest import StartVane
from tests.e2e.world import MeasuredCluster
from tests.support.waiting import wait_until

RULES = Path(__file__).parents[2] / "rules"
MEASURED = ("node_cpu_use", "node_memory_use")
HOT = ("node-00", "node-07")


@pytest.mark.usefixtures("kubelet")
def test_packs_without_metrics_are_said_once_and_hinder_nobody(cluster: MeasuredCluster, start_vane: StartVane) -> None:
    signals = RuleLoader([RULES], lambda _: None, lambda _: None).load().asked
    assert len(signals) > len(MEASURED)
    for node in cluster.nodes:
        cluster.exporter.set_memory(node, 0.85 if node in HOT else 0.2)
    wait_until(lambda: cluster.prometheus.query("count(rate(node_cpu_seconds_total[2m]))"), 10.0, "two scrapes")
    vane = start_vane(rules=[RULES], prometheus=cluster.prometheus.url)

    vane.wait_for_metric('vane_rule_refused_nodes{rule="node-memory-use"}', len(HOT))
    placed = cluster.place("any", 40)
    assert not set(HOT) & placed.keys()
    assert len(placed) > 5, "no rule without samples draws Pods anywhere"

    for name in signals:
        is_measured = name in MEASURED
        vane.wait_for_metric(f'vane_signal_coverage_ratio{{signal="{name}"}}', float(is_measured))
        vane.wait_for_metric(f'vane_signal_series{{signal="{name}",state="mapped"}}', 20.0 if is_measured else 0.0)
    lines = vane.process.log_text().splitlines()
    for name, signal in signals.items():
        said = [line for line in lines if f"signal {name}: no series" in line]
        assert len(said) == (name not in MEASURED), said
        if said and signal.by == "node":
            assert "(0 of 20 nodes covered)" in said[0]
    for name in MEASURED:
        assert sum(f"signal {name} is healthy (20 of 20 nodes covered)" in line for line in lines) == 1
