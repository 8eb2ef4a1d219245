"""How the asking for a signal stands: the last answer, why nodes lack a value, and when it is asked again."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

from scheduler.model.identity import NodeIdentity
from scheduler.model.rules import ByKind, Reduce, Signal
from scheduler.signals.asking.ingest import ingest
from scheduler.signals.asking.missing_reasons import lacks_of
from scheduler.signals.asking.query_errors import PrometheusUnreachable, QueryRejected
from scheduler.signals.asking.query_health import Standing
from scheduler.signals.asking.resolver import NodeResolver
from scheduler.signals.asking.session import Series
from scheduler.signals.problems import Lack
from tests.signals.asking.test_refresher import World, fast, rules_of, running
from tests.support.waiting import wait_until

NAMES = ("a", "b", "c", "d")
RESOLVER = NodeResolver(NodeIdentity(1, NAMES, {name: i for i, name in enumerate(NAMES)}))


def series(*samples: tuple[str, str]) -> list[Series]:
    return [Series({"node": name}, (0.0, text)) for name, text in samples]


@pytest.mark.parametrize(
    ("samples", "fields", "lacks"),
    [
        ([("a", "0.5"), ("b", "NaN"), ("c", "+Inf")], {}, {"b": Lack.NAN, "c": Lack.INF}),
        ([("a", "x"), ("b", "7"), ("b", "8")], {"range": (0.0, 1.0)}, {"a": Lack.PARSE, "b": Lack.DUPLICATE}),
        ([("a", "-1"), ("b", "0.5")], {"range": (0.0, 1.0)}, {"a": Lack.RANGE}),
        ([("a", "NaN"), ("a", "0.5"), ("b", "NaN")], {"reduce": Reduce.MAX}, {"b": Lack.NAN}),
        ([("a", "0.7"), ("a", "0.7")], {"reduce": Reduce.SUM, "range": (0.0, 1.0)}, {"a": Lack.RANGE}),
        ([("nobody", "NaN")], {}, {}),
    ],
)
def test_a_node_that_series_speak_of_and_that_has_no_value_has_its_reason(
    samples: list[tuple[str, str]], fields: dict[str, object], lacks: dict[str, Lack]
) -> None:
    found = ingest(Signal("s", "up", **fields), series(*samples), RESOLVER)  # type: ignore[arg-type]  # fields by name
    assert lacks_of(found, found) == lacks


def test_what_was_taken_away_for_its_age_is_stale() -> None:
    found = ingest(Signal("s", "up"), series(("a", "1"), ("b", "NaN")), RESOLVER)
    aged = type(found)(found.keys, np.full(len(NAMES), math.nan), found.drops, found.lacks)
    assert lacks_of(found, aged) == {"a": Lack.STALE, "b": Lack.NAN}


def test_domains_have_their_reasons_too() -> None:
    zones = [Series({"zone": "z1"}, (0.0, "NaN")), Series({"zone": "z2"}, (0.0, "1"))]
    found = ingest(Signal("s", "up", by=ByKind.LABEL, label="zone"), zones, RESOLVER)
    assert lacks_of(found, found) == {"z1": Lack.NAN}


@pytest.fixture
def world() -> Iterator[World]:
    with running() as world:
        yield world


def standing(world: World, name: str) -> Standing:
    return world.refresher.standings()[name]


def test_a_signal_that_is_well_stands_by_its_interval(world: World) -> None:
    world.client.answers["cpu_expr"] = {"a": 1, "b": "NaN"}
    world.refresher.set_rules(rules_of(fast("cpu", interval_s=30.0)))
    wait_until(lambda: standing(world, "cpu").last is not None and standing(world, "cpu").next_try_s > 0, 5.0, "answer")
    stands = standing(world, "cpu")
    assert stands.last == world.published[-1]
    assert (stands.lacks, stands.pause) == ({"b": Lack.NAN}, "")
    assert 0 <= stands.last_ago_s < 10
    assert 15 < stands.next_try_s <= 30


def test_a_signal_of_its_own_failures_and_a_server_that_is_down_are_told_apart(world: World) -> None:
    world.client.answers["bad_expr"] = QueryRejected(422, "execution", "many-to-many")
    world.client.answers["cpu_expr"] = {"a": 1}
    world.refresher.set_rules(rules_of(fast("bad"), fast("cpu")))
    wait_until(lambda: standing(world, "bad").pause == "breaker", 5.0, "the breaker")
    last = standing(world, "bad").last
    assert last is not None
    assert (last.error_kind, last.error) == ("rejected", "HTTP 422, execution: many-to-many")
    assert standing(world, "cpu").pause == ""

    world.client.answers["cpu_expr"] = world.client.answers["bad_expr"] = PrometheusUnreachable("refused")
    wait_until(lambda: standing(world, "cpu").pause == "outage", 5.0, "the outage")

    world.client.answers["cpu_expr"] = world.client.answers["bad_expr"] = {"a": 1}
    wait_until(lambda: standing(world, "cpu").pause == "", 5.0, "the end of the outage")


def test_a_signal_that_is_gone_stands_nowhere(world: World) -> None:
    world.refresher.set_rules(rules_of(fast("cpu")))
    world.refresher.set_rules(rules_of(fast("other"), generation=2))
    assert world.refresher.standings().keys() == {"other"}
