from __future__ import annotations

import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain, repeat

import pytest

from scheduler.model.identity import NodeIdentity
from scheduler.model.rules import ByKind, RuleSet, Signal
from scheduler.signals.answers import SignalAnswer
from scheduler.signals.asking.query_errors import PrometheusUnreachable, QueryRejected
from scheduler.signals.asking.refresher import Refresher
from tests.signals.asking.scripted import FakeClient, NoObserver
from tests.support.clocks import OwnTime
from tests.support.waiting import wait_until

NODES = NodeIdentity(1, ("a", "b"), {"a": 0, "b": 1})


def rules_of(*signals: Signal, generation: int = 1) -> RuleSet:
    return RuleSet({signal.name: signal for signal in signals}, (), generation)


def fast(name: str, expr: str = "", interval_s: float = 0.1) -> Signal:
    return Signal(name, expr or f"{name}_expr", interval_s=interval_s, max_age_s=60.0)


class Observer:
    def __init__(self) -> None:
        self.done: list[tuple[str, str]] = []
        self.skipped: list[tuple[str, str]] = []
        self.servers: list[tuple[str, bool]] = []
        self.answers: list[SignalAnswer] = []

    def query_done(self, signal: str, duration_s: float, error_kind: str) -> None:
        self.done.append((signal, error_kind))

    def server_done(self, server: str, is_up: bool) -> None:
        self.servers.append((server, is_up))

    def query_skipped(self, signal: str, reason: str) -> None:
        self.skipped.append((signal, reason))

    def answered(self, answer: SignalAnswer) -> None:
        self.answers.append(answer)


class World:
    def __init__(self, clock: Callable[[], float]) -> None:
        self.client = FakeClient()
        self.observer = Observer()
        self.published: list[SignalAnswer] = []
        self.refresher = Refresher(
            self.client, self.published.append, self.observer, clock, concurrency=2, chance=lambda: 0.0
        )
        self.refresher.set_identity(NODES)

    def of(self, name: str) -> list[SignalAnswer]:
        return [answer for answer in self.published if answer.signal == name]


@contextmanager
def running(clock: Callable[[], float] = time.monotonic) -> Iterator[World]:
    world = World(clock)
    yield world
    world.refresher.stop()


@pytest.fixture
def world() -> Iterator[World]:
    with running() as world:
        yield world


def test_signals_are_asked_at_once_and_then_at_their_interval(world: World) -> None:
    world.client.answers["cpu_expr"] = {"a": 1}
    begun_s, took = time.monotonic(), OwnTime()
    world.refresher.set_rules(rules_of(fast("cpu", interval_s=0.3)))
    wait_until(lambda: world.published, 2.0, "the first answer")
    assert took.seconds < 0.25
    wait_until(lambda: len(world.published) >= 4, 5.0, "more answers")
    assert time.monotonic() - begun_s > 0.8
    assert world.published[0].node_values()[0] == 1.0
    assert world.observer.done[0] == ("cpu", "")
    assert world.observer.answers[0] == world.published[0]


def test_a_new_set_keeps_what_is_unchanged_and_asks_for_what_is_new(world: World) -> None:
    kept, changed, gone = fast("kept"), fast("changed"), fast("gone")
    added = world.refresher.set_rules(rules_of(kept, changed, gone))
    assert [asker.signal.name for asker in added] == ["kept", "changed", "gone"]
    wait_until(lambda: {answer.signal for answer in world.published} == {"kept", "changed", "gone"}, 2.0, "answers")
    moved = Signal(**{**{name: getattr(kept, name) for name in Signal.__dataclass_fields__}, "where": "elsewhere"})
    added = world.refresher.set_rules(rules_of(moved, fast("changed", "other"), fast("new"), generation=2))
    assert [asker.signal.name for asker in added] == ["changed", "new"]
    wait_until(lambda: world.of("new"), 2.0, "the new signal")
    time.sleep(0.2)
    world.published.clear()
    wait_until(lambda: {answer.signal for answer in world.published} == {"kept", "changed", "new"}, 2.0, "answers")
    assert {answer.rules_generation for answer in world.published} == {2}
    time.sleep(0.2)
    assert not world.of("gone")


