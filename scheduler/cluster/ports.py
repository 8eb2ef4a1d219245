"""What the queue needs from outside, as the queue sees it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from scheduler.framework.events import EventInterest
from scheduler.framework.plugin import PreEnqueuePlugin, QueueSortPlugin


class QueueProfile(Protocol):
    """What the queue reads of a profile; `framework.profile.Profile` has it."""

    @property
    def queue_sort(self) -> QueueSortPlugin: ...

    @property
    def pre_enqueue(self) -> tuple[PreEnqueuePlugin, ...]: ...

    @property
    def events(self) -> Mapping[str, tuple[EventInterest, ...]]: ...


class QueueObserver(Protocol):
    """Told of every Pod that enters a queue: `scheduler_queue_incoming_pods_total{event, queue}`."""

    def incoming(self, event: str, queue: str) -> None: ...


class _Unobserved:
    def incoming(self, event: str, queue: str) -> None:
        """Nobody counts."""


UNOBSERVED: QueueObserver = _Unobserved()
