"""The client, the refresher and the store against a real Prometheus."""

from __future__ import annotations

import time

import pytest

from scheduler.model.identity import NodeIdentity
from scheduler.model.nodes import NodeTable
from scheduler.model.rules import ByKind, Rule, RuleFilter, RuleSet, Signal
from scheduler.model.views import NodeView
from scheduler.signals.answers import SignalAnswer
from scheduler.signals.asking.client import ClientSettings, PrometheusClient
from scheduler.signals.asking.lag import lag_of, lag_query
from scheduler.signals.asking.query_errors import PrometheusUnreachable, QueryRejected, TooMuchData, WrongResultType
from scheduler.signals.asking.refresher import Refresher
from scheduler.signals.columns.store import SignalStore
from tests.builders import make_node
from tests.signals.store_world import crossed
from tests.support.exporter import NodeExporter
from tests.support.plugin import StartPrometheus
from tests.support.prometheus import PrometheusServer
from tests.support.waiting import wait_until

NODES = ("n1", "n2", "n3")
LOAD = Signal("load", "max by (instance) (node_load1)", interval_s=0.5, max_age_s=5.0)
BUSY = Signal("busy", "sum(node_load1)", by=ByKind.CLUSTER, interval_s=0.5, max_age_s=5.0)
TWICE = Signal("twice", '{__name__=~"node_load1|node_load5"}', interval_s=0.5, max_age_s=5.0)
HIGH = Rule("high", "load", filter=RuleFilter(max=4.0, max_clear=2.0))


@pytest.fixture
def prometheus(exporter: NodeExporter, start_prometheus: StartPrometheus) -> PrometheusServer:
    for i, name in enumerate(NODES):
        exporter.add_node(name)
        exporter.set_gauge(name, "node_load1", float(i))
    server = start_prometheus([exporter.scrape_config()])
    for i, name in enumerate(NODES):
        server.wait_for_value("node_load1", name, i, i)
    return server


def client_of(server: PrometheusServer, max_series: int = 1000) -> PrometheusClient:
    return PrometheusClient(ClientSettings(server.url, max_series=max_series))


def test_queries_and_errors(prometheus: PrometheusServer) -> None:
    client = client_of(prometheus)
    before = time.monotonic()
    result = client.query("node_load1", lookback_s=60.0)
    assert before <= result.evaluated_at_s <= time.monotonic()
    assert {one.metric["instance"]: one.value[1] for one in result.series if one.value} == {
        "n1": "0",
        "n2": "1",
        "n3": "2",
    }
    assert client.query("scalar(sum(node_load1))").is_scalar
    padding = " " * 100_000
    assert len(client.query(f"node_load1{padding}").series) == 3
    with pytest.raises(QueryRejected, match="bad_data"):
        client.query("sum(")
    with pytest.raises(QueryRejected, match="execution"):
        client.query("node_load1 * on (job) node_load1")
    with pytest.raises(WrongResultType, match="matrix"):
        client.query("node_load1[1m]")
    with pytest.raises(WrongResultType, match="string"):
        client.query('"text"')
    with pytest.raises(TooMuchData, match="more than 2 series"):
        client_of(prometheus, max_series=2).query("node_load1")
    assert client.query("sum(node_load1) + avg(rate(node_load1[1m]))").warnings == (), "an info is no warning"
    assert len(client_of(prometheus, max_series=3).query("node_load1").series) == 3


def test_the_lag_is_that_of_the_scrapes_and_old_samples_end(
    prometheus: PrometheusServer, exporter: NodeExporter
) -> None:
    client = client_of(prometheus)
    lag_s = lag_of(client.query(lag_query("sum(rate(node_cpu_seconds_total[5m])) / sum(node_load1)"), 60.0))
    assert lag_s is not None
    assert 0.0 <= lag_s < 2.5
    # A scrape that fails marks its series stale; a recorded series or a frozen exporter would just stop.
    exporter.set_down("n1")
    wait_until(lambda: len(client.query("node_load1", lookback_s=60.0).series) == 2, 10.0, "the dead node's end")


def last_error(said: list[tuple[SignalAnswer, frozenset[str]]]) -> str:
    return next(answer.error for answer, _ in reversed(said) if answer.signal == "load")


def test_from_prometheus_to_a_table_and_through_an_outage(prometheus: PrometheusServer, exporter: NodeExporter) -> None:
    table = NodeTable()
    for name in NODES:
        table.set_node(make_node(name))
    identity = NodeIdentity.of(1, [node for node in table.objects if node is not None])
    store = SignalStore()
    store.add_identity(identity)
    said: list[tuple[SignalAnswer, frozenset[str]]] = []
    refresher = Refresher(client_of(prometheus), lambda answer: said.append((answer, store.publish(crossed(answer)))))
    rules = RuleSet({signal.name: signal for signal in (LOAD, BUSY, TWICE)}, (HIGH,), 1)

    def columns() -> dict[str, list[float]]:
        frozen = store.freeze(NodeView(table), time.monotonic())
        return {name: column.values.tolist() for name, column in frozen.columns.items()}

    def announce(loaded: RuleSet) -> None:
        store.set_rules(loaded)

    try:
        refresher.set_identity(identity)
        refresher.swap(rules, announce)
        assert columns()["load"] == [0.0, 1.0, 2.0]
        assert columns()["busy"] == [3.0, 3.0, 3.0]
        twice = store.answer("twice")
        assert twice is not None
        assert (twice.n_mapped, twice.drops.duplicate) == (0, 6)

        exporter.set_gauge("n2", "node_load1", 9.0)
        wait_until(lambda: columns()["load"][1] == 9.0, 10.0, "the new value")
        assert frozenset({"high"}) in [changed for _, changed in said]
        frozen = store.freeze(NodeView(table), time.monotonic())
        assert frozen.tripped["high"].tolist() == [False, True, False]
        assert frozen.columns["load"].age_s < 4.0

        prometheus.kill()
        wait_until(lambda: last_error(said), 10.0, "the outage to be noticed")
        with pytest.raises(PrometheusUnreachable):
            client_of(prometheus).query("up")
        assert columns()["load"][1] == 9.0, "the last answer holds on"
        wait_until(lambda: store.expire(time.monotonic()) == {"high"}, 10.0, "the samples to grow too old")
        assert not store.freeze(NodeView(table), time.monotonic()).tripped["high"].any()

        prometheus.restart()
        wait_until(lambda: not last_error(said), 25.0, "the recovery")
    finally:
        refresher.stop()
