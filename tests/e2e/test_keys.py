"""Cards, workloads and pairs of zones: real API server, real Prometheus, `vane run`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.conftest import StartVane
from tests.support.exporter import NodeExporter
from tests.support.kubeapi import KubeApi
from tests.support.plugin import StartPrometheus
from tests.support.prometheus import PrometheusServer
from tests.support.vane import VaneProcess
from tests.support.waiting import wait_until

CARD = "nvidia.com/gpu"
ZONES = {"node-a": "a", "node-b": "b", "node-c": "c"}
RULES = """\
apiVersion: vane.dev/v1
kind: Rules
signals:
  cards: {expr: 'max by (instance, gpu) (util)', by: gpu, unit: percent, interval: 1s, max_age: 10s}
  own_p99:
    expr: max by (instance, app, namespace) (p99)
    by: workload
    workload: {label: app, namespace: namespace}
    unit: s
    interval: 1s
    max_age: 10s
  way:
    expr: max by (source, target) (rtt)
    by: pair
    pair: {label: topology.kubernetes.io/zone, from: source, to: target}
    unit: s
    interval: 1s
    max_age: 10s
rules:
  - {name: idle-cards, signal: cards, filter: {max: 90%}}
  - {name: fast-for-me, signal: own_p99, workload: app, score: {best: 0s, worst: 1s}, weight: 100, max_share: 100%}
  - name: near-db
    match: {labels: {calls: db}}
    signal: way
    calls: {labels: {app: db}}
    score: {best: 0s, worst: 100ms}
    weight: 100
    max_share: 100%
"""


@pytest.fixture
def prometheus(api: KubeApi, exporter: NodeExporter, start_prometheus: StartPrometheus) -> PrometheusServer:
    for node, zone in ZONES.items():
        api.create_node(node, extended={CARD: "2"}, labels={"topology.kubernetes.io/zone": zone})
        exporter.add_node(node)
    for node, cards in {"node-a": (95, 10), "node-b": (95, 95), "node-c": (10, 10)}.items():
        for i, use in enumerate(cards):
            exporter.set_gauge(node, f'util{{gpu="{i}"}}', use)
    for app, slow in (("cart", ("node-a", "node-c")), ("web", ("node-b", "node-c"))):
        for node in ZONES:
            exporter.set_gauge(node, f'p99{{app="{app}",namespace="default"}}', 0.9 if node in slow else 0.1)
    for source, seconds in {"a": 0.05, "b": 0.03, "c": 0.001}.items():
        exporter.set_gauge("node-a", f'rtt{{source="{source}",target="b"}}', seconds)
    return start_prometheus([exporter.scrape_config()], scrape_interval="500ms")


@pytest.fixture
def vane(start_vane: StartVane, prometheus: PrometheusServer, tmp_path: Path) -> VaneProcess:
    rules = tmp_path / "rules.yaml"
    rules.write_text(RULES)
    wait_until(lambda: len(prometheus.query("rtt")) == 3 and len(prometheus.query("util")) == 6, 20.0, "two scrapes")
    started = start_vane(rules=[rules], prometheus=prometheus.url)
    for signal, n_series in {"cards": 6, "own_p99": 6, "way": 3}.items():
        started.wait_for_metric(f'vane_signal_series{{signal="{signal}",state="mapped"}}', n_series)
    return started


def refusal(api: KubeApi, name: str) -> str:
    conditions = api.pod(name)["status"].get("conditions", [])
    return next((one.get("message", "") for one in conditions if one["type"] == "PodScheduled"), "")


def wanting(api: KubeApi, name: str, n_cards: int) -> None:
    cards = {CARD: str(n_cards)}
    api.create_pod(name, scheduler_name="vane", requests=cards, limits=cards)


@pytest.mark.usefixtures("kubelet", "vane")
def test_a_pod_goes_where_as_many_cards_are_idle_as_it_asks_for(api: KubeApi, exporter: NodeExporter) -> None:
    wanting(api, "two", 2)
    assert api.wait_bound("two") == "node-c"
    for name in ("one", "another"):
        wanting(api, name, 1)
        assert api.wait_bound(name) == "node-a"

    wanting(api, "late", 1)
    told = f'0/3 nodes are available: 1 node(s) rejected by rule "idle-cards", 2 Insufficient {CARD}.'
    wait_until(lambda: refusal(api, "late").startswith(told), 10.0, told)
    api.create_pod("plain", scheduler_name="vane", spec={"nodeSelector": {"kubernetes.io/hostname": "node-b"}})
    assert api.wait_bound("plain") == "node-b", "it asks for no card"

    exporter.set_gauge("node-b", 'util{gpu="1"}', 20)
    assert api.wait_bound("late") == "node-b"


@pytest.mark.usefixtures("kubelet", "vane")
def test_a_pod_goes_where_its_own_service_is_fast_and_near_what_it_calls(api: KubeApi) -> None:
    for app, node in (("cart", "node-b"), ("web", "node-a")):
        api.create_pod(app, scheduler_name="vane", labels={"app": app})
        assert api.wait_bound(app) == node

    at_b = {"nodeSelector": {"kubernetes.io/hostname": "node-b"}}
    api.create_pod("db", scheduler_name="vane", labels={"app": "db"}, spec=at_b)
    assert api.wait_bound("db") == "node-b"
    api.create_pod("caller", scheduler_name="vane", labels={"calls": "db"})
    assert api.wait_bound("caller") == "node-c", "one millisecond to zone b"
