from __future__ import annotations

from prometheus_client import CollectorRegistry

from scheduler.app.observing import counting_restarts
from scheduler.exposition import render
from scheduler.metrics import Metrics


def test_restarts_of_watches_are_counted_by_kind_and_reason() -> None:
    metrics = Metrics(CollectorRegistry())
    observer = counting_restarts(metrics)
    observer("Pod", "closed")
    observer("Pod", "closed")
    observer("Node", "expired")
    page = render(metrics.registry).decode()
    assert 'vane_watch_restarts_total{kind="Pod",reason="closed"} 2.0' in page
    assert 'vane_watch_restarts_total{kind="Node",reason="expired"} 1.0' in page
