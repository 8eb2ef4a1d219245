"""The endpoint answers what a real Prometheus answers, to the letter, and Vane's own client can use it."""

from __future__ import annotations

import gzip
import json
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any

import pytest
from prometheus_api_client import PrometheusConnect

from scheduler.errors import ConfigError
from scheduler.evaluator.server import PrometheusServer
from scheduler.evaluator.store import SeriesStore
from scheduler.model.identity import NodeIdentity
from scheduler.model.rules import ByKind, RuleSet, Signal
from scheduler.signals.answers import SignalAnswer
from scheduler.signals.asking.client import ClientSettings, PrometheusClient
from scheduler.signals.asking.lag_query import MARK, lag_query
from scheduler.signals.asking.query_errors import PrometheusUnreachable, QueryRejected, TooMuchData
from scheduler.signals.asking.refresher import Refresher
from scheduler.signals.format.promql import reaches
from tests.evaluator.conftest import Twins
from tests.evaluator.samples import T0_S
from tests.evaluator.serving import Served, served
from tests.signals.asking.scripted import NoObserver
from tests.support.clocks import OwnTime
from tests.support.waiting import wait_until

NOW_S = T0_S + 1485.0
Reply = tuple[int, dict[str, Any], Mapping[str, str]]


@pytest.fixture(scope="module")
def endpoint(made_up: SeriesStore) -> Iterator[Served]:
    with served(PrometheusServer(made_up, lambda: NOW_S)) as started:
        yield started


def ask(
    url: str, path: str, parameters: Mapping[str, str], *, posted: bool = False, encoding: str = "identity"
) -> Reply:
    form = urllib.parse.urlencode(parameters)
    address, body = (f"{url}{path}", form.encode()) if posted else (f"{url}{path}?{form}", None)
    request = urllib.request.Request(address, data=body, headers={"Accept-Encoding": encoding})
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            status, body, said = response.status, response.read(), dict(response.headers)
    except urllib.error.HTTPError as error:
        with error:
            status, body, said = error.code, error.read(), dict(error.headers)
    if said.get("Content-Encoding") == "gzip":
        body = gzip.decompress(body)
    return status, json.loads(body), said


