from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from scheduler.model.identity import NodeIdentity
from scheduler.model.rules import RuleSet, Signal
from scheduler.signals.answers import SignalAnswer
from scheduler.signals.asking.client import ClientSettings, PrometheusClient, QueryResult
from scheduler.signals.asking.query_errors import PrometheusUnreachable
from scheduler.signals.asking.servers import Servers
from tests.signals.asking.scripted import FakeClient, NoObserver, Script, always, scripted, vector
from tests.support.clocks import OwnTime
from tests.support.waiting import wait_until

NODES = NodeIdentity(1, ("a", "b"), {"a": 0, "b": 1})


class Counting(NoObserver):
    def __init__(self) -> None:
        self.up: dict[str, bool] = {}

    def server_done(self, server: str, is_up: bool) -> None:
        self.up[server] = is_up


class World:
    """The server without a name and one called `far`."""

    def __init__(self) -> None:
        self.clients = {"": FakeClient(), "far": FakeClient()}
        self.observer = Counting()
        self.published: list[SignalAnswer] = []
        self.servers = Servers(self.clients, self.published.append, self.observer)
        self.servers.set_identity(NODES)

    def n_good(self, name: str) -> int:
        return sum(answer.signal == name and not answer.error for answer in self.published)


@contextmanager
def running() -> Iterator[World]:
    world = World()
    yield world
    world.servers.stop()


def rules_of(*signals: Signal, generation: int = 1) -> RuleSet:
    return RuleSet({signal.name: signal for signal in signals}, (), generation)


def signal(name: str, server: str = "", interval_s: float = 0.1) -> Signal:
    return Signal(name, f"{name}_expr", interval_s=interval_s, max_age_s=60.0, server=server)


def test_each_signal_is_asked_of_its_own_server() -> None:
    with running() as world:
        added = world.servers.set_rules(rules_of(signal("one"), signal("two", "far"), signal("three", "unknown")))
        assert [asker.signal.name for asker in added] == ["one", "two"]
        wait_until(lambda: world.n_good("one") > 1 and world.n_good("two") > 1, 5.0, "answers of both")
        assert not [expr for expr in world.clients[""].asked if "one_expr" not in expr]
        assert not [expr for expr in world.clients["far"].asked if "two_expr" not in expr]


def test_a_signal_that_moves_is_asked_of_the_new_server_only() -> None:
    with running() as world:
        world.servers.set_rules(rules_of(signal("one")))
        wait_until(lambda: world.n_good("one") > 0, 5.0, "the first answer")
        world.servers.set_rules(rules_of(signal("one", "far"), generation=2))
        wait_until(lambda: len(world.clients["far"].asked) > 2, 5.0, "the other server to be asked")
        n_asked = world.clients[""].asked.count("one_expr")
        wait_until(lambda: len(world.clients["far"].asked) > 8, 5.0, "it to be asked more often")
        assert world.clients[""].asked.count("one_expr") <= n_asked + 1, "one may have been under way"
        signatures = {answer.signature for answer in world.published}
        assert len(signatures) == 2, "an answer of the one is none of the other"


def test_a_hanging_server_delays_no_signal_of_another() -> None:
    released = threading.Event()

    def hang() -> QueryResult:
        released.wait(20.0)
        return QueryResult([], False, (), time.monotonic(), None)

    with running() as world:
        hanging = [signal(f"hung{i}", "far") for i in range(20)]
        for one in hanging:
            world.clients["far"].answers[one.expr] = hang
        begun_s, took = time.monotonic(), OwnTime()
        announced: list[tuple[float, float]] = []
        rules = rules_of(signal("one"), *hanging)
        world.servers.swap(rules, lambda _: announced.append((time.monotonic() - begun_s, took.seconds)), within_s=0.5)
        wait_until(lambda: world.n_good("one") > 20, 10.0, "answers of the other")
        after_s, own_s = announced[0]
        assert after_s > 0.4
        assert own_s < 5.0, "the set is swapped though some do not answer"
        assert not [answer for answer in world.published if answer.signal != "one"]
        assert world.observer.up == {"": True}
        released.set()


def test_an_outage_of_one_server_is_no_outage_of_another() -> None:
    with running() as world:
        world.clients["far"].answers["two_expr"] = PrometheusUnreachable("refused")
        world.servers.set_rules(rules_of(signal("one"), signal("two", "far")))
        wait_until(lambda: world.observer.up == {"": True, "far": False}, 5.0, "the outage")
        n_good = world.n_good("one")
        wait_until(lambda: world.n_good("one") > n_good + 5, 5.0, "more answers")
        world.clients["far"].answers["two_expr"] = {"a": 1.0}
        wait_until(lambda: world.observer.up["far"], 10.0, "the end of the outage")


@pytest.mark.parametrize(
    ("script", "kind", "words"),
    [
        (always("", 302, {"Location": "https://login/?state=secret"}), "redirect", "redirected to 'https://login/'"),
        (always("no", 401), "unauthorized", "another token, user or tenant"),
    ],
)
def test_who_does_not_let_us_in_is_named_once_and_asked_with_pauses(
    script: Script, kind: str, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    published: list[SignalAnswer] = []
    with scripted(script) as server, caplog.at_level(logging.INFO, "scheduler.signals"):
        clients = {"far": PrometheusClient(ClientSettings(server.url))}
        servers = Servers(clients, published.append, NoObserver())
        try:
            servers.set_identity(NODES)
            servers.set_rules(rules_of(signal("two", "far")))
            began_s = time.monotonic()
            wait_until(lambda: len(server.requests) >= 6, 10.0, "six attempts")
            took_s = time.monotonic() - began_s
            server.script = always(vector([({"node": "a"}, "1")]))
            wait_until(lambda: published[-1].n_mapped == 1, 10.0, "the end of it")
        finally:
            servers.stop()
    assert took_s > 1.0, "ten a second without pauses"
    assert {answer.error_kind for answer in published if answer.error} == {kind}
    said = [record for record in caplog.records if record.levelno == logging.WARNING and "no answer" in record.message]
    assert [record.getMessage() for record in said] == [f"signal two of Prometheus far: no answer ({kind})"]
    assert words in str(vars(said[0])["error"])
    assert "secret" not in caplog.text
