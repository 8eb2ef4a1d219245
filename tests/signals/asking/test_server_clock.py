"""When an answer was evaluated, whatever the clocks of server and proxy say."""

from __future__ import annotations

import pytest

from scheduler.signals.asking.server_clock import Exchange, ServerClock

HOUR_S = 3600.0
TOOK_S = 0.2


class Server:
    """A Prometheus, and what stands before it, each with a clock of its own."""

    def __init__(self, sample_skew_s: float = 0.0, date_skew_s: float = 0.0) -> None:
        self.clock = ServerClock(lambda: self.now_s)
        self.sample_skew_s, self.date_skew_s = sample_skew_s, date_skew_s
        self.now_s = 1_000_000.0

    def age(self, after_s: float = 0.0, at_rest_s: float = 0.0, expr: str = "up") -> float:
        """Let time go on, then ask; return how old the answer is said to be."""
        self.now_s += after_s
        sample_s = self.now_s + self.sample_skew_s - at_rest_s
        date_s = float(int(self.now_s + self.date_skew_s))
        self.exchange = Exchange(self.now_s - TOOK_S, self.now_s, sample_s, date_s)
        return self.now_s - TOOK_S - self.clock.evaluated_at(expr, self.exchange)


@pytest.mark.parametrize("skew_s", [0.0, 3 * HOUR_S, -3 * HOUR_S])
def test_a_server_whose_clock_is_off(skew_s: float) -> None:
    server = Server(skew_s, skew_s)
    assert [server.age(15.3) for _ in range(5)] == [0.0] * 5
    assert server.age(15.3, at_rest_s=40.0) == pytest.approx(40.0, abs=1.3), "out of a cache"
    assert server.age(15.3) == 0.0


@pytest.mark.parametrize("skew_s", [60.0, 3 * HOUR_S])
def test_a_proxy_whose_clock_is_ahead_costs_one_answer(skew_s: float) -> None:
    server = Server(date_skew_s=skew_s)
    assert server.age() == pytest.approx(skew_s, abs=1.3), "it might have been kept for so long"
    assert [server.age(15.3) for _ in range(5)] == [0.0] * 5
    assert server.age(15.3, expr="another") == 0.0, "what is known of the clocks holds for all queries"
    assert server.age(15.3, at_rest_s=40.0) == pytest.approx(40.0, abs=1.3)
    server.date_skew_s = 0.0
    assert [server.age(15.3) for _ in range(5)] == [0.0] * 5


def test_a_proxy_whose_clock_is_behind() -> None:
    server = Server(date_skew_s=-3 * HOUR_S)
    assert [server.age(15.3) for _ in range(5)] == [0.0] * 5
    assert server.age(15.3, at_rest_s=40.0) == pytest.approx(40.0, abs=1.3)


def test_what_comes_out_of_a_cache_again_and_again_is_never_taken_for_new() -> None:
    server = Server()
    ages = [server.age(15.0, at_rest_s=100.0 + 15.0 * i) for i in range(20)]
    assert ages == pytest.approx([100.0 + 15.0 * i for i in range(20)], abs=1.3)
    assert [server.age(0.3, at_rest_s=200.0 + 0.3 * i) for i in range(5)] == pytest.approx([200.6] * 5, abs=1.7)


def test_answers_of_different_queries_are_not_compared() -> None:
    server = Server()
    for i in range(20):
        assert server.age(5.0, at_rest_s=200.0, expr=f"query {i}") == pytest.approx(200.0, abs=1.3)


@pytest.mark.parametrize(("sample_s", "date_s"), [(None, 5.0), (5.0, None), (None, None)])
def test_without_one_of_the_times_it_is_when_we_asked(sample_s: float | None, date_s: float | None) -> None:
    assert ServerClock().evaluated_at("up", Exchange(7.0, 8.0, sample_s, date_s)) == 7.0


@pytest.mark.parametrize(
    ("sample_skew_s", "date_skew_s", "skew_s"), [(0.0, 7200.0, 7200.0), (-7200.0, 60.0, -7200.0), (0.0, 0.0, 0.0)]
)
def test_the_skew_is_that_of_the_clock_that_is_farther_off(
    sample_skew_s: float, date_skew_s: float, skew_s: float
) -> None:
    server = Server(sample_skew_s, date_skew_s)
    server.age()
    assert server.clock.skew_s(server.exchange) == pytest.approx(skew_s, abs=1.1)
    assert ServerClock().skew_s(Exchange(7.0, 8.0, None, None)) == 0.0
