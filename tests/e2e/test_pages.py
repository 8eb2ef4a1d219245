"""The pages of the running scheduler, and its start while Prometheus is down."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.e2e.conftest import StartVane
from tests.e2e.world import MeasuredCluster, prefer_idle, refuse_above, rules
from tests.support.kubeapi import KubeApi
from tests.support.ports import free_port


def test_metrics_follow_the_conventions_and_speak_for_all_processes(
    cluster: MeasuredCluster, start_vane: StartVane, tmp_path: Path, programs: Path
) -> None:
    cluster.set_cpu((), 0.9)
    rule_file = tmp_path / "rules.yaml"
    rule_file.write_text(rules(refuse_above(0.8), prefer_idle(5)))
    vane = start_vane(rules=[rule_file], prometheus=cluster.prometheus.url)
    cluster.place("pod", 10)
    vane.wait_for_metric('vane_signal_coverage_ratio{signal="node_cpu"}', 1)

    page = vane.page("metrics")

    checked = subprocess.run(
        [programs / "promtool", "check", "metrics"], input=page.encode(), capture_output=True, check=False
    )
    assert checked.returncode == 0, checked.stderr.decode() + checked.stdout.decode()
    assert sum(not line.startswith("#") for line in page.splitlines()) <= 5_000
    for process in ("deciding", "binder", "refresher"):
        assert f'process_resident_memory_bytes{{process="{process}"}}' in page
    for name in (
        'scheduler_pending_pods{queue="active"}',
        'scheduler_framework_extension_point_duration_seconds_count{extension_point="Filter",profile="vane"',
        'rest_client_requests_total{code="201",',
        'vane_signal_query_duration_seconds_count{signal="node_cpu"}',
        'vane_signal_age_seconds{signal="node_cpu"}',
        "vane_rules_last_reload_successful 1.0",
    ):
        assert name in page
    assert "[+]caches-synced ok" in vane.page("readyz?verbose")
    assert vane.page("livez") == vane.page("healthz") == "ok"


def test_it_starts_and_schedules_while_prometheus_is_down(api: KubeApi, start_vane: StartVane, tmp_path: Path) -> None:
    api.create_node("a")
    api.create_node("b")
    rule_file = tmp_path / "rules.yaml"
    rule_file.write_text(rules(refuse_above(0.8), prefer_idle(5)))

    vane = start_vane(rules=[rule_file], prometheus=f"http://127.0.0.1:{free_port()}")
    api.create_pod("web", scheduler_name="vane")

    assert api.wait_bound("web") in ("a", "b")
    assert "signal node_cpu: no answer (unreachable)" in vane.process.log_text()
    assert "some signals have no answer yet" in vane.process.log_text()
    vane.wait_for_metric('vane_prometheus_up{server=""}', 0)


def test_every_decision_can_be_looked_up_with_the_sample_behind_it(
    cluster: MeasuredCluster, start_vane: StartVane, tmp_path: Path
) -> None:
    cluster.set_cpu((), 0.9)
    rule_file = tmp_path / "rules.yaml"
    rule_file.write_text(rules(refuse_above(0.8), prefer_idle(5)))
    vane = start_vane(rules=[rule_file], prometheus=cluster.prometheus.url)
    vane.wait_for_metric('vane_signal_coverage_ratio{signal="node_cpu"}', 1)
    cluster.place("pod", 3)

    page = json.loads(vane.page("decisions?after=0"))

    placed = [one for one in page["decisions"] if one["node"]]
    assert {one["pod"] for one in placed} == {f"default/pod-{i}" for i in range(3)}
    assert page["next"] == page["decisions"][-1]["number"] == len(page["decisions"])
    for one in placed:
        (use,) = one["rules"][:1]
        assert (use["signal"], use["freshness"]) == ("node_cpu", "fresh")
        assert 0 <= use["age_s"] < 60
        assert one["total"][0] == sum(term["contribution"][0] for term in one["terms"])
