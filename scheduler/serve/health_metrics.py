"""What the page /metrics/slis shows."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge

from scheduler.metrics import Family


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
        """Count all checks of a page as failed: nobody answered."""
        for name, its_kind in tuple(self._known):
            if its_kind == kind:
                self.observe(name, kind, False)