def test_a_swap_waits_for_the_first_answers(world: World) -> None:
    announced: list[tuple[RuleSet, int]] = []
    rules = rules_of(*(fast(f"s{i}", interval_s=60.0) for i in range(8)))
    world.refresher.swap(rules, lambda rules: announced.append((rules, len(world.published))))
    assert announced == [(rules, 8)]
    world.refresher.swap(rules, lambda rules: announced.append((rules, len(world.published))))
    assert announced[1] == (rules, 8), "nothing new, nothing asked"


def test_a_swap_does_not_wait_for_ever(world: World) -> None:
    release = threading.Event()
    world.client.answers["hung_expr"] = lambda: release.wait(30.0) or {}
    begun_s, took = time.monotonic(), OwnTime()
    announced: list[RuleSet] = []
    world.refresher.swap(rules_of(fast("hung")), announced.append, within_s=0.2)
    assert time.monotonic() - begun_s >= 0.2
    assert took.seconds < 1.0
    assert len(announced) == 1
    release.set()


def test_slow_signals_do_not_delay_a_fast_one(world: World) -> None:
    released = threading.Event()

    def slow() -> Callable[[], dict[str, float]]:
        """Return what takes 1.2 s the first time, and then until it is released."""
        pauses_s = chain([1.2], repeat(60.0))

        def answer() -> dict[str, float]:
            released.wait(next(pauses_s))
            return {}

        return answer

    names = [f"slow{i}" for i in range(2)]
    for name in names:
        world.client.answers[f"{name}_expr"] = slow()
    world.refresher.set_rules(rules_of(*(fast(name) for name in names)))
    wait_until(lambda: {answer.signal for answer in world.published} >= set(names), 5.0, "slow answers")
    world.refresher.set_rules(rules_of(*(fast(name) for name in names), fast("quick")))
    wait_until(lambda: len(world.of("quick")) >= 8, 2.0, "the fast signal while others are slow")
    assert [len(world.of(name)) for name in names] == [1, 1]
    released.set()


def test_an_outage_costs_few_attempts_and_ends_with_every_signal_asked(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "scheduler.signals")
    is_down = threading.Event()
    is_down.set()
    names = [f"s{i}" for i in range(10)]
    for name in names:
        world.client.answers[f"{name}_expr"] = lambda: (
            PrometheusUnreachable("refused") if is_down.is_set() else {"a": 1}
        )
    begun_s = time.monotonic()
    world.refresher.set_rules(rules_of(*(fast(name) for name in names)))
    time.sleep(1.5)
    n_asked, longer = len(world.client.asked), (time.monotonic() - begun_s) / 1.5
    assert n_asked <= 8 * longer, "three to notice, what was under way, and the attempts after a pause"
    assert {reason for _, reason in world.observer.skipped} <= {"outage", "running"}
    assert world.published[0].error_kind == "unreachable"
    assert sum("cannot be queried" in record.message for record in caplog.records) == 1
    is_down.clear()
    wait_until(lambda: {answer.signal for answer in world.published if not answer.error} == set(names), 3.0, "recovery")


def test_a_query_that_is_refused_pauses_alone(world: World) -> None:
    world.client.answers["bad_expr"] = QueryRejected(422, "execution", "many-to-many")
    world.refresher.set_rules(rules_of(fast("bad"), fast("good")))
    wait_until(lambda: ("bad", "breaker") in world.observer.skipped, 3.0, "the pause")
    n_good, n_bad = len(world.of("good")), len(world.of("bad"))
    wait_until(lambda: len(world.of("good")) - n_good >= 3, 2.0, "more answers of the other")
    assert len(world.of("bad")) - n_bad <= 4
    assert world.of("bad")[0].error == "HTTP 422, execution: many-to-many"


def test_many_new_nodes_are_asked_for_at_once(world: World) -> None:
    world.client.answers["cpu_expr"] = {"c": 1}
    world.refresher.set_rules(rules_of(fast("cpu", interval_s=60.0)))
    wait_until(lambda: world.published, 2.0, "the first answer")
    assert world.published[0].n_mapped == 0
    world.refresher.set_identity(NodeIdentity(2, ("a", "b", "c"), {"a": 0, "b": 1, "c": 2}))
    wait_until(lambda: len(world.published) == 2, 2.0, "the second answer")
    assert (world.published[1].n_mapped, world.published[1].identity_generation) == (1, 2)


