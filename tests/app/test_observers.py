from __future__ import annotations

from prometheus_client import CollectorRegistry

from scheduler.app.observers import CountingRefresher, counting_restarts
from scheduler.exposition import render
from scheduler.metrics import Metrics
from scheduler.signals.answers import Drops, SignalAnswer


def test_restarts_of_watches_are_counted_by_kind_and_reason() -> None:
    metrics = Metrics(CollectorRegistry())
    observer = counting_restarts(metrics)
    observer("Pod", "closed")
    observer("Pod", "closed")
    observer("Node", "expired")
    page = render(metrics.registry).decode()
    assert 'vane_watch_restarts_total{kind="Pod",reason="closed"} 2.0' in page
    assert 'vane_watch_restarts_total{kind="Node",reason="expired"} 1.0' in page


def test_the_page_names_what_is_wrong_with_the_last_answer_and_nothing_else() -> None:
    metrics = Metrics(CollectorRegistry())
    observer = CountingRefresher(metrics)

    def shown() -> list[str]:
        lines = render(metrics.registry).decode().splitlines()
        return [line for line in lines if line.startswith("vane_signal_problem{")]

    observer.answered(SignalAnswer("cpu", "", 1, 60.0, 0.0, n_series=4, n_mapped=2, drops=Drops(nan=1, stale=1)))
    assert shown() == ['vane_signal_problem{problem="stale",signal="cpu"} 1.0']
    observer.query_done("cpu", 5.0, "timeout")
    assert shown() == ['vane_signal_problem{problem="timeout",signal="cpu"} 1.0']
    observer.answered(SignalAnswer("cpu", "", 1, 60.0, 0.0, n_series=4, n_mapped=4))
    observer.query_done("cpu", 0.1, "")
    assert shown() == []
    observer.query_done("cpu", 5.0, "timeout")
    metrics.keep_signals(["memory"])
    assert shown() == []
    observer.query_done("cpu", 5.0, "timeout")
    assert shown() == ['vane_signal_problem{problem="timeout",signal="cpu"} 1.0']
