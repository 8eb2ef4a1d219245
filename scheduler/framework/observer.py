"""Observer: how the pure core lets itself be timed without reading a clock."""

from __future__ import annotations

from typing import Protocol


class Observer(Protocol):
    """Told when an extension point is through; the implementer measures the time since the lap before."""

    def lap(self, point: str, status: str) -> None: ...


class _Unobserved:
    def lap(self, point: str, status: str) -> None:
        """Nobody is timing."""


UNOBSERVED: Observer = _Unobserved()
