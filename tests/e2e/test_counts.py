"""Counts and label matches on a real API server, without any Prometheus."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.e2e.conftest import StartVane
from tests.support.kubeapi import KubeApi
from tests.support.waiting import wait_until

RULES = """\
apiVersion: vane.dev/v1
kind: Rules
signals:
  chain_in_zone: {count: {same: [chain], namespaces: all}, by: topology.kubernetes.io/zone}
  lately: {count: {same: [once], window: 1h}}
  just_now: {count: {same: [seldom], window: 10s}}
rules:
  - {name: one-per-zone, signal: chain_in_zone, filter: {max: 0}}
  - {name: once-in-a-while, signal: lately, filter: {max: 0}}
  - {name: once-in-a-moment, signal: just_now, filter: {max: 0}}
  - {name: own-nodes, label_match: {pod: tenant, node: example.com/tenant}}
"""


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "rules.yaml"
    path.write_text(RULES)
    return path


def refusal(api: KubeApi, name: str) -> str:
    conditions = api.pod(name)["status"].get("conditions", [])
    return next((one.get("message", "") for one in conditions if one["type"] == "PodScheduled"), "")


def zone_of(api: KubeApi, name: str) -> str:
    labels: dict[str, str] = api.node(api.wait_bound(name))["metadata"]["labels"]
    return labels["topology.kubernetes.io/zone"]


@pytest.mark.usefixtures("kubelet")
def test_a_chain_of_three_services_lies_in_three_zones(api: KubeApi, start_vane: StartVane, rules: Path) -> None:
    for i, zone in enumerate("aabbcc"):
        api.create_node(f"node-{i}", labels={"topology.kubernetes.io/zone": zone})
    vane = start_vane(rules=[rules])
    services = ("cart", "pay", "ship")
    for name in services:
        api.create_pod(name, scheduler_name="vane", labels={"chain": "order"})

    assert {zone_of(api, name) for name in services} == set("abc")

    api.create_pod("fourth", scheduler_name="vane", labels={"chain": "order"})
    told = '0/6 nodes are available: 6 node(s) rejected by rule "one-per-zone".'
    wait_until(lambda: refusal(api, "fourth").startswith(told), 10.0, told)
    freed = zone_of(api, "pay")
    api.delete_pod("pay", grace=0)

    assert zone_of(api, "fourth") == freed
    assert (vane.metric('vane_rule_refusals_total{rule="one-per-zone"}') or 0) > 0


@pytest.mark.usefixtures("kubelet")
def test_a_pod_that_ended_before_vane_started_counts_for_its_window(
    api: KubeApi, start_vane: StartVane, rules: Path
) -> None:
    api.create_node("only")
    api.create_pod("ended", labels={"once": "a"}, scheduler_name="somebody-else")
    api.bind("ended", "only")
    wait_until(lambda: api.pod("ended")["status"]["phase"] == "Running", 10.0, "its start")
    api.patch("/api/v1/namespaces/default/pods/ended/status", {"status": {"phase": "Succeeded"}})
    start_vane(rules=[rules])
    api.create_pod("next", scheduler_name="vane", labels={"once": "a"})
    api.create_pod("other", scheduler_name="vane", labels={"once": "b"})

    assert api.wait_bound("other") == "only"
    told = '0/1 nodes are available: 1 node(s) rejected by rule "once-in-a-while".'
    wait_until(lambda: refusal(api, "next").startswith(told), 10.0, told)


@pytest.mark.usefixtures("kubelet")
def test_the_end_of_a_window_brings_a_pod_back(api: KubeApi, start_vane: StartVane, rules: Path) -> None:
    api.create_node("only")
    start_vane(rules=[rules])
    began_s = time.monotonic()
    api.create_pod("first", scheduler_name="vane", labels={"seldom": "a"})
    api.wait_bound("first")
    api.delete_pod("first", grace=0)
    api.wait_gone("/api/v1/namespaces/default/pods/first")
    api.create_pod("second", scheduler_name="vane", labels={"seldom": "a"})
    told = '0/1 nodes are available: 1 node(s) rejected by rule "once-in-a-moment".'
    wait_until(lambda: refusal(api, "second").startswith(told), 10.0, told)

    assert api.wait_bound("second", timeout=20.0) == "only"

    # The API server writes whole seconds.
    assert time.monotonic() - began_s >= 9.0


@pytest.mark.usefixtures("kubelet")
def test_labels_of_pod_and_node_match(api: KubeApi, start_vane: StartVane, rules: Path) -> None:
    for name in ("red", "blue"):
        api.create_node(name, labels={"example.com/tenant": name})
    start_vane(rules=[rules])
    for name in ("red", "blue", "green"):
        api.create_pod(name, scheduler_name="vane", labels={"tenant": name})

    assert [api.wait_bound(name) for name in ("red", "blue")] == ["red", "blue"]
    told = '0/2 nodes are available: 2 node(s) rejected by rule "own-nodes".'
    wait_until(lambda: refusal(api, "green").startswith(told), 10.0, told)

    api.create_node("green", labels={"example.com/tenant": "green"})

    assert api.wait_bound("green") == "green"
