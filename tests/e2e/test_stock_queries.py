"""Rules, alerts and dashboard queries by which kube-scheduler is watched, asked of a Prometheus that scrapes Vane."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.conftest import StartVane
from tests.support.controlplane import ControlPlane
from tests.support.kubeapi import KubeApi
from tests.support.plugin import StartPrometheus
from tests.support.prometheus import PrometheusServer
from tests.support.vane import VaneProcess
from tests.support.waiting import wait_until
from tests.support.watch_proxy import WatchProxy

STOCK: dict[str, list[dict[str, Any]]] = yaml.safe_load(
    (Path(__file__).parent / "data" / "stock_queries.yaml").read_text()
)
# One cluster without a name, every instance, and Grafana's four scrapes, here of a second each.
VARIABLES = {"$cluster": "", "$instance": ".+", "$__rate_interval": "4s"}
RULES = [{"name": "kube-scheduler.rules", "rules": STOCK["rules"]}]
ALERTS = [{"name": "kubernetes-system-scheduler", "rules": STOCK["alerts"]}]


def scraping(vane: VaneProcess) -> dict[str, Any]:
    return {
        "job_name": "kube-scheduler",
        "scheme": "https",
        "tls_config": {"insecure_skip_verify": True},
        "static_configs": [{"targets": [f"127.0.0.1:{vane.port}"]}],
    }


@pytest.fixture
def proxy(control_plane: ControlPlane) -> Iterator[WatchProxy]:
    proxy = WatchProxy(control_plane)
    proxy.start()
    yield proxy
    proxy.stop()


def test_every_query_about_what_is_built_is_answered(
    api: KubeApi, proxy: WatchProxy, start_vane: StartVane, start_prometheus: StartPrometheus, tmp_path: Path
) -> None:
    for i in range(3):
        api.create_node(f"node-{i}")
    vane = start_vane(kubeconfig=proxy.write_kubeconfig(tmp_path / "kubeconfig"))
    prometheus = start_prometheus([scraping(vane)], rule_groups=RULES)
    place_pods(api, "first")
    wait_until(lambda: finite(prometheus, "scheduler_schedule_attempts_total"), 15.0, "the first Pods in Prometheus")
    # A rate needs a sample before the increase, here of Pods bound and of lists asked for.
    proxy.expire_watches()
    place_pods(api, "second")
    recorded = [f'{rule["record"]}{{quantile="{rule["labels"]["quantile"]}"}}' for rule in STOCK["rules"]]
    wait_until(lambda: all(finite(prometheus, series) for series in recorded), 15.0, f"all of {recorded}")

    unanswered = {panel["title"]: panel["expr"] for panel in STOCK["panels"] if not finite(prometheus, panel["expr"])}
    rare = {panel["title"] for panel in STOCK["panels"] if "rare" in panel}
    assert unanswered.keys() - rare == {panel["title"] for panel in STOCK["panels"] if "empty" in panel}, unanswered


def test_alerts_are_quiet_while_it_runs_and_speak_when_it_is_gone(
    start_vane: StartVane, start_prometheus: StartPrometheus
) -> None:
    vane = start_vane()
    prometheus = start_prometheus([scraping(vane)], rule_groups=ALERTS)
    prometheus.wait_for_value("up", "kube-scheduler", 1, 1, label="job")
    assert {alert["alert"]: prometheus.query(alert["expr"]) for alert in STOCK["alerts"]} == {
        "KubeSchedulerDown": [],
        "KubeSchedulerInstanceUnreachable": [],
    }

    vane.stop()

    def pending() -> set[str]:
        return {sample["metric"]["alertname"] for sample in prometheus.query('ALERTS{alertstate="pending"}')}

    wait_until(lambda: pending() == {alert["alert"] for alert in STOCK["alerts"]}, 10.0, "both alerts pending")


def test_promtool_accepts_the_rules(tmp_path: Path, programs: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": RULES + ALERTS}))
    checked = subprocess.run([programs / "promtool", "check", "rules", file], capture_output=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def place_pods(api: KubeApi, prefix: str) -> None:
    for i in range(10):
        api.create_pod(f"{prefix}-{i}", scheduler_name="vane")
    for i in range(10):
        api.wait_bound(f"{prefix}-{i}")


def finite(prometheus: PrometheusServer, expression: str) -> bool:
    """Return whether a query has an answer, and every sample of it is a number."""
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    samples = [float(sample["value"][1]) for sample in prometheus.query(expression)]
    return bool(samples) and all(map(math.isfinite, samples))
