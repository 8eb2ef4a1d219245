"""A fault of Vane's own, wherever on the deciding thread: one Pod, one page or one record suffers, the rest goes on."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import pytest
from prometheus_client import CollectorRegistry

from scheduler.decision.record import DecisionRecord
from scheduler.errors import CacheCorruptedError
from scheduler.loop.failure import Guard
from scheduler.loop.pages.decisions import DecisionsQuery
from scheduler.loop.pages.query import AnswerQuery, ListingQuery, PageContext
from scheduler.loop.record_ring import RecordRing
from scheduler.metrics import Metrics
from scheduler.model.signals import SignalTable
from scheduler.model.views import NodeView
from scheduler.signals.columns.store import SignalStore
from tests.builders import make_node, make_pod
from tests.loop.harness import Harness


class BrokenStore(SignalStore):
    """Cannot be frozen as often as it is told."""

    n_faults = 0

    def freeze(self, nodes: NodeView, now_s: float) -> SignalTable:
        if self.n_faults:
            self.n_faults -= 1
            raise KeyError("signal")
        return super().freeze(nodes, now_s)

    def expire(self, now_s: float) -> frozenset[str]:
        if self.n_faults:
            raise KeyError("signal")
        return super().expire(now_s)


class BrokenRing(RecordRing):
    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    def add(self, record: DecisionRecord) -> None:
        raise self._error


class BrokenQuery(AnswerQuery, frozen=True):
    def answer(self, context: PageContext) -> bytes:
        raise ZeroDivisionError("by nought")


class BrokenListing(ListingQuery, frozen=True):
    def slices(self, context: PageContext) -> Iterator[bytes]:
        yield b"first"
        raise ZeroDivisionError("by nought")


def start(
    records: RecordRing | None = None, signals: Callable[[Callable[[], float]], SignalStore] = SignalStore
) -> Harness:
    harness = Harness(records=records, signals=signals)
    harness.list_nodes(make_node("a", cpu="4", memory="8Gi", pods=10))
    harness.list_pods()
    for number in range(2):
        harness.see(make_pod(f"p{number}", uid=f"uid-{number}", cpu="1"))
    return harness


def n_faults(harness: Harness, where: str) -> float:
    return harness.metrics.registry.get_sample_value("vane_faults_total", {"where": where}) or 0.0


def test_signals_that_cannot_be_frozen_fail_one_attempt() -> None:
    harness = start(signals=BrokenStore)
    store = harness.world.signals
    assert isinstance(store, BrokenStore)
    store.n_faults = 1
    assert harness.run() == 2

    assert list(harness.placed()) == ["p1"]
    (report,) = harness.binder.reports
    assert (report.pod.name, report.reason, report.message) == ("p0", "SchedulerError", "KeyError: 'signal'")
    assert n_faults(harness, "cycle") == 1
    harness.now_s += 3
    assert harness.run() == 1
    assert list(harness.placed()) == ["p1", "p0"]


def test_what_is_done_between_the_cycles_may_fail() -> None:
    harness = start(signals=BrokenStore)
    store = harness.world.signals
    assert isinstance(store, BrokenStore)
    store.n_faults = 1
    harness.loop.look_after()
    harness.cycle.follow()
    assert (n_faults(harness, "look-after"), n_faults(harness, "follow")) == (1, 1)
    assert harness.run() == 2
    assert len(harness.placed()) == 2


def test_a_decision_that_leaves_no_record_stands() -> None:
    harness = start(BrokenRing(ValueError("no such score")))
    harness.run()

    assert len(harness.placed()) == 2
    assert n_faults(harness, "record") == 2


def test_a_contradiction_in_the_cache_is_never_survived() -> None:
    harness = start(BrokenRing(CacheCorruptedError("two nodes")))
    with pytest.raises(CacheCorruptedError):
        harness.run()


def test_a_fault_on_the_way_to_the_bind_is_undone() -> None:
    harness = start()

    def fail_once() -> None:
        harness.binder.on_bind = lambda: None
        raise IndexError("out of range")

    harness.binder.on_bind = fail_once
    harness.run()

    assert not harness.world.cache.is_placed("uid-0")
    assert harness.world.cache.is_placed("uid-1")
    assert [report.message for report in harness.binder.reports] == ["IndexError: out of range"]
    assert harness.world.queue.place_of("uid-0") == "error-backoff"
    assert n_faults(harness, "binding") == 1


@pytest.mark.parametrize("query", [BrokenQuery(), BrokenListing()])
def test_a_page_that_cannot_be_answered_fails_alone(query: AnswerQuery | ListingQuery) -> None:
    harness = start()
    if isinstance(query, BrokenListing):
        assert harness.page(query) == b"first"
        assert harness.page(query, goes_on=True) == b""
        assert harness.page(query) == b"first"
    else:
        assert harness.page(query) == b""

    assert harness.page_faults == ["ZeroDivisionError: by nought"]
    assert n_faults(harness, "page") == 1
    assert harness.page(DecisionsQuery(None, 3)) != b""


def test_the_log_shows_a_fault_that_comes_again_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    now_s = 0.0
    guard = Guard(Metrics(CollectorRegistry()), lambda: now_s)
    with caplog.at_level(logging.ERROR):
        for now_s in (0.0, 1.0, 59.0, 60.0):  # noqa: B007 - the guard reads it
            with guard.around("follow"):
                raise KeyError("signal")
        with guard.around("follow"):
            raise ValueError("another")

    assert [str(record.exc_info[1]) for record in caplog.records if record.exc_info] == [
        "'signal'",
        "'signal'",
        "another",
    ]
