"""What the deciding thread tells of its signals: cut to what is asked for, in slices, and as decisions see it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np
import pytest

from scheduler.loop.messages import SignalAnswered
from scheduler.loop.pages.pages import HealthQuery
from scheduler.loop.pages.signals import (
    Figures,
    ListingFault,
    NodeFigures,
    RuleFigures,
    SignalFigures,
    SignalListing,
    SignalsQuery,
    VerdictFigures,
)
from scheduler.model.signals import Freshness
from scheduler.rules.shown import Sort
from scheduler.signals.answers import SignalAnswer, signature
from scheduler.signals.asking.ingest import ingest
from scheduler.signals.asking.resolver import NodeResolver
from scheduler.signals.asking.session import ResultSeries
from scheduler.signals.columns.store import SignalStore
from tests.builders import make_node, make_pod
from tests.loop.harness import Harness

RULES = """\
apiVersion: vane.dev/v1
kind: Rules
signals:
  cpu: {expr: max by (node) (cpu), unit: ratio, interval: 10s, max_age: 40s}
  gpu: {expr: max by (node) (gpu), interval: 10s, max_age: 40s}
rules:
  - {name: hot, signal: cpu, filter: {max: 0.8, missing: reject}, score: {best: 0, worst: 1}, weight: 3}
  - {name: busy, signal: gpu, filter: {max: 90}}
"""
CPU = {"a": 0.2, "b": 0.9, "c": 0.5, "d": 0.5}
_decoder = msgspec.msgpack.Decoder(list[Figures])


@pytest.fixture
def harness() -> Harness:
    harness = Harness()
    harness.list_nodes(*(make_node(name) for name in "edcba"))
    harness.list_pods()
    harness.load_rules(RULES)
    harness.answer("cpu", CPU)
    return harness


def ask(harness: Harness, query: SignalsQuery) -> list[Figures]:
    return [figures for slice_ in harness.listing(query) for figures in _decoder.decode(slice_)]


def nodes_of(found: Sequence[Figures], signal: str) -> NodeFigures:
    return next(one for one in found if isinstance(one, NodeFigures) and one.signal == signal)


def test_every_signal_and_rule_is_told_without_a_single_node(harness: Harness) -> None:
    harness.now_s += 5
    cpu, gpu, hot, busy = ask(harness, SignalsQuery())
    assert isinstance(cpu, SignalFigures)
    assert (cpu.name, cpu.key, cpu.unit, cpu.state, cpu.age_s) == ("cpu", "node", "ratio", Freshness.FRESH, 5.0)
    assert (cpu.n_nodes, cpu.n_covered, cpu.is_suspect) == (5, 4, False)
    assert isinstance(gpu, SignalFigures)
    assert (gpu.state, gpu.age_s, gpu.n_covered) == (Freshness.ABSENT, math.inf, 0)
    assert hot == RuleFigures("hot", "cpu", "enforce", 3.0, True, True, False, 2), "one has no sample"
    assert busy == RuleFigures("busy", "gpu", "enforce", 0.0, True, False, False, 0)
    assert 'vane_rule_refused_nodes{rule="hot"} 2.0' in harness.metrics_page()


@pytest.mark.parametrize(
    ("sort", "names"), [(Sort.VALUE, ["b", "d", "c"]), (Sort.NAME, ["a", "b", "c"]), (Sort.AGE, ["a", "b", "c"])]
)
def test_the_first_nodes_of_a_signal_come_in_order(harness: Harness, sort: Sort, names: list[str]) -> None:
    found = ask(harness, SignalsQuery(signal="cpu", sort=sort, limit=3))
    shown = nodes_of(found, "cpu")
    assert shown.names == names
    assert list(np.frombuffer(shown.values)) == [CPU[name] for name in names]
    assert [one.signal for one in found if isinstance(one, NodeFigures)] == ["cpu"]


def test_verdicts_and_scores_are_those_of_decisions(harness: Harness) -> None:
    found = ask(harness, SignalsQuery(signal="cpu", limit=5))
    (said,) = [one for one in found if isinstance(one, VerdictFigures)]
    names = nodes_of(found, "cpu").names
    assert names[0] == "b"
    assert names[-1] == "e"
    assert list(said.verdicts) == [1, 0, 0, 0, 2]
    scores = dict(zip(names, np.frombuffer(said.scores), strict=True))
    assert scores == {"a": 80.0, "b": pytest.approx(10.0), "c": 50.0, "d": 50.0, "e": pytest.approx(50.0)}


def test_one_node_is_told_of_every_signal(harness: Harness) -> None:
    found = ask(harness, SignalsQuery(node="b"))
    assert [(one.signal, one.names) for one in found if isinstance(one, NodeFigures)] == [
        ("cpu", ["b"]),
        ("gpu", ["b"]),
    ]
    assert nodes_of(ask(harness, SignalsQuery(node="nobody")), "cpu").names == []


def test_an_absent_signal_has_no_values_whatever_it_once_had(harness: Harness) -> None:
    harness.now_s += 41
    found = ask(harness, SignalsQuery(signal="cpu", limit=5))
    assert np.isnan(np.frombuffer(nodes_of(found, "cpu").values)).all()


def test_a_listing_that_nobody_goes_on_with_is_let_go(harness: Harness) -> None:
    harness.seconds_per_look = 0.001
    query = SignalsQuery(limit=5)
    assert len(_decoder.decode(harness.page(query))) == 1
    assert len(_decoder.decode(harness.page(query, goes_on=True))) == 1
    harness.now_s += 31
    harness.page(HealthQuery("readyz"))
    assert harness.page(query, goes_on=True) == b""


def test_nodes_that_come_between_two_slices_end_the_verdicts_on_others(harness: Harness) -> None:
    harness.seconds_per_look = 0.001
    query = SignalsQuery(signal="cpu", limit=5)
    slices = [harness.page(query)]
    while not any(isinstance(one, NodeFigures) for one in _decoder.decode(slices[-1])):
        slices.append(harness.page(query, goes_on=True))
    harness.list_nodes(*(make_node(name) for name in "zyx"))
    assert harness.page(query, goes_on=True) == b""


KEYED = """\
apiVersion: vane.dev/v1
kind: Rules
signals:
  latency: {expr: "max by (node, app) (latency)", by: workload, workload: app, unit: s, interval: 10s, max_age: 40s}
  card: {expr: "max by (node, gpu) (use)", by: gpu, interval: 10s, max_age: 40s}
  hop:
    expr: max by (src, dst) (rtt)
    by: pair
    pair: {label: zone, from: src, to: dst}
    unit: s
    interval: 10s
    max_age: 40s
  alike: {count: {same: [app]}}
