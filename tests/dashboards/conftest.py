"""The scheduler beside the real control plane and Prometheus, as the end-to-end tests have it."""

from __future__ import annotations

from tests.e2e.conftest import start_vane

__all__ = ["start_vane"]
