"""Pods placed by PromQL: real API server, real Prometheus, rule files, `vane run`."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.e2e.conftest import StartVane
from tests.e2e.world import INTERVAL_S, MeasuredCluster, prefer_idle, refuse_above, replace_file, rules
from tests.support.audit import AuditLog
from tests.support.clocks import OwnTime
from tests.support.controlplane import ControlPlane
from tests.support.kubelet import TestKubelet
from tests.support.waiting import wait_until

HOT = ("node-00", "node-07", "node-13")
NEXT_HOT = ("node-02", "node-09", "node-19")


@pytest.mark.usefixtures("kubelet")
def test_pods_follow_the_signal_and_the_rules(
    cluster: MeasuredCluster, start_vane: StartVane, tmp_path: Path, audit: AuditLog
) -> None:
    api = cluster.api
    cluster.set_cpu(HOT, 0.95)
    rule_file = tmp_path / "rules.yaml"
    rule_file.write_text(rules(refuse_above(0.8)))
    api.create_pod("foreign", cpu="7", scheduler_name="somebody-else")
    api.bind("foreign", "node-01")
    vane = start_vane(rules=[rule_file], prometheus=cluster.prometheus.url)

    # The hot nodes are avoided; a Pod of another scheduler is left alone, but what it holds is counted.
    placed = cluster.place("first", 100)
    assert not set(HOT) & placed.keys()
    big = "big-for-what-the-foreign-one-leaves"
    api.create_pod(big, cpu="2", scheduler_name="vane", spec={"nodeSelector": {"kubernetes.io/hostname": "node-01"}})
    message = wait_until(lambda: _unschedulable_message(cluster, big), 10.0, "the condition")
    assert message.startswith("0/20 nodes are available: ")
    assert "1 Insufficient cpu" in message
    api.delete_pod(big, grace=0)

    # The load moves: Pods placed after the next refresh follow.
    cluster.set_cpu(NEXT_HOT, 0.95)
    vane.wait_for_metric('vane_rule_refused_nodes{rule="avoid-hot-nodes"}', 3)
    wait_until(lambda: not set(NEXT_HOT) & cluster.place(f"probe-{time.monotonic_ns()}", 1).keys(), 5.0, "a refresh")
    placed = cluster.place("second", 100)
    assert not set(NEXT_HOT) & placed.keys()
    assert set(HOT) & placed.keys()

    assert not [e for e in audit.events(verb="patch", resource="pods") if e["objectRef"].get("subresource") != "status"]
    assert not [e for e in audit.events(verb="update", resource="pods", user="vane")]


@pytest.mark.usefixtures("kubelet")
def test_an_edit_of_a_rule_changes_the_next_decision_within_a_second(
    cluster: MeasuredCluster, start_vane: StartVane, tmp_path: Path
) -> None:
    cluster.set_cpu(HOT, 0.95)
    rule_file = tmp_path / "rules.yaml"
    rule_file.write_text(rules())
    vane = start_vane(rules=[rule_file], prometheus=cluster.prometheus.url)
    assert set(HOT) & cluster.place("before", 60).keys()

    replace_file(rule_file, rules(refuse_above(0.8)))
    OwnTime([*vane.pids(), cluster.prometheus.process.pid]).sleep(1.0)

    assert not set(HOT) & cluster.place("after", 60).keys()


@pytest.mark.usefixtures("kubelet")
def test_pods_refused_by_a_rule_are_bound_within_two_seconds_of_the_edit_that_frees_them(
    cluster: MeasuredCluster, control_plane: ControlPlane, start_vane: StartVane, tmp_path: Path
) -> None:
    cluster.set_cpu(cluster.nodes, 0.95)
    rule_file = tmp_path / "rules.yaml"
    rule_file.write_text(rules(refuse_above(0.8)))
    vane = start_vane(rules=[rule_file], prometheus=cluster.prometheus.url)
    names = [f"refused-{i}" for i in range(20)]
    for name in names:
        cluster.api.create_pod(name, scheduler_name="vane")
    vane.wait_for_metric('scheduler_pending_pods{queue="unschedulable"}', 20)
    expected = '0/20 nodes are available: 20 node(s) rejected by rule "avoid-hot-nodes".'
    wait_until(lambda: _unschedulable_message(cluster, names[0]).startswith(expected), 5.0, expected)

    replace_file(rule_file, rules(refuse_above(0.99)))
    took = OwnTime([*vane.pids(), *control_plane.pids.values()])
    wait_until(lambda: set(names) <= cluster.placements().keys(), 10.0, "all bound", interval=0.02)

    assert took.seconds <= 2.0


@pytest.mark.usefixtures("kubelet")
def test_a_score_keeps_pods_away_from_busier_nodes(
    cluster: MeasuredCluster, start_vane: StartVane, tmp_path: Path
) -> None:
    cluster.set_cpu(HOT, 0.7)
    rule_file = tmp_path / "rules.yaml"
    rule_file.write_text(rules(prefer_idle(20)))
    vane = start_vane(rules=[rule_file], prometheus=cluster.prometheus.url)

    with_rule = cluster.place("scored", 100)
    replace_file(rule_file, rules())
    vane.wait_for_metric("vane_rules_loaded", 0)
    without_rule = cluster.place("unscored", 100)

    assert sum(with_rule[node] for node in HOT) <= 2
    assert sum(without_rule[node] for node in HOT) >= 10


@pytest.mark.usefixtures("kubelet")
def test_a_bad_edit_leaves_the_previous_rules_in_force(
    cluster: MeasuredCluster, start_vane: StartVane, tmp_path: Path
) -> None:
    cluster.set_cpu(HOT, 0.95)
    rule_file = tmp_path / "rules.yaml"
    rule_file.write_text(rules(refuse_above(0.8)))
    vane = start_vane(
        rules=[rule_file], prometheus=cluster.prometheus.url, env={"POD_NAME": "vane-0", "POD_NAMESPACE": "default"}
    )
    vane.wait_for_metric("vane_rules_last_reload_successful", 1)

    replace_file(rule_file, rules(refuse_above(0.8)).replace("filter", "flter"))

    vane.wait_for_metric("vane_rules_last_reload_successful", 0)
    events = wait_until(lambda: cluster.api.events(name="vane-0", reason="RulesReloadFailed"), 5.0, "an Event")
    assert "the previous rules stay in force" in events[0]["message"]
    assert "flter" in events[0]["message"]
    assert not set(HOT) & cluster.place("still", 60).keys()
    vane.wait_for_metric("vane_rules_loaded", 1)


def _unschedulable_message(cluster: MeasuredCluster, name: str) -> str:
    conditions = cluster.api.pod(name)["status"].get("conditions", [])
    return next(
        (c.get("message", "") for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"), ""
    )


def test_prometheus_down_stops_nothing(
    cluster: MeasuredCluster, start_vane: StartVane, tmp_path: Path, kubelet: TestKubelet
) -> None:
    assert kubelet is not None
    cluster.set_cpu(HOT, 0.95)
    rule_file = tmp_path / "rules.yaml"
    rule_file.write_text(rules(refuse_above(0.8), prefer_idle(5)))
    vane = start_vane(rules=[rule_file], prometheus=cluster.prometheus.url)
    vane.wait_for_metric('vane_signal_state{signal="node_cpu",state="fresh"}', 1)
    cluster.place("up", 20)

    cluster.prometheus.kill()
    cluster.place("just-down", 20)
    vane.wait_for_metric('vane_signal_state{signal="node_cpu",state="absent"}', 1, timeout=20)
    vane.wait_for_metric('vane_prometheus_up{server=""}', 0)
    assert vane.is_ready()
    cluster.place("long-down", 20)

    cluster.prometheus.restart()
    cluster.set_cpu(HOT, 0.95)  # returns once Prometheus shows it again
    took = OwnTime([*vane.pids(), cluster.prometheus.process.pid])
    vane.wait_for_metric('vane_signal_state{signal="node_cpu",state="fresh"}', 1)
    assert took.seconds <= INTERVAL_S + 2.0, "an interval, the second that a page is kept, and room"
    vane.wait_for_metric('vane_prometheus_up{server=""}', 1)