def ordered(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer with its series in one order, without what is only said for information."""
    answer = {key: value for key, value in answer.items() if key != "infos"}
    data = answer.get("data")
    if isinstance(data, dict) and data.get("resultType") in ("vector", "matrix"):
        data["result"].sort(key=lambda series: sorted(series["metric"].items()))
    return answer


@pytest.mark.parametrize(
    "parameters",
    [
        {"query": "requests_total"},
        {"query": "level"},
        {"query": "tiny"},
        {"query": "wild_total"},
        {"query": "temperature / 3e20"},
        {"query": "capacity * 1e22"},
        {"query": "odd"},
        {"query": "time() / 7"},
        {"query": "time() / 7", "time": "1700000000.123"},
        {"query": "temperature", "time": "2023-11-14T22:20:00.5Z"},
        {"query": "temperature", "time": str(T0_S + 1600), "lookback_delta": "2m"},
        {"query": "temperature", "time": str(T0_S + 1600), "lookback_delta": "1m55s"},
        {"query": "temperature", "time": str(T0_S + 1600), "lookback_delta": "115.5"},
        {"query": "temperature", "limit": "0"},
        {"query": "temperature", "limit": "9", "timeout": "5s"},
        {"query": "nothing_here"},
        {"query": "temperature + on (zone) node_info"},
        {"query": '{__name__=~"same_name|other_name"} * 2'},
        {"query": "temperature", "time": "yesterday"},
        {"query": "temperature", "timeout": "soon"},
        {"query": "temperature", "limit": "-1"},
    ],
    ids=lambda parameters: " ".join(parameters.values()),
)
def test_an_answer_is_the_same_to_the_letter(endpoint: Served, twins: Twins, parameters: dict[str, str]) -> None:
    parameters = {"time": repr(NOW_S), **parameters}
    status, ours, _ = ask(endpoint.url, "/api/v1/query", parameters)
    expected, theirs, _ = ask(twins.url, "/api/v1/query", parameters)
    assert status == expected
    if status == 400:
        assert (ours["status"], ours["errorType"]) == (theirs["status"], theirs["errorType"])
        assert ours["error"].partition(":")[0] == theirs["error"].partition(":")[0]
    else:
        assert ordered(ours) == ordered(theirs)


@pytest.mark.parametrize(
    "query",
    [
        "temperature",
        "sum by (job) (rate(requests_total[2m]))",
        "temperature > 20",
        "time()",
        "requests_total @ end() - requests_total @ start()",
        "histogram_quantile(0.9, sum by (le) (rate(latency_seconds_bucket[1m])))",
        "nothing_here",
        '{__name__=~"same_name|other_name"} * 2',
    ],
)
def test_a_range_is_the_same(endpoint: Served, twins: Twins, query: str) -> None:
    parameters = {"query": query, "start": str(T0_S + 600), "end": str(T0_S + 1805), "step": "37s"}
    ours = ask(endpoint.url, "/api/v1/query_range", parameters, posted=True)
    theirs = ask(twins.url, "/api/v1/query_range", parameters, posted=True)
    assert ours[0] == theirs[0]
    assert ordered(ours[1]) == ordered(theirs[1])


@pytest.mark.parametrize(
    "wrong", [{"end": "1"}, {"step": "0"}, {"step": "1ms"}, {"start": "x"}, {"step": ""}, {"query": "sum("}]
)
def test_a_range_that_cannot_be(endpoint: Served, twins: Twins, wrong: dict[str, str]) -> None:
    parameters = {"query": "temperature", "start": "100", "end": "200", "step": "1", **wrong}
    status, ours, _ = ask(endpoint.url, "/api/v1/query_range", parameters)
    expected, theirs, _ = ask(twins.url, "/api/v1/query_range", parameters)
    assert (status, ours["errorType"]) == (expected, theirs["errorType"]) == (400, "bad_data")


def test_labels_and_their_values(endpoint: Served, twins: Twins) -> None:
    for path in (
        "/api/v1/labels",
        "/api/v1/label/__name__/values",
        "/api/v1/label/node/values",
        "/api/v1/label/x/values",
    ):
        assert ask(endpoint.url, path, {})[1]["data"] == ask(twins.url, path, {})[1]["data"], path


def test_by_get_and_by_post(endpoint: Served) -> None:
    by_get = ask(endpoint.url, "/api/v1/query", {"query": "level"})
    by_post = ask(endpoint.url, "/api/v1/query", {"query": "level"}, posted=True)
    assert by_get[:2] == by_post[:2]
    assert by_get[1]["data"]["result"][0]["value"][0] == NOW_S
    assert parsedate_to_datetime(by_get[2]["Date"]).timestamp() == NOW_S


def test_compressed_where_asked_for(endpoint: Served) -> None:
    parameters = {"query": '{__name__=~".+"}'}
    plain = ask(endpoint.url, "/api/v1/query", parameters)
    packed = ask(endpoint.url, "/api/v1/query", parameters, encoding="gzip, deflate")
    assert plain[1] == packed[1]
    assert "Content-Encoding" not in plain[2]
    assert packed[2]["Content-Encoding"] == "gzip"


def test_a_truncated_answer_says_so(endpoint: Served, twins: Twins) -> None:
    parameters = {"query": "temperature", "limit": "2", "time": repr(NOW_S)}
    ours, theirs = (ask(url, "/api/v1/query", parameters)[1] for url in (endpoint.url, twins.url))
    assert len(ours["data"]["result"]) == len(theirs["data"]["result"]) == 2
    assert ours["warnings"] == theirs["warnings"]


def test_a_node_outside_the_subset_is_422_and_named(endpoint: Served) -> None:
    status, answer, _ = ask(endpoint.url, "/api/v1/query", {"query": "sum(deriv(temperature[5m]))"})
    assert (status, answer["status"], answer["errorType"]) == (422, "error", "execution")
    assert answer["error"].startswith("Call deriv is not supported")


def test_what_is_not_spoken_here(endpoint: Served) -> None:
    status, answer, _ = ask(endpoint.url, "/api/v1/alerts", {})
    assert (status, answer["errorType"]) == (404, "not_found")
    assert "/api/v1/alerts" in answer["error"]
    status, answer, _ = ask(endpoint.url, "/-/ready", {"a": "b"}, posted=True)
    assert (status, answer["errorType"]) == (405, "bad_data")


def test_a_query_ends_at_its_timeout(made_up: SeriesStore) -> None:
    ticks = iter(range(10**6))
    with served(PrometheusServer(made_up, lambda: NOW_S, monotonic=lambda: float(next(ticks)))) as endpoint:
        for timeout, expected in (("3s", 503), ("1m", 200)):
            status, answer, _ = ask(endpoint.url, "/api/v1/query", {"query": "1+2+3+4+5+6", "timeout": timeout})
            assert status == expected
            if status == 503:
                assert answer["errorType"] == "timeout"


def test_other_clients_find_it_alive(endpoint: Served) -> None:
    client = PrometheusConnect(endpoint.url)
    assert client.check_prometheus_connection()
    assert "temperature" in client.all_metrics()
    for path in ("/-/ready", "/-/healthy", "/"):
        with urllib.request.urlopen(endpoint.url + path, timeout=10) as response:
            assert response.status == 200
    assert ask(endpoint.url, "/api/v1/status/buildinfo", {})[1]["data"]["version"]


def test_down_and_up_again_on_the_same_port(made_up: SeriesStore) -> None:
    with served(PrometheusServer(made_up, lambda: NOW_S)) as endpoint:
        port = endpoint.port
        client = PrometheusClient(ClientSettings(endpoint.url))
        assert client.query("count(level)").series
        took = OwnTime()
        endpoint.stop()
        assert took.seconds < 3.0, "a kept connection holds it up"
        with pytest.raises(PrometheusUnreachable):
            client.query("count(level)")
        endpoint.start(port)
        assert client.query("count(level)").series
        client.close()


def test_a_taken_port_is_one_clear_line(made_up: SeriesStore) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, served(PrometheusServer(made_up, lambda: NOW_S)) as endpoint:
        port = taken.getsockname()[1]
        other = PrometheusServer(made_up, lambda: NOW_S)
        with pytest.raises(ConfigError, match=f"Prometheus endpoint 127.0.0.1:{port}: cannot listen there") as refused:
            endpoint.run(other.start(port=port))
        assert "\n" not in str(refused.value)


def test_vanes_client(endpoint: Served) -> None:
    client = PrometheusClient(ClientSettings(endpoint.url, max_series=10))
    result = client.query("temperature", lookback_s=60.0)
    assert result.server_time_s == NOW_S
    assert len(result.series) == 5
    assert client.query("scalar(sum(temperature))").is_scalar
    read = reaches('rate(uneven_total[5m]) / on () sum(temperature{node="n1"})')
    newest = client.query(lag_query(read, (), 30.0, 15.0)).series
    assert [one.metric for one in newest] == [{MARK: "0"}, {MARK: "1"}]
    assert all(one.value and 0 <= NOW_S - float(one.value[1]) <= 120 for one in newest)
    for query, said in (("sum(", "400, bad_data"), ("temperature[5m]", "422, execution: MatrixSelector")):
        with pytest.raises(QueryRejected, match=said):
            client.query(query)
    with pytest.raises(TooMuchData, match="more than 10 series"):
        client.query('{__name__=~".+"}')
    client.close()


def test_the_refresher_unmodified() -> None:
    store = SeriesStore()
    nodes = ("n1", "n2", "n3")
    published: dict[str, SignalAnswer] = {}
    load = Signal("load", "max by (instance) (rate(busy_seconds_total[1m]))", interval_s=0.3, max_age_s=60.0)
    high = Signal("high", "count(level > 1) or vector(0)", by=ByKind.CLUSTER, interval_s=0.3, max_age_s=60.0)
    odd = Signal("odd", "deriv(level[1m])", interval_s=0.3, max_age_s=60.0)

    def scrape(at_s: float) -> None:
        for i, node in enumerate(nodes):
            labels = {"instance": f"{node}:9100", "job": "node"}
            store.append({"__name__": "busy_seconds_total", **labels}, at_s, (at_s - begun_s + 100) * i / 4)
            store.append({"__name__": "level", **labels}, at_s, float(i))

    now_s = time.time()  # noqa: TID251 - the samples have to be of the time in which the refresher asks
    begun_s = now_s - 60
    for i in range(60):
        scrape(begun_s + i)
    with served(PrometheusServer(store, lambda: now_s)) as endpoint:
        client = PrometheusClient(ClientSettings(endpoint.url))
        refresher = Refresher(client, lambda answer: published.__setitem__(answer.signal, answer), NoObserver())
        refresher.set_identity(NodeIdentity(1, nodes, {node: i for i, node in enumerate(nodes)}))
        refresher.set_rules(RuleSet({one.name: one for one in (load, high, odd)}, (), 1))
        wait_until(lambda: len(published) == 3, what="an answer or a failure of every signal")
        refresher.stop()
        client.close()
    assert published["load"].error == ""
    assert published["load"].n_mapped == 3
    assert 0.5 < published["load"].lag_s < 2.0
    assert published["high"].value == 1.0
    assert "422, execution: Call deriv" in published["odd"].error
