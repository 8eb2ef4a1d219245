"""Our packs on what real exporters expose, scraped every second as kube-prometheus-stack would: names and coverage."""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from scheduler.model.rules import RuleSet
from tests.exporters import chart
from tests.exporters.asking import absent, ask
from tests.exporters.expected import ABSENT, KUBELETS, PACKS, UNMAPPED
from tests.exporters.programs import NODES, Exporters, exposed, needs_kubelets
from tests.packs.world import RULES, load
from tests.support.prometheus import PrometheusServer
from tests.support.waiting import wait_until

Scrape = Callable[[Sequence[chart.Config]], PrometheusServer]


@pytest.fixture(scope="module")
def scrape(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scrape]:
    """Start Prometheus servers, which have scraped every target three times."""
    servers: list[PrometheusServer] = []

    def start(configs: Sequence[chart.Config]) -> PrometheusServer:
        server = PrometheusServer(programs, tmp_path_factory.mktemp("scraping"), configs)
        servers.append(server)
        server.start()
        n_targets = chart.n_targets(configs)
        seen = f"count(sum_over_time(up[5m]) >= 3) == {n_targets}"
        wait_until(lambda: server.query(seen), 30, f"three scrapes of {n_targets} targets")
        return server

    yield start
    for server in servers:
        server.stop()


@pytest.fixture(scope="module")
def scraped(exporters: Exporters, scrape: Scrape) -> PrometheusServer:
    """All exporters, as kube-prometheus-stack has them scraped."""
    push(exporters)
    return scrape(exporters.scrape_configs())


def push(exporters: Exporters) -> None:
    """Push what a script of each node would: one number, under the node's name."""
    for i, node in enumerate(NODES):
        url = f"http://{exporters.pushgateway}/metrics/job/racks/instance/{node}"
        body = f"# TYPE inlet_celsius gauge\ninlet_celsius {20 + i}\n".encode()
        with urllib.request.urlopen(urllib.request.Request(url, body, method="PUT"), timeout=5):
            pass


@pytest.mark.parametrize("name", PACKS)
def test_a_pack_reads_every_node(scraped: PrometheusServer, exporters: Exporters, name: str) -> None:
    if name in KUBELETS:
        needs_kubelets(exporters)
    for signal, asked in ask(scraped, load(RULES / f"{name}.yaml")).items():
        of_pack = PACKS[name].get(signal)
        if of_pack is None:
            assert asked.answer.n_series == 0, f"{signal}: no exporter here has it"
            continue
        assert set(asked.values) == of_pack, signal
        assert asked.answer.drops.unmapped == UNMAPPED.get(signal, 0), signal
        assert asked.answer.drops.total == asked.answer.drops.unmapped, signal


@pytest.mark.parametrize("name", PACKS)
def test_every_name_in_a_pack_is_exposed(scraped: PrometheusServer, exporters: Exporters, name: str) -> None:
    if name in KUBELETS:
        needs_kubelets(exporters)
    for signal, asked in load(RULES / f"{name}.yaml").asked.items():
        if signal in PACKS[name]:
            assert absent(scraped, asked.expr) == ABSENT.get(signal, set()), signal


def test_the_chart_drops_what_has_no_pod(scraped: PrometheusServer, exporters: Exporters) -> None:
    needs_kubelets(exporters)
    assert scraped.query('count({__name__=~"container_.+", id!="", pod=""})') == []
    assert scraped.values("node_cpu_usage_seconds_total", "node").keys() == NODES.keys()


@pytest.fixture(scope="module")
def root_only(exporters: Exporters, scrape: Scrape) -> PrometheusServer:
    """The kubelets' cAdvisor without the chart's drops, and kube-state-metrics."""
    needs_kubelets(exporters)
    cadvisor = chart.kubelets(exporters.kubelets, "/metrics/cadvisor")
    return scrape([cadvisor, chart.state_metrics(exporters.state_metrics)])


@pytest.mark.parametrize("name", KUBELETS)
def test_without_the_chart_the_root_cgroup_does(root_only: PrometheusServer, name: str) -> None:
    rules = load(RULES / f"{name}.yaml")
    for signal, asked in ask(root_only, rules).items():
        assert set(asked.values) == PACKS[name][signal], signal
        missing = absent(root_only, rules.asked[signal].expr)
        assert not {selector for selector in missing if 'id="/"' in selector}, signal
        assert not {"id", "node"} & missing, signal


def test_the_kubelet_says_of_which_image_a_cgroup_is(exporters: Exporters) -> None:
    """Prometheus drops empty labels, and these kubelets have no containers: so this reads the page itself."""
    needs_kubelets(exporters)
    page = exposed(f"https://{exporters.kubelets['node-1']}/metrics/cadvisor")
    for metric in ("container_cpu_usage_seconds_total", "container_memory_working_set_bytes"):
        assert re.search(rf'^{metric}\{{container="",.*id="/",image="",', page, re.MULTILINE), metric


def test_what_is_pushed_under_a_nodes_name_is_of_that_node(scraped: PrometheusServer, tmp_path: Path) -> None:
    wait_until(lambda: len(scraped.query("inlet_celsius")) == len(NODES), 10, "what was pushed")
    asked = ask(scraped, inlets(tmp_path))["inlet"]
    assert asked.values == {"node-1": 20.0, "node-2": 21.0, "node-3": 22.0}


def inlets(folder: Path) -> RuleSet:
    (folder / "inlet.yaml").write_text(
        """
apiVersion: vane.dev/v1
kind: Rules
signals:
  inlet: {expr: max by (instance) (inlet_celsius), by: node, unit: celsius}
rules:
  - {name: cool, signal: inlet, score: {best: 18C, worst: 30C}}
"""
    )
    return load(folder / "inlet.yaml")
