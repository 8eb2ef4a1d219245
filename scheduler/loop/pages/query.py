"""What a page asks the deciding thread: a type that crosses between the processes and says how it is answered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from scheduler.cluster.cache import Cache
from scheduler.cluster.queue import SchedulingQueue
from scheduler.loop.ports import Clock
from scheduler.loop.record_ring import RecordRing
from scheduler.metrics import Metrics
from scheduler.signals.columns.store import SignalStore


@dataclass(frozen=True, slots=True)
class LoopStage:
    """How far the deciding thread has come; a standby has its lists and does not lead."""

    has_synced: bool
    is_deciding: bool
    is_standby: bool = False


@dataclass(frozen=True, slots=True)
class PageContext:
    """What answers are made of: all that the deciding thread owns."""

    cache: Cache
    queue: SchedulingQueue
    signals: SignalStore
    records: RecordRing
    metrics: Metrics
    clock: Clock
    stage: LoopStage


class AnswerQuery(msgspec.Struct, frozen=True, tag=True):
    """A query with one answer."""

    def answer(self, context: PageContext) -> bytes:
        raise NotImplementedError


class ListingQuery(msgspec.Struct, frozen=True, tag=True):
    """A query whose answer comes in slices, so that decisions go on in between; an empty one follows the last.

    Of each class one listing at a time is kept: a new one begins at the start.
    """

    def slices(self, context: PageContext) -> Iterator[bytes]:
        """Yield the slices, none of them empty; each takes the deciding thread about a millisecond at most."""
        raise NotImplementedError


PageQuery = AnswerQuery | ListingQuery
"""Each page's query is a class of its own; `serve.pages.AnyQuery` names them all."""