rules:
  - {name: slow, signal: latency, workload: app, filter: {max: 500ms}}
  - {name: full, signal: card, filter: {max: 90}}
  - {name: far, signal: hop, calls: {labels: {app: db}}, score: {best: 0s, worst: 1s}}
  - {name: spread, signal: alike, filter: {max: 2}}
"""


@pytest.fixture
def keyed() -> Harness:
    harness = Harness()
    harness.list_nodes(*(make_node(name, labels={"zone": zone}) for name, zone in (("a", "z1"), ("b", "z2"))))
    harness.list_pods()
    harness.load_rules(KEYED)
    return harness


def measure(harness: Harness, name: str, *samples: tuple[dict[str, str], str]) -> None:
    """Have Prometheus answer a signal with two keys."""
    rules, identity = harness.world.signals.rules, harness.identity()
    signal = rules.signals[name]
    found = ingest(signal, [ResultSeries(labels, (0.0, text)) for labels, text in samples], NodeResolver(identity))
    answer = SignalAnswer(
        name,
        signature(signal),
        rules.generation,
        signal.max_age_s,
        harness.now_s,
        n_series=len(samples),
        **found.keys.packed(found.values),
    )
    harness.loop.apply(SignalAnswered(answer))


def told(found: Sequence[Figures], signal: str) -> list[tuple[str, str, float]]:
    shown = nodes_of(found, signal)
    keys = shown.keys or [""] * len(shown.names)
    return list(zip(shown.names, keys, np.frombuffer(shown.values).tolist(), strict=True))


def verdicts(found: Sequence[Figures], rule: str) -> list[int]:
    return next(list(one.verdicts) for one in found if isinstance(one, VerdictFigures) and one.rule == rule)


def test_samples_of_signals_with_two_keys_are_shown_one_by_one(keyed: Harness) -> None:
    measure(
        keyed,
        "latency",
        ({"node": "a", "app": "web"}, "0.2"),
        ({"node": "b", "app": "web"}, "0.9"),
        ({"node": "a", "app": "db"}, "0.7"),
    )
    measure(keyed, "card", ({"node": "a", "gpu": "0"}, "95"), ({"node": "a", "gpu": "1"}, "5"))
    measure(keyed, "hop", ({"src": "z1", "dst": "z2"}, "0.02"), ({"src": "z2", "dst": "z1"}, "0.03"))
    found = ask(keyed, SignalsQuery(limit=2))
    assert told(found, "latency") == [("b", "web", 0.9), ("a", "db", 0.7)]
    assert verdicts(found, "slow") == [1, 1]
    assert told(found, "card") == [("a", "", 95.0), ("a", "", 5.0)]
    assert verdicts(found, "full") == [1, 0]
    assert told(found, "hop") == [("z2", "z2 -> z1", 0.03), ("z1", "z1 -> z2", 0.02)]

    of_a = ask(keyed, SignalsQuery(node="a"))
    assert told(of_a, "latency") == [("a", "db", 0.7), ("a", "web", 0.2)]
    assert told(of_a, "hop") == [("z1", "z1 -> z2", 0.02)]
    signals = [one for one in found if isinstance(one, SignalFigures)]
    assert {one.name: (one.state, one.depends_on_pod, one.n_covered) for one in signals} == {
        "latency": (Freshness.FRESH, True, 2),
        "card": (Freshness.FRESH, True, 1),
        "hop": (Freshness.FRESH, True, 2),
        "alike": (Freshness.FRESH, True, 0),
    }

    keyed.now_s += 41
    assert not [one for one in ask(keyed, SignalsQuery(limit=2)) if isinstance(one, NodeFigures)]


def test_nodes_that_are_gone_are_not_shown(keyed: Harness) -> None:
    measure(keyed, "latency", ({"node": "a", "app": "web"}, "0.2"), ({"node": "b", "app": "web"}, "0.9"))
    keyed.list_nodes(make_node("a", labels={"zone": "z1"}))
    assert told(ask(keyed, SignalsQuery(limit=5)), "latency") == [("a", "web", 0.2)]
    assert told(ask(keyed, SignalsQuery(node="b")), "latency") == []


def test_domains_are_named_and_built_in_signals_are_always_fresh() -> None:
    harness = Harness()
    harness.list_nodes(make_node("a", labels={"zone": "z1"}), make_node("b", labels={"zone": "z2"}), make_node("c"))
    harness.list_pods(make_pod("p", node="b"))
    harness.load_rules(
        """\
