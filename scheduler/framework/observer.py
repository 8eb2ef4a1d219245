"""Observer: how the pure core lets itself be timed without reading a clock."""

from __future__ import annotations

from typing import Final, Protocol


class Observer(Protocol):
    """Called when an extension point or one of its plugins has ended; the implementation measures the time in between.

    `status` is a code's label, or ERROR.
    """

    def lap(self, point: str, status: str) -> None: ...

    def ran(self, point: str, plugin: str, status: str) -> None: ...


class _Unobserved:
    def lap(self, point: str, status: str) -> None:
        """Nobody is timing."""

    def ran(self, point: str, plugin: str, status: str) -> None:
        """Nobody is timing."""


SUCCESS: Final = "Success"
ERROR: Final = "Error"
"""The status where a plugin raised or broke its contract."""


UNOBSERVED: Observer = _Unobserved()
