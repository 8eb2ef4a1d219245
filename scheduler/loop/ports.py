"""What the loop needs from outside, as the loop sees it; `app` hands in the real things, tests their twins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from scheduler.framework.instructions import Notify
from scheduler.kube.binder.messages import (
    BindRequest,
    EventRequest,
    EvictRequest,
    FailureReport,
    PatchRequest,
    WriteRequest,
)

Clock = Callable[[], float]
"""Monotonic seconds."""

Send = Callable[[Notify], None]
"""Has a notification delivered; never blocks."""


class Binder(Protocol):
    """The writing side of the API server. Never blocks; outcomes come back as messages."""

    def bind(self, request: BindRequest) -> None: ...

    def patch(self, request: PatchRequest) -> None: ...

    def write(self, request: WriteRequest) -> None: ...

    def evict(self, request: EvictRequest) -> None: ...

    def report_failure(self, report: FailureReport) -> None: ...

    def event(self, request: EventRequest) -> None: ...

    def flush(self) -> None:
        """Send what was asked for so far without waiting for more."""
