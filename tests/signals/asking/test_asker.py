from __future__ import annotations

import math
import re
from collections.abc import Mapping

import pytest

from scheduler.model.identity import NodeIdentity
from scheduler.model.rules import ByKind, Signal
from scheduler.signals.answers import Drops, SignalAnswer, signature
from scheduler.signals.asking.asker import AskContext, SignalAsker
from scheduler.signals.asking.client import QueryResult
from scheduler.signals.asking.query_errors import NotNarrowed, QueryTimeout, WrongResultType
from scheduler.signals.asking.resolver import NodeResolver
from scheduler.signals.asking.session import ResultSeries
from scheduler.signals.asking.spacing import spacing_query
from scheduler.signals.format.promql_matchers import Matchers, narrowed
from tests.signals.asking.scripted import Clock, FakeClient

NAMES = tuple("abcde")
PROD: Matchers = (("cluster", "prod"),)
CPU = Signal("cpu", "node_cpu", max_age_s=60.0)


def resolver_of(*names: str, generation: int = 3) -> NodeResolver:
    return NodeResolver(NodeIdentity(generation, names, {name: i for i, name in enumerate(names)}))


class World:
    """One asker over a client that answers as told."""

    def __init__(self, signal: Signal = CPU, names: tuple[str, ...] = NAMES) -> None:
        self.clock = Clock()
        self.client = FakeClient(self.clock)
        self.signal = signal
        self.names = names
        self.asker = SignalAsker(signal, self.clock, lambda: 1.0)

    def ask(self, values: Mapping[str, float | str] | QueryResult | QueryTimeout) -> SignalAnswer:
        self.client.answers[self.signal.expr] = values
        return self.asker.ask(AskContext(self.client, lambda: resolver_of(*self.names), 9))


def test_an_answer_tells_what_was_asked_and_what_came_of_it() -> None:
    world = World()
    answer = world.ask({"a": 1, "c": "NaN", "x": 3})
    assert [None if math.isnan(value) else value for value in answer.node_values()] == [1.0, None, None, None, None]
    assert (answer.signal, answer.signature, answer.rules_generation) == ("cpu", signature(CPU), 9)
    assert (answer.identity_generation, answer.n_series, answer.n_mapped) == (3, 3, 1)
    assert answer.drops == Drops(nan=1, unmapped=1)
    assert answer.evaluated_at_s == world.clock.now_s


def test_answers_with_warnings_or_far_fewer_nodes_are_suspect() -> None:
    world = World()
    assert not world.ask(dict.fromkeys("abcde", 1)).is_suspect
    assert not world.ask(dict.fromkeys("abcd", 1)).is_suspect, "80 % is enough"
    world.ask(dict.fromkeys("abcde", 1))
    assert world.ask(dict.fromkeys("abc", 1)).is_suspect
    world.client.warnings = ("partial",)
    answer = world.ask(dict.fromkeys("abcde", 1))
    assert (answer.is_suspect, answer.warnings) == (True, ("partial",))


def test_nodes_that_are_gone_are_not_missed() -> None:
    world = World()
    world.ask(dict.fromkeys("abcde", 1))
    world.names = ("a", "b")
    assert not world.ask({"a": 1, "b": 1}).is_suspect


def test_after_max_age_a_smaller_answer_is_the_new_measure() -> None:
    world = World()
    world.ask(dict.fromkeys("abcde", 1))
    world.clock.now_s += 60.0
    assert world.ask({"a": 1}).is_suspect
    world.clock.now_s += 0.1
    assert not world.ask({"a": 1}).is_suspect
    assert not world.ask({"a": 1}).is_suspect


def test_kinds_of_signals() -> None:
    zoned = World(Signal("z", "zone_p99", by=ByKind.LABEL, label="zone"))
    found = zoned.ask(QueryResult([ResultSeries({"zone": "z1"}, (1.0, "2"))], False, (), 1.0, 1.0))
    assert (found.by_label, found.values, found.n_mapped) == ({"z1": 2.0}, b"", 1)
    scalar = QueryResult([ResultSeries(value=(1.0, "4"))], True, (), 1.0, 1.0)
    assert World(Signal("c", "scalar(x)", by=ByKind.CLUSTER)).ask(scalar).value == 4.0
    with pytest.raises(WrongResultType, match="by: cluster"):
        World().ask(scalar)


def test_a_slow_query_makes_the_signal_slow_until_it_is_quick_again() -> None:
    world = World()
    for took_s, is_slow in ((0.9, False), (1.1, True), (0.6, True), (0.4, False)):

        def answer(took_s: float = took_s) -> QueryTimeout:
            world.clock.now_s += took_s
            return QueryTimeout("")

        world.client.answers["node_cpu"] = answer
        with pytest.raises(QueryTimeout):
            world.asker.ask(AskContext(world.client, resolver_of, 1))
        assert world.asker.is_slow == is_slow


def test_where_samples_come_seldom_it_looks_further_back(caplog: pytest.LogCaptureFixture) -> None:
    signal = Signal("cpu", "rate(node_cpu[2m])", is_max_age_written=False)
    world = World(signal)
    world.client.answers[spacing_query(["node_cpu"])] = {"-": 1 / 60}
    answer = world.ask({"a": 1})
    assert [answer.spacing_s, answer.max_age_s] == pytest.approx([60.0, 240.0])
    asked = [back_s for expr, back_s in world.client.looked_back if expr == signal.expr]
    assert asked == [60.0, pytest.approx(240.0)]
    assert [record.message.split(",")[0] for record in caplog.records] == ["signal cpu: samples come 1m apart"]

    world.clock.now_s += 15.0
    world.ask({"a": 1})
    asked = [back_s for expr, back_s in world.client.looked_back if expr == signal.expr]
    assert len(asked) == 3, "only once: now the pace is known"


def test_a_written_max_age_stays() -> None:
    world = World(Signal("cpu", "node_cpu", max_age_s=90.0))
    world.client.answers[spacing_query(["node_cpu"])] = {"-": 1 / 60}
    answer = world.ask({"a": 1})
    assert [answer.spacing_s, answer.max_age_s] == pytest.approx([60.0, 90.0])


def test_every_query_for_a_signal_has_the_matchers_of_its_server_in_every_selector() -> None:
    clock = Clock()
    client = FakeClient(clock)
    signal = Signal("cpu", 'avg by (node) (rate(busy{mode="idle"}[2m])) + on (node) max by (node) (up)')
    asked = narrowed(signal.expr, PROD)
    client.answers[asked] = {"a": 0.5}
    asker = SignalAsker(signal, clock, lambda: 1.0, matchers=PROD)
    answer = asker.ask(AskContext(client, lambda: resolver_of("a"), 1))
    assert answer.n_mapped == 1
    assert answer.signature == SignalAsker(signal, clock, lambda: 1.0).signature, (
        "the deciding process knows no matchers"
    )
    assert len(client.asked) == 3, "the values, their spacing and their lag"
    for query in client.asked:
        named = re.findall(r"\b(?:busy|up)\b(\{[^}]*\})?", query)
        assert named
        assert all('cluster="prod"' in matchers for matchers in named), query


def test_what_cannot_be_narrowed_is_not_asked() -> None:
    clock = Clock()
    client = FakeClient(clock)
    asker = SignalAsker(Signal("cpu", "topk_last(1, busy)"), clock, lambda: 1.0, matchers=PROD)
    with pytest.raises(NotNarrowed, match=r"^not asked: not PromQL, so"):
        asker.ask(AskContext(client, lambda: resolver_of("a"), 1))
    assert client.asked == []