def test_what_is_by_node_is_asked_once_the_nodes_are_known() -> None:
    client, published = FakeClient(), list[SignalAnswer]()
    refresher = Refresher(client, published.append, NoObserver())
    try:
        refresher.set_rules(rules_of(fast("cpu", interval_s=60.0), Signal("burn", "burn_expr", ByKind.CLUSTER)))
        wait_until(lambda: published, 2.0, "the signal of the cluster")
        time.sleep(0.2)
        assert {answer.signal for answer in published} == {"burn"}, "an answer without nodes would pass for one"
        refresher.set_identity(NodeIdentity(1))
        wait_until(lambda: "cpu" in {answer.signal for answer in published}, 2.0, "the signal by node, with no node")
    finally:
        refresher.stop()


def test_a_fault_of_ours_is_a_failure_and_does_not_end_the_asking(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    def fault() -> dict[str, float]:
        raise ZeroDivisionError("a bug")

    world.client.answers["cpu_expr"] = PrometheusUnreachable("refused")
    world.refresher.set_rules(rules_of(fast("cpu")))
    wait_until(lambda: ("cpu", "outage") in world.observer.skipped, 3.0, "the outage")
    world.client.answers["cpu_expr"] = fault
    wait_until(lambda: ("cpu", "other") in world.observer.done, 5.0, "the one attempt to fail otherwise")
    assert "ZeroDivisionError: a bug" in caplog.text
    world.client.answers["cpu_expr"] = {"a": 1}
    wait_until(lambda: not world.published[-1].error, 5.0, "recovery")


def test_refresh_now_asks_for_everything_once(world: World) -> None:
    world.refresher.swap(rules_of(fast("one", interval_s=60.0), fast("two", interval_s=60.0)), lambda _: None)
    wait_until(lambda: len(world.published) == 2, 2.0, "the first answers")
    world.refresher.refresh_now()
    wait_until(lambda: len(world.published) == 4, 2.0, "the second answers")


def test_a_signal_that_stands_still_is_set_going() -> None:
    offset = [0.0]
    with running(lambda: time.monotonic() + offset[0]) as world:
        world.refresher.swap(rules_of(fast("cpu", interval_s=60.0)), lambda _: None)
        wait_until(lambda: len(world.published) == 1, 2.0, "the first answer")
        world.refresher.tick()
        offset[0] = 92.0
        world.refresher.tick()
        wait_until(lambda: len(world.published) == 2, 2.0, "the answer after a stand-still")
        world.refresher.tick()
        time.sleep(0.2)
        assert len(world.published) == 2


def test_complaints_are_logged_when_they_change(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "scheduler.signals")
    world.client.answers["cpu_expr"] = {"x": 1}
    world.refresher.set_rules(rules_of(fast("cpu")))
    wait_until(lambda: len(world.published) >= 4, 3.0, "answers")
    world.client.answers["cpu_expr"] = {"a": 1}
    wait_until(lambda: world.published[-1].n_mapped, 3.0, "a good answer")
    wait_until(lambda: "healthy again" in caplog.text, 1.0, "the good news")
    assert caplog.text.count("none names a known node") == 1


def test_nothing_is_published_after_stop(world: World) -> None:
    world.refresher.set_rules(rules_of(fast("cpu")))
    wait_until(lambda: world.published, 2.0, "the first answer")
    world.refresher.stop()
    n_published = len(world.published)
    time.sleep(0.4)
    assert len(world.published) == n_published
    world.refresher.stop()


def test_a_hung_query_does_not_hold_the_end_of_the_process() -> None:
    program = """
import threading
import time
from scheduler.model.rules import ByKind, RuleSet, Signal
from scheduler.signals.asking.refresher import Refresher
asked = threading.Event()
class Hung:
    def query(self, expr, lookback_s=None):
        asked.set()
        threading.Event().wait()
refresher = Refresher(Hung(), print, None)
refresher.set_rules(RuleSet({"s": Signal("s", "x", ByKind.CLUSTER)}, (), 1))
assert asked.wait(30.0)
print(time.monotonic(), flush=True)
refresher.stop()
"""
    done = subprocess.run([sys.executable, "-c", program], timeout=120, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert time.monotonic() - float(done.stdout) < 10.0
