"""The shortest line: no rules, a few nodes, Pods bound."""

from __future__ import annotations

from tests.e2e.conftest import StartVane
from tests.support.kubeapi import KubeApi


def test_pods_of_ours_are_bound_and_others_left_alone(api: KubeApi, start_vane: StartVane) -> None:
    for i in range(3):
        api.create_node(f"node-{i}")
    vane = start_vane()
    api.create_pod("other", scheduler_name="somebody-else")
    for i in range(5):
        api.create_pod(f"mine-{i}", scheduler_name="vane")

    for i in range(5):
        assert api.wait_bound(f"mine-{i}").startswith("node-")

    assert "nodeName" not in api.pod("other")["spec"]
    vane.wait_for_metric('scheduler_schedule_attempts_total{profile="vane",result="scheduled"}', 5)
