"""Pages: answers what pages ask, on the deciding thread; and the query of the health pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from scheduler.loop.cycle import World
from scheduler.loop.pages.query import AnswerQuery, ListingQuery, LoopStage, PageContext, PageQuery
from scheduler.loop.ports import Clock
from scheduler.metrics import Metrics

_LISTING_LIFE_S = 30.0
"""How long a listing that is not continued keeps its Pods."""


class HealthQuery(AnswerQuery, frozen=True):
    """The checks of one health page as JSON: [[name, ok, text], …]; a standby that has its lists is ready."""

    kind: str

    def answer(self, context: PageContext) -> bytes:
        if self.kind == "livez":
            # It answers, so it lives; what it still waits for is a matter of readiness.
            return msgspec.json.encode([("deciding-thread", True, "")])
        stage = context.stage
        checks = [("caches-synced", stage.has_synced, "" if stage.has_synced else "the first lists have not come yet")]
        if not stage.is_standby:
            text = "" if stage.is_deciding else "waiting for the first lists and answers"
            checks.append(("deciding", stage.is_deciding, text))
        return msgspec.json.encode(checks)


@dataclass(slots=True)
class _Listing:
    slices: Iterator[bytes]
    ends_s: float


class Pages:
    """Has queries answered, and keeps the listings that are gone on with, one of each class."""

    def __init__(self, world: World, metrics: Metrics, clock: Clock) -> None:
        self._world = world
        self._metrics = metrics
        self._clock = clock
        self._listings: dict[type[ListingQuery], _Listing] = {}

    def answer(self, query: PageQuery, stage: LoopStage, *, goes_on: bool = False) -> bytes:
        """Return the answer, of a listing its first slice; with `goes_on` the next one, empty after the last."""
        now_s = self._clock()
        self._listings = {kind: one for kind, one in self._listings.items() if now_s < one.ends_s}
        if isinstance(query, AnswerQuery):
            return query.answer(self._context(stage))
        kind = type(query)
        if not goes_on:
            self._listings[kind] = _Listing(query.slices(self._context(stage)), now_s)
        # One that ends is not kept, nor is one that ends by a fault: the next page begins anew.
        listing = self._listings.pop(kind, None)
        slice_ = b"" if listing is None else next(listing.slices, b"")
        if listing is not None and slice_:
            self._listings[kind] = _Listing(listing.slices, now_s + _LISTING_LIFE_S)
        return slice_

    def _context(self, stage: LoopStage) -> PageContext:
        world = self._world
        return PageContext(world.cache, world.queue, world.signals, world.records, self._metrics, self._clock, stage)
