"""The client, the refresher and the store against a real Prometheus."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import pytest

from scheduler.model.identity import NodeIdentity
from scheduler.model.nodes import NodeTable
from scheduler.model.rules import ByKind, Rule, RuleFilter, RuleSet, Signal
from scheduler.model.views import NodeView
from scheduler.signals.answers import SignalAnswer
from scheduler.signals.asking.asker import AskContext, SignalAsker
from scheduler.signals.asking.client import ClientSettings, PrometheusClient
from scheduler.signals.asking.query_errors import PrometheusUnreachable, QueryRejected, TooMuchData, WrongResultType
from scheduler.signals.asking.refresher import Refresher
from scheduler.signals.asking.resolver import NodeResolver
from scheduler.signals.asking.session import Bounds
from scheduler.signals.columns.store import SignalStore
from tests.builders import make_node
from tests.signals.asking.scripted import NoObserver
from tests.signals.columns.store_world import crossed
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


def identity_of(names: Sequence[str]) -> NodeIdentity:
    return NodeIdentity.of(1, [make_node(name) for name in names])


def client_of(server: PrometheusServer, max_series: int = 1000) -> PrometheusClient:
    return PrometheusClient(ClientSettings(server.url, max_series=max_series))


def test_queries_and_errors(prometheus: PrometheusServer) -> None:
    client = client_of(prometheus)
    before = time.monotonic()
    result = client.query("node_load1", lookback_s=60.0)
    assert before <= result.evaluated_at_s <= time.monotonic()
    assert {one.metric["instance"]: one.value[1] for one in result.series if one.value} == {
        "n1": 0.0,
        "n2": 1.0,
        "n3": 2.0,
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
    brief = ClientSettings(prometheus.url, bounds=Bounds(read_s=1.75))
    assert len(PrometheusClient(brief).query("node_load1", lookback_s=60.5).series) == 3, "fractions of a second"


def until(ask: Callable[[], SignalAnswer], is_it: Callable[[SignalAnswer], bool], what: str) -> SignalAnswer:
    """Ask until an answer is as wanted, and return it."""
    return wait_until(lambda: [answer] if is_it(answer := ask()) else [], 10.0, what)[0]


NODE_NAMES = "max by (instance, nodename) (last_over_time(node_uname_info[15s]))"
BUSY_OF_INSTANCE = 'sum by (instance) (rate(node_cpu_seconds_total{mode="idle"}[15s]))'


JOINED = f"{BUSY_OF_INSTANCE} * on (instance) group_left (nodename) {NODE_NAMES}"
RENAMED = f'sum by (NODE) (label_replace({BUSY_OF_INSTANCE}, "NODE", "$1", "instance", "(.*)"))'


@pytest.mark.parametrize(
    ("expr", "node_label"),
    [
        pytest.param(BUSY_OF_INSTANCE, "", id="aggregated"),
        pytest.param(JOINED, "", id="joined"),
        pytest.param(RENAMED.replace("NODE", "node"), "", id="renamed"),
        pytest.param(BUSY_OF_INSTANCE, "instance", id="aggregated, by a label that is written"),
        pytest.param(JOINED, "nodename", id="joined, by a label that is written"),
        pytest.param(RENAMED.replace("NODE", "target"), "target", id="renamed to what only the signal knows"),
    ],
)
def test_the_lag_is_that_of_the_scrapes_and_a_dead_exporter_ages_its_node_alone(
    prometheus: PrometheusServer, exporter: NodeExporter, expr: str, node_label: str
) -> None:
    client = client_of(prometheus)
    signal = Signal("busy", expr, interval_s=1.0, max_age_s=6.0, node_label=node_label)
    asker = SignalAsker(signal, time.monotonic, lambda: 1.0)
    resolver = NodeResolver(identity_of(NODES))

    def ask() -> SignalAnswer:
        return asker.ask(AskContext(client, lambda: resolver, 1))

    answer = until(ask, lambda answer: answer.n_mapped == 3, "all nodes")
    assert 0.0 <= answer.lag_s < 2.0
    assert answer.lag_by_key == {}
    # A scrape that fails marks its series as ended, but the range goes on seeing them for 15 s.
    exporter.set_down("n1")
    answer = until(ask, lambda answer: bool(answer.lag_by_key), "the dead exporter's lag")
    assert list(answer.lag_by_key) == ["n1"]
    assert 2.0 < answer.lag_by_key["n1"] <= 6.0
    assert (answer.n_mapped, answer.lag_s < 2.0) == (3, True)
    answer = until(ask, lambda answer: answer.drops.stale > 0, "its end")
    assert (answer.n_mapped, answer.drops.stale, answer.n_series, answer.lag_by_key) == (2, 1, 3, {})
    exporter.set_down("n1", down=False)
    until(ask, lambda answer: answer.n_mapped == 3 and not answer.lag_by_key, "its return")


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
    refresher = Refresher(
        client_of(prometheus), lambda answer: said.append((answer, store.publish(crossed(answer)))), NoObserver()
    )
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
