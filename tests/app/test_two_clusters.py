"""Two clusters with nodes of the same addresses in one Prometheus: each Vane sees its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from scheduler.app.prometheus_servers import make_clients, make_servers, matchers_of
from scheduler.model.identity import NodeIdentity
from scheduler.model.rules import ByKind, Dialect, RuleSet, Signal
from scheduler.settings.prometheus import PrometheusSettings
from scheduler.signals.answers import SignalAnswer
from tests.cli.command import Cli
from tests.signals.asking.scripted import NoObserver
from tests.support.exporter import NodeExporter
from tests.support.plugin import StartPrometheus
from tests.support.prometheus import PrometheusServer
from tests.support.waiting import wait_until

ADDRESSES = ("10.0.0.1", "10.0.0.2")
VALUES = {"prod": 10.0, "edge": 91.0}
SIGNALS = {
    one.name: one
    for one in (
        Signal("load", "max by (instance) (node_load1)", interval_s=1.0, max_age_s=5.0),
        Signal("ranged", "max by (instance) (max_over_time(node_load1[15s]))", interval_s=1.0, max_age_s=5.0),
        Signal(
            "late",
            "max by (instance) (node_load1)",
            interval_s=1.0,
            max_age_s=300.0,
            lag="max by (instance) (node_load1)",
        ),
        Signal("busy", "sum(node_load1)", by=ByKind.CLUSTER, interval_s=1.0, max_age_s=5.0),
        Signal("raw", 'node_load1{cluster="edge"}', interval_s=1.0, max_age_s=5.0),
        Signal("unread", "topk_last(1, node_load1)", interval_s=1.0, max_age_s=5.0, dialect=Dialect.METRICSQL),
    )
}
RULES = """\
apiVersion: vane.dev/v1
kind: Rules
signals: {busy: {expr: sum(node_load1), by: cluster}}
rules: [{name: busy, signal: busy, filter: {max: 100}}]
"""


class Clusters:
    """Exporters of two clusters, scraped by one Prometheus that tells them apart by `cluster` alone."""

    def __init__(self, start_prometheus: StartPrometheus) -> None:
        self.exporters = {name: NodeExporter(ADDRESSES) for name in VALUES}
        configs = []
        for name, exporter in self.exporters.items():
            exporter.start()
            for address in ADDRESSES:
                exporter.set_gauge(address, "node_load1", VALUES[name])
            config = exporter.scrape_config(job_name=f"node-exporter-{name}")
            for target in config["static_configs"]:
                target["labels"] |= {"cluster": name, "job": "node-exporter"}
            configs.append(config)
        self.prometheus: PrometheusServer = start_prometheus(configs)
        wait_until(lambda: self.prometheus.query("count(node_load1) == 4"), 15.0, "samples of both clusters")


@pytest.fixture
def clusters(start_prometheus: StartPrometheus) -> Iterator[Clusters]:
    made = Clusters(start_prometheus)
    yield made
    for exporter in made.exporters.values():
        exporter.stop()


@contextmanager
def vane_of(url: str, cluster: str) -> Iterator[Callable[[str], SignalAnswer]]:
    """Yield what the Vane of a cluster hears last of a signal; without a name, of one that has no matchers."""
    settings = PrometheusSettings.model_validate({"url": url, "matchers": {"cluster": cluster} if cluster else {}})
    nodes = tuple(f"{cluster}-{i}" for i, _ in enumerate(ADDRESSES))
    published: dict[str, SignalAnswer] = {}
    servers = make_servers(settings, lambda answer: published.__setitem__(answer.signal, answer), NoObserver())
    assert servers is not None
    aliases = {address: i for i, address in enumerate(ADDRESSES)}
    servers.set_identity(NodeIdentity(1, nodes, dict(zip(nodes, range(len(nodes)), strict=True)) | aliases))
    servers.set_rules(RuleSet(SIGNALS, (), 1))

    def last(name: str) -> SignalAnswer:
        return wait_until(lambda: [published[name]] if name in published else [], 10.0, name)[0]

    yield last
    servers.stop()


def test_each_vane_sees_its_own_cluster(clusters: Clusters) -> None:
    for cluster, value in VALUES.items():
        with vane_of(clusters.prometheus.url, cluster) as last:
            for name in ("load", "ranged", "late"):
                assert last(name).node_values().tolist() == [value, value], name
            assert last("late").lag_s == value, "the written lag is asked for its own nodes"
            assert last("busy").value == 2 * value
            # A matcher of the selector itself and that of the server both hold.
            assert last("raw").n_series == (2 if cluster == "edge" else 0)
            assert "not PromQL" in last("unread").error


def test_without_matchers_the_clusters_are_mixed(clusters: Clusters) -> None:
    with vane_of(clusters.prometheus.url, "") as last:
        assert last("load").node_values().tolist() == [91.0, 91.0]
        assert last("busy").value == 202.0


def test_a_dead_exporter_of_another_cluster_ages_no_node_of_ours(clusters: Clusters) -> None:
    clusters.exporters["edge"].set_down(ADDRESSES[0])
    with vane_of(clusters.prometheus.url, "edge") as edge, vane_of(clusters.prometheus.url, "prod") as prod:
        wait_until(lambda: [True] if "edge-0" in edge("ranged").lag_by_key else [], 10.0, "the lag of edge-0")
        assert prod("ranged").lag_by_key == {}
        assert prod("ranged").lag_s < 3.0


def test_check_asks_with_the_matchers_and_says_so(clusters: Clusters, tmp_path: Path) -> None:
    vane = Cli()
    (tmp_path / "rules.yaml").write_text(RULES)
    words = ("check", str(tmp_path / "rules.yaml"), "--prometheus", clusters.prometheus.url)
    vane(*words, "--prometheus-matcher", "cluster=prod", environ={"KUBECONFIG": str(tmp_path / "none")})
    assert f'Asked: Prometheus at {clusters.prometheus.url} for {{cluster="prod"}}.' in vane.out
    assert re.search(r"^busy +1 .* 2$", vane.out, re.MULTILINE), "two samples read, not four"


def test_matchers_by_server() -> None:
    settings = PrometheusSettings.model_validate(
        {
            "url": "http://a",
            "matchers": {"cluster": "a"},
            "servers": [{"name": "b", "url": "http://b", "matchers": {"x": "y"}}, {"name": "c", "url": "http://c"}],
        }
    )
    assert matchers_of(settings) == {"": (("cluster", "a"),), "b": (("x", "y"),)}
    assert make_clients(settings).keys() == {"", "b", "c"}