apiVersion: vane.dev/v1
kind: Rules
signals:
  p99: {expr: max by (zone) (p99), by: zone, unit: s, interval: 10s, max_age: 40s}
  pods: {pods: {}}
rules:
  - {name: fast, signal: p99, score: {best: 0s, worst: 1s}}
  - {name: few, signal: pods, filter: {max: 0}}
"""
    )
    signal = harness.world.signals.rules.signals["p99"]
    answer = SignalAnswer("p99", signature(signal), 1, 40.0, harness.now_s, by_label={"z1": 0.25}, n_series=1)
    harness.loop.apply(SignalAnswered(answer))
    found = ask(harness, SignalsQuery(limit=3))
    shown = nodes_of(found, "p99")
    assert list(zip(shown.names, shown.keys, strict=True)) == [("a", "z1"), ("b", "z2"), ("c", "")]
    assert told(found, "pods")[0] == ("b", "", 1.0)
    assert verdicts(found, "few") == [1, 0, 0]
    (pods,) = [one for one in found if isinstance(one, SignalFigures) and one.name == "pods"]
    assert (pods.state, pods.age_s, pods.is_built_in, pods.n_covered) == (Freshness.FRESH, 0.0, True, 3)


class BrokenStore(SignalStore):
    def is_suspect(self, signal: str) -> bool:
        raise RuntimeError(f"it broke at {signal}")


def test_a_fault_ends_the_listing_and_nothing_else(harness: Harness, caplog: pytest.LogCaptureFixture) -> None:
    store = BrokenStore(harness.clock)
    store.set_rules(harness.world.signals.rules)
    listing = SignalListing(harness.world.cache, store, harness.clock, SignalsQuery())
    assert _decoder.decode(listing.slice()) == [ListingFault("RuntimeError: it broke at cpu")]
    assert listing.slice() == b""
    assert "signals cannot be listed" in caplog.text


def test_what_is_in_flight_is_told_where_no_plugin_reads_rules() -> None:
    harness = Harness(without=["SignalFilter", "SignalScore"])
    harness.list_nodes(make_node("a"))
    harness.list_pods(make_pod("placed", node="a", cpu="1"))
    harness.load_rules(RULES.replace("unit: ratio,", "unit: ratio, window: 2m, inflight: {cpu: request},", 1))
    signal = harness.world.signals.rules.signals["cpu"]
    values, number = np.array([0.5]).tobytes(), harness.identity().generation
    answer = SignalAnswer("cpu", signature(signal), 1, 40.0, harness.now_s, identity_generation=number, values=values)
    harness.loop.apply(SignalAnswered(msgspec.structs.replace(answer, evaluated_unix_s=1e9)))
    shown = nodes_of(ask(harness, SignalsQuery(limit=1)), "cpu")
    assert np.frombuffer(shown.inflight).tolist() == [0.25]
