"""What /decisions asks: what was decided last and why."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec

from scheduler.decision.record import DecisionRecord
from scheduler.loop.pages.query import AnswerQuery, PageContext

_encoder = msgspec.json.Encoder(enc_hook=lambda array: array.tolist())
_RECORD_FIELDS = tuple(field.name for field in dataclasses.fields(DecisionRecord))


class DecisionsQuery(AnswerQuery, frozen=True):
    """The oldest decisions after a number, at most `limit`; without one the newest."""

    after: int | None
    limit: int

    def answer(self, context: PageContext) -> bytes:
        """Return the records as JSON, oldest first; `next` is what to ask with as `after` to go on.

        Numbers that are not finite become null.
        """
        ring = context.records
        first = max(ring.n_added - self.limit, 0) if self.after is None else self.after
        found = ring.after(first, self.limit)
        decisions = [{"number": number, **_told(record)} for number, record in found]
        return _encoder.encode({"next": found[-1][0] if found else min(first, ring.n_added), "decisions": decisions})


def _told(record: DecisionRecord) -> dict[str, Any]:
    return {**{name: getattr(record, name) for name in _RECORD_FIELDS}, "margin": record.margin}
