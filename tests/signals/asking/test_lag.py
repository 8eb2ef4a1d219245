"""How far behind the samples are: by timestamps, or as a signal's `lag` says."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest

from scheduler.model.rules import ByKind, Reduce, Signal
from scheduler.signals.answers import SignalAnswer
from scheduler.signals.asking.asker import AskContext, SignalAsker
from scheduler.signals.asking.client import QueryResult
from scheduler.signals.asking.lag_query import MARK, lag_query
from scheduler.signals.asking.query_errors import QueryRejected, QueryTimeout
from scheduler.signals.asking.session import ResultSeries
from scheduler.signals.format.promql import reaches
from tests.signals.asking.scripted import Clock, FakeClient
from tests.signals.asking.test_asker import resolver_of

NAMES = ("a", "b", "c", "d")
CPU = Signal("cpu", "avg by (node) (rate(busy[2m]))", interval_s=15.0, max_age_s=60.0)
SERVER_S = 5000.0
"""The server's clock in a FakeClient's answers."""


class Measured:
    """A signal asked again and again, every node answering, with the timestamps that a test says."""

    def __init__(self, signal: Signal = CPU) -> None:
        self.clock = Clock()
        self.client = FakeClient(self.clock)
        self.signal = signal
        self.client.answers[signal.expr] = dict.fromkeys(NAMES, 0.5)
        self.asker = SignalAsker(signal, self.clock, lambda: 1.0)
        self.query = lag_query(reaches(signal.expr), ("node",), 30.0, 15.0, else_by="instance")

    def timestamps(self, newest_s: float | None, behind: Mapping[str, float]) -> None:
        """Let the first selector have these: ages of its newest sample, and by node of those that are behind."""
        series = [] if newest_s is None else [ResultSeries({MARK: "0"}, (SERVER_S, str(SERVER_S - newest_s)))]
        series += [
            ResultSeries({MARK: "0", "node": name}, (SERVER_S, str(SERVER_S - age_s))) for name, age_s in behind.items()
        ]
        self.client.answers[self.query] = lambda: QueryResult(series, False, (), self.clock.now_s, SERVER_S)

    def ask(self, after_s: float = 0.0) -> SignalAnswer:
        self.clock.now_s += after_s
        return self.asker.ask(AskContext(self.client, lambda: resolver_of(*NAMES), 1))

    @property
    def n_lag_queries(self) -> int:
        return self.client.asked.count(self.query)


def values(answer: SignalAnswer) -> list[float | None]:
    return [None if math.isnan(value) else value for value in answer.node_values()][: len(NAMES)]


def test_a_node_that_is_behind_is_told_apart_and_one_too_old_has_no_value() -> None:
    world = Measured()
    world.timestamps(4.0, {"b": 45.0, "c": 60.5, "somebody else": 45.0})
    answer = world.ask()
    assert (answer.lag_s, answer.lag_by_key) == (4.0, {"b": 45.0})
    assert values(answer) == [0.5, 0.5, None, 0.5]
    assert (answer.drops.stale, answer.n_mapped) == (1, 3)


def test_series_that_get_the_written_label_only_by_a_join_age_the_node_of_their_instance() -> None:
    world = Measured(replace(CPU, node_label="node"))
    ages: list[tuple[dict[str, str], float]] = [({}, 4.0), ({"instance": "b:9100"}, 45.0), ({"node": "c"}, 46.0)]
    series = [ResultSeries({MARK: "0", **labels}, (SERVER_S, str(SERVER_S - age_s))) for labels, age_s in ages]
    world.client.answers[world.query] = lambda: QueryResult(series, False, (), world.clock.now_s, SERVER_S)
    assert world.ask().lag_by_key == {"b": 45.0, "c": 46.0}


def test_where_all_series_have_ended_the_last_of_them_is_the_newest() -> None:
    world = Measured()
    world.timestamps(None, {"a": 40.0, "b": 45.0, "c": 50.0, "d": 55.0})
    answer = world.ask()
    assert (answer.lag_s, answer.lag_by_key) == (40.0, {"a": 40.0, "b": 45.0, "c": 50.0, "d": 55.0})


def test_lags_are_asked_with_every_answer_while_that_is_cheap() -> None:
    world = Measured()
    world.timestamps(1.0, {"b": 31.0})
    assert world.ask().lag_by_key == {"b": 31.0}
    world.timestamps(1.0, {})
    assert world.ask(15.0).lag_by_key == {}
    assert world.n_lag_queries == 2


def test_a_query_for_lags_that_takes_long_is_made_less_often_and_known_lags_grow_meanwhile() -> None:
    world = Measured()
    world.timestamps(1.0, {"b": 31.0})
    answered = world.client.answers[world.query]

    def slowly() -> QueryResult:
        world.clock.now_s += 2.0
        found: QueryResult = answered()
        return found

    world.client.answers[world.query] = slowly
    assert world.ask().lag_by_key == {"b": 31.0}
    assert world.ask(13.0).lag_by_key == {"b": 46.0}
    world.ask(13.0)
    assert world.n_lag_queries == 2, "two intervals apart: more would let a node be too old unseen"


def test_a_query_for_lags_that_fails_leaves_the_last_ones() -> None:
    world = Measured()
    world.timestamps(1.0, {"b": 31.0})
    world.ask()
    world.client.answers[world.query] = QueryTimeout("slow")
    answer = world.ask(15.0)
    assert (answer.error, answer.lag_s, answer.lag_by_key) == ("", 1.0, {"b": 46.0})


def test_the_worst_of_several_selectors_counts() -> None:
    signal = replace(CPU, expr="rate(busy[2m]) * on (node) speed")
    world = Measured(signal)

    def of(selector: str, age_s: float, node: str = "") -> ResultSeries:
        labels = {MARK: selector, "node": node} if node else {MARK: selector}
        return ResultSeries(labels, (SERVER_S, str(SERVER_S - age_s)))

    series = [of("0", 1.0), of("1", 9.0), of("0", 33.0, "a"), of("1", 44.0, "a"), of("1", 35.0, "b")]
    world.client.answers[world.query] = QueryResult(series, False, (), world.clock.now_s, SERVER_S)
    answer = world.ask()
    assert (answer.lag_s, answer.lag_by_key) == (9.0, {"a": 44.0, "b": 35.0})


class TestAWrittenLag:
    SIGNAL = replace(CPU, lag="time() - max by (node) (pushed_at)")

    def ask(self, lags: object) -> SignalAnswer:
        world = Measured(self.SIGNAL)
        world.client.answers[self.SIGNAL.lag] = lags
        return world.ask()

    def test_replaces_the_timestamps(self) -> None:
        answer = self.ask({"a": 3, "b": 33, "c": 61, "d": 5})
        assert (answer.lag_s, answer.lag_by_key) == (3.0, {"b": 33.0})
        assert values(answer) == [0.5, 0.5, None, 0.5]
        assert answer.drops.stale == 1

    @pytest.mark.parametrize("nothing", ["NaN", "+Inf", "nonsense"])
    def test_a_node_of_which_it_says_nothing_has_no_value(self, nothing: str) -> None:
        assert values(self.ask({"a": 3, "b": 3, "c": nothing})) == [0.5, 0.5, None, None]
        assert values(self.ask({})) == [None] * 4

    def test_a_clock_ahead_of_ours_is_no_lag(self) -> None:
        answer = self.ask(dict.fromkeys(NAMES, -7200))
        assert (answer.lag_s, answer.lag_by_key) == (0.0, {})

    @pytest.mark.parametrize(("number", "lag_s", "n_mapped"), [("12", 12.0, 4), ("NaN", 0.0, 0), ("+Inf", 0.0, 0)])
    def test_one_number_holds_for_all(self, number: str, lag_s: float, n_mapped: int) -> None:
        answer = self.ask(QueryResult([ResultSeries(value=(SERVER_S, number))], True, (), 1000.0, SERVER_S))
        assert (answer.lag_s, answer.n_mapped) == (lag_s, n_mapped)

    def test_without_an_answer_there_is_no_answer(self) -> None:
        with pytest.raises(QueryRejected, match="asking for its lag: HTTP 400, bad_data: no such function"):
            self.ask(QueryRejected(400, "bad_data", "no such function"))


class TestTheQuery:
    def test_reaches(self) -> None:
        found = reaches("rate(a{x='1'}[5m] offset 1m) / on (n) max_over_time(rate(b[1m])[1h:]) + a{x='1'}")
        assert found == {'a{x="1"}': 3900.0, "b": 3660.0}
        assert reaches("rate(a[5m]) / b") == {"a": 300.0, "b": 0.0}
        assert reaches("vector(1)") == {}
        assert reaches("rollup(no_promql[5m])") == {}

    def test_without_labels_only_the_newest_of_each_selector(self) -> None:
        assert lag_query({"a": 0.0, "b": 120.0}, (), 30.0, 15.0) == (
            f'label_replace(max (timestamp(a)), "{MARK}", "0", "", "") or '
            f'label_replace(max (timestamp(b)) or max (max_over_time(timestamp(b)[120000ms:15000ms])), "{MARK}", "1", '
            '"", "")'
        )
        assert lag_query({}, ("node",), 30.0, 15.0) == ""

    def test_a_long_range_is_searched_in_sixteen_steps_and_one_that_ends_in_time_not_at_all(self) -> None:
        assert "[3600000ms:225000ms]" in lag_query({"a": 3600.0}, ("node",), 30.0, 15.0)
        assert "max_over_time" not in lag_query({"a": 30.0}, ("node",), 30.0, 15.0)

    def test_series_that_get_their_nodes_name_by_a_join_only_are_grouped_by_instance(self) -> None:
        query = lag_query({'a{x="1"}': 0.0, "b": 0.0}, ("nodename",), 30.0, 15.0, else_by="instance")
        assert 'max by (instance) (timestamp(a{x="1", nodename=""}))' in query
        assert 'max by (instance) (timestamp(b{nodename=""}))' in query
        assert 'nodename=""' not in lag_query({"b": 0.0}, ("instance", "nodename"), 30.0, 15.0, else_by="instance")

    def test_labels_beyond_letters_are_quoted(self) -> None:
        query = lag_query({"a": 0.0}, ("a.b/c", "node"), 30.0, 1.0)
        assert 'label_replace((max by ("a.b/c", node) (timestamp(a))) < time() - 30' in query


def test_cards_lag_one_by_one() -> None:
    signal = replace(CPU, expr="util", by=ByKind.GPU, reduce=Reduce.MAX)
    world = Measured(signal)
    cards = [ResultSeries({"node": "a", "gpu": gpu}, (SERVER_S, "0.5")) for gpu in "012"]
    world.client.answers["util"] = lambda: QueryResult(cards, False, (), world.clock.now_s, SERVER_S)
    query = lag_query(reaches("util"), ("gpu", "node"), 30.0, 15.0)
    series = [ResultSeries({MARK: "0"}, (SERVER_S, str(SERVER_S)))]
    series += [
        ResultSeries({MARK: "0", "node": "a", "gpu": gpu}, (SERVER_S, str(SERVER_S - age_s)))
        for gpu, age_s in (("0", 44.0), ("2", 46.0))
    ]
    world.client.answers[query] = QueryResult(series, False, (), world.clock.now_s, SERVER_S)
    answer = world.ask()
    # A card's row does not age on its own, so a card that would be too old before the next answer goes at once.
    assert answer.drops.stale == 1
    assert answer.keyed is not None
    assert len(answer.keyed.values) == 2 * 8
