"""Tenants on a real API server, with nodes that say what is real and a Prometheus that says how busy they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.conftest import StartVane
from tests.e2e.world import SIGNAL, MeasuredCluster
from tests.support.waiting import wait_until

TENANTS = """\
tenants:
  - name: shop
    match: {namespace_labels: {team: shop}}
    overcommit: 150%
    while: [{signal: node_cpu, max: 80%}]
"""
ANNOTATION = "vane.dev/real-allocatable"
NAMESPACES = {"shop": {"team": "shop"}, "bank": {"team": "bank"}}


def publish(cluster: MeasuredCluster, node: str, figures: str) -> None:
    cluster.api.patch(f"/api/v1/nodes/{node}", {"metadata": {"annotations": {ANNOTATION: figures}}})


def ask(cluster: MeasuredCluster, namespace: str, node: str, cpu: str) -> str:
    """Create a Pod that has to go to one node; return its name."""
    name = f"{namespace}-for-{node}"
    spec = {"nodeSelector": {"kubernetes.io/hostname": node}}
    cluster.api.create_pod(name, namespace=namespace, cpu=cpu, scheduler_name="vane", spec=spec)
    return name


def refusal(cluster: MeasuredCluster, name: str, namespace: str) -> str:
    conditions = cluster.api.pod(name, namespace)["status"].get("conditions", [])
    return next((one.get("message", "") for one in conditions if one["type"] == "PodScheduled"), "")


@pytest.mark.usefixtures("kubelet")
def test_who_may_use_how_much_follows_annotations_namespaces_and_measurements(
    cluster: MeasuredCluster, start_vane: StartVane, tmp_path: Path
) -> None:
    """Nodes advertise 8 CPUs, of which 4 are real on two of them: 6 for the tenant, while they are not busy."""
    api = cluster.api
    for name, labels in NAMESPACES.items():
        api.create_namespace(name, labels)
    for node in ("node-00", "node-01"):
        publish(cluster, node, '{"cpu": "4"}')
    cluster.set_cpu(["node-01"], 0.95)
    rule_file = tmp_path / "rules.yaml"
    rule_file.write_text(SIGNAL + TENANTS)
    vane = start_vane(rules=[rule_file], prometheus=cluster.prometheus.url)
    vane.wait_for_metric('vane_signal_state{signal="node_cpu",state="fresh"}', 1)

    assert api.wait_bound(ask(cluster, "shop", "node-00", "6"), "shop") == "node-00"
    assert api.wait_bound(ask(cluster, "bank", "node-02", "7"), "bank") == "node-02"

    # Too busy for more than what is real, and nobody's Pods have no more than that anyway.
    held_back, nobodys = ask(cluster, "shop", "node-01", "5"), ask(cluster, "bank", "node-01", "7")
    reason = '1 node(s) had too little real cpu for tenant "shop" without overcommit, whose bounds did not hold'
    wait_until(lambda: reason in refusal(cluster, held_back, "shop"), 10.0, reason)
    wait_until(lambda: "for pods without a tenant" in refusal(cluster, nobodys, "bank"), 10.0, "the reason")

    cluster.set_cpu([], 0.0)
    assert api.wait_bound(held_back, "shop") == "node-01"

    # What the owner takes back is everybody's again.
    api.delete_pod(held_back, "shop", grace=0)
    publish(cluster, "node-01", '{"cpu": "8"}')
    assert api.wait_bound(nobodys, "bank") == "node-01"
