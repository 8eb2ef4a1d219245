"""The health of a signal's queries: the last answer, why nodes lack a value, and when it is asked again."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

from scheduler.model.identity import NodeIdentity
from scheduler.model.rules import ByKind, Reduce, Signal
from scheduler.signals.asking.ingest import ingest
from scheduler.signals.asking.query_errors import PrometheusUnreachable, QueryRejected
from scheduler.signals.asking.query_health import QueryHealth
from scheduler.signals.asking.resolver import NodeResolver
from scheduler.signals.asking.session import ResultSeries
from scheduler.signals.problems import MissingReason
from tests.signals.asking.test_refresher import World, fast, rules_of, running
from tests.support.waiting import wait_until

NAMES = ("a", "b", "c", "d")
RESOLVER = NodeResolver(NodeIdentity(1, NAMES, {name: i for i, name in enumerate(NAMES)}))


def series(*samples: tuple[str, str]) -> list[ResultSeries]:
    return [ResultSeries({"node": name}, (0.0, text)) for name, text in samples]


@pytest.mark.parametrize(
    ("samples", "fields", "missing"),
    [
        ([("a", "0.5"), ("b", "NaN"), ("c", "+Inf")], {}, {"b": MissingReason.NAN, "c": MissingReason.INF}),
        (
            [("a", "x"), ("b", "7"), ("b", "8")],
            {"range": (0.0, 1.0)},
            {"a": MissingReason.PARSE, "b": MissingReason.DUPLICATE},
        ),
        ([("a", "-1"), ("b", "0.5")], {"range": (0.0, 1.0)}, {"a": MissingReason.RANGE}),
        ([("a", "NaN"), ("a", "0.5"), ("b", "NaN")], {"reduce": Reduce.MAX}, {"b": MissingReason.NAN}),
        ([("a", "0.7"), ("a", "0.7")], {"reduce": Reduce.SUM, "range": (0.0, 1.0)}, {"a": MissingReason.RANGE}),
        ([("nobody", "NaN")], {}, {}),
    ],
)
def test_a_node_that_series_speak_of_and_that_has_no_value_has_its_reason(
    samples: list[tuple[str, str]], fields: dict[str, object], missing: dict[str, MissingReason]
) -> None:
    found = ingest(Signal("s", "up", **fields), series(*samples), RESOLVER)  # type: ignore[arg-type]  # fields by name
    assert found.missing_reasons(found) == missing


def test_what_was_taken_away_for_its_age_is_stale() -> None:
    found = ingest(Signal("s", "up"), series(("a", "1"), ("b", "NaN")), RESOLVER)
    aged = type(found)(found.keys, np.full(len(NAMES), math.nan), found.drops, found.missing)
    assert aged.missing_reasons(found) == {"a": MissingReason.STALE, "b": MissingReason.NAN}


def test_domains_have_their_reasons_too() -> None:
    zones = [ResultSeries({"zone": "z1"}, (0.0, "NaN")), ResultSeries({"zone": "z2"}, (0.0, "1"))]
    found = ingest(Signal("s", "up", by=ByKind.LABEL, label="zone"), zones, RESOLVER)
    assert found.missing_reasons(found) == {"z1": MissingReason.NAN}


@pytest.fixture
def world() -> Iterator[World]:
    with running() as world:
        yield world


def health(world: World, name: str) -> QueryHealth:
    return world.refresher.query_health()[name]


def test_a_healthy_signal_is_asked_at_its_interval(world: World) -> None:
    world.client.answers["cpu_expr"] = {"a": 1, "b": "NaN"}
    world.refresher.set_rules(rules_of(fast("cpu", interval_s=30.0)))
    wait_until(lambda: health(world, "cpu").last is not None and health(world, "cpu").next_try_s > 0, 5.0, "answer")
    now = health(world, "cpu")
    assert now.last == world.published[-1]
    assert (now.missing, now.pause) == ({"b": MissingReason.NAN}, "")
    assert 0 <= now.last_ago_s < 10
    assert 15 < now.next_try_s <= 30


def test_a_signal_of_its_own_failures_and_a_server_that_is_down_are_told_apart(world: World) -> None:
    world.client.answers["bad_expr"] = QueryRejected(422, "execution", "many-to-many")
    world.client.answers["cpu_expr"] = {"a": 1}
    world.refresher.set_rules(rules_of(fast("bad"), fast("cpu")))
    wait_until(lambda: health(world, "bad").pause == "breaker", 5.0, "the breaker")
    last = health(world, "bad").last
    assert last is not None
    assert (last.error_kind, last.error) == ("rejected", "HTTP 422, execution: many-to-many")
    assert health(world, "cpu").pause == ""

    world.client.answers["cpu_expr"] = world.client.answers["bad_expr"] = PrometheusUnreachable("refused")
    wait_until(lambda: health(world, "cpu").pause == "outage", 5.0, "the outage")

    world.client.answers["cpu_expr"] = world.client.answers["bad_expr"] = {"a": 1}
    wait_until(lambda: health(world, "cpu").pause == "", 5.0, "the end of the outage")


def test_a_signal_that_is_gone_has_no_health(world: World) -> None:
    world.refresher.set_rules(rules_of(fast("cpu")))
    world.refresher.set_rules(rules_of(fast("other"), generation=2))
    assert world.refresher.query_health().keys() == {"other"}
