"""How far apart samples come, measured by queries that the embedded evaluator answers."""

from __future__ import annotations

import pytest

from scheduler.evaluator.store import SeriesStore
from scheduler.model.rules import ByKind, Signal
from scheduler.rule_tests.servers import EmbeddedClient
from scheduler.signals.asking.query_errors import PrometheusUnreachable
from scheduler.signals.asking.spacing import SpacingMeter, pace_problems, spacing_query
from tests.signals.asking.scripted import Clock, FakeClient

NOW_S = 10_000.0
OFTEN = "samples come 1m apart, too seldom for"


def scraped(store: SeriesStore, name: str, job: str, every_s: float, from_s: float, until_s: float = NOW_S) -> None:
    for instance in range(5):
        at_s = from_s + instance * every_s / 5
        while at_s <= until_s:
            store.append({"__name__": name, "job": job, "instance": f"{job}-{instance}"}, at_s, 1.0)
            at_s += every_s


def measured(store: SeriesStore, expr: str) -> float:
    clock = Clock(NOW_S)
    return SpacingMeter(Signal("s", expr), clock).measure(EmbeddedClient(store, clock))


@pytest.mark.parametrize("every_s", [5.0, 15.0, 30.0, 60.0, 120.0, 300.0])
def test_the_interval_of_scrapes_is_found(every_s: float) -> None:
    store = SeriesStore(1e9)
    scraped(store, "x", "node", every_s, NOW_S - 1800.0)
    assert measured(store, "max by (instance) (x)") == pytest.approx(every_s, rel=0.05)


def test_of_several_jobs_and_selectors_the_slowest_counts() -> None:
    store = SeriesStore(1e9)
    scraped(store, "x", "many", 15.0, NOW_S - 1800.0)
    scraped(store, "x", "few", 30.0, NOW_S - 1800.0)
    scraped(store, "y", "other", 60.0, NOW_S - 1800.0)
    assert measured(store, "x") == pytest.approx(30.0, rel=0.05)
    assert measured(store, "x + rate(y[5m])") == pytest.approx(60.0, rel=0.05)


def test_a_job_that_has_just_begun_does_not_look_slow() -> None:
    store = SeriesStore(1e9)
    scraped(store, "x", "node", 15.0, NOW_S - 80.0)
    assert 0.0 < measured(store, "x") <= 30.0


def test_one_sample_says_nothing() -> None:
    store = SeriesStore(1e9)
    scraped(store, "x", "node", 60.0, NOW_S - 12.0, until_s=NOW_S - 1.0)
    assert measured(store, "x") == 0.0


def test_a_job_that_has_ended_says_nothing() -> None:
    store = SeriesStore(1e9)
    scraped(store, "x", "node", 15.0, NOW_S - 1800.0)
    scraped(store, "x", "gone", 15.0, NOW_S - 1800.0, until_s=NOW_S - 400.0)
    assert measured(store, "x") == pytest.approx(15.0, rel=0.05)


def test_nothing_is_asked_where_scrapes_do_not_tell() -> None:
    client = FakeClient(Clock(NOW_S))
    written = Signal("s", "x", lag="time() - push_time_seconds")
    for signal in (written, Signal("s", "x", interval_s=600.0, max_age_s=2400.0), Signal("s", "vector(1)")):
        assert SpacingMeter(signal, Clock(NOW_S)).measure(client) == 0.0
    assert client.asked == []


def test_it_is_measured_again_every_ten_minutes_sooner_while_it_changes_or_fails() -> None:
    clock, client = Clock(NOW_S), FakeClient()
    meter = SpacingMeter(Signal("s", "x"), clock)
    query = spacing_query(["x"])
    client.answers[query] = PrometheusUnreachable("no")
    asked_at_s = []
    for second in range(0, 3000, 15):
        clock.now_s = NOW_S + second
        n_asked = len(client.asked)
        meter.measure(client)
        if len(client.asked) > n_asked:
            asked_at_s.append(second)
            client.answers[query] = {"-": 1 / 60}
    assert asked_at_s == [0, 60, 120, 720, 1320, 1920, 2520]
    assert meter.spacing_s == pytest.approx(60.0)
    client.answers[query] = {"-": 1 / 63}
    clock.now_s += 600.0
    assert meter.measure(client) == pytest.approx(60.0), "a difference within what counting can tell changes nothing"


def test_max_age_goes_along_unless_it_is_written() -> None:
    signal = Signal("s", "x", is_max_age_written=False)
    assert [(one.fresh_s, one.max_age_s) for one in map(signal.paced, (0.0, 10.0, 60.0))] == [
        (30.0, 60.0),
        (30.0, 60.0),
        (120.0, 240.0),
    ]
    written = Signal("s", "x", by=ByKind.NODE, max_age_s=90.0).paced(60.0)
    assert (written.fresh_s, written.max_age_s) == (90.0, 90.0)


@pytest.mark.parametrize(
    ("expr", "max_age_s", "spacing_s", "said"),
    [
        ("x", 60.0, 15.0, []),
        ("x", 120.0, 60.0, []),
        ("x", 60.0, 60.0, ["samples come 1m apart, too seldom for a max_age of 1m: nodes are without one at times"]),
        (
            "rate(x[2m])",
            240.0,
            60.0,
            ["samples come 1m apart, too seldom for a range of 2m: it holds fewer than three"],
        ),
        ("rate(x[3m])", 240.0, 60.0, []),
        ("avg_over_time(x[2m])", 240.0, 60.0, []),
    ],
)
def test_what_is_too_short_for_the_spacing_is_told(
    expr: str, max_age_s: float, spacing_s: float, said: list[str]
) -> None:
    problems = list(pace_problems(Signal("s", expr, max_age_s=max_age_s).paced(spacing_s)))
    assert [problem.split(". ")[0] for problem in problems] == said
