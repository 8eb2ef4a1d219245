"""The pages /metrics, of all processes, and /metrics/slis, of the answers to health checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from prometheus_client import CollectorRegistry, Counter, Gauge

from scheduler.exposition import CONTENT_TYPE, PAGE_LIFE_S, merge
from scheduler.loop.pages.metrics import MetricsQuery
from scheduler.metrics import Family
from scheduler.serve.answered_page import OwnFigures, RoutedPage


class MetricsPage(RoutedPage[MetricsQuery, bytes]):
    """The families of the deciding process with those of the others."""

    path = "/metrics"
    content_type = CONTENT_TYPE
    shared_s = PAGE_LIFE_S

    def __init__(self, query: MetricsQuery) -> None:
        super().__init__(query)
        self._slices: list[bytes] = []

    @classmethod
    def read(cls, parameters: Mapping[str, str]) -> Self:
        return cls(MetricsQuery())

    def add(self, slice_: bytes) -> None:
        self._slices.append(slice_)

    def body(self, own: OwnFigures) -> bytes:
        pages = own.metrics()
        pages["deciding"] += b"".join(self._slices)
        return merge(pages)


class HealthMetrics:
    """What `/metrics/slis` shows: each health check as last answered, and how often it was answered how.

    `kind` is the page it was asked on: healthz, livez or readyz.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._known: set[tuple[str, str]] = set()
        register = self.registry.register
        self._last = Family(
            Gauge("kubernetes_healthcheck", "1 if the check succeeded last, else 0.", ("name", "type"), registry=None),
            register,
        )
        self._total = Family(
            Counter(
                "kubernetes_healthchecks_total",
                "Answers of the check, by status: success, error.",
                ("name", "type", "status"),
                registry=None,
            ),
            register,
        )

    def observe(self, name: str, kind: str, ok: bool) -> None:
        self._known.add((name, kind))
        self._last(name, kind).set(ok)
        self._total(name, kind, "success" if ok else "error").inc()

    def unanswered(self, kind: str) -> None:
        """Count all checks of a page as failed: there was no answer."""
        for name, its_kind in tuple(self._known):
            if its_kind == kind:
                self.observe(name, kind, False)
