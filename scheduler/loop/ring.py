"""The last decisions, in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from scheduler.framework.record import DecisionRecord

CAPACITY = 10_000


class RecordRing:
    """A bounded ring of DecisionRecords, newest last; the oldest falls out."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._records: deque[DecisionRecord] = deque(maxlen=capacity)

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[DecisionRecord]:
        return iter(self._records)

    def add(self, record: DecisionRecord) -> None:
        self._records.append(record)

    def latest(self, uid: str) -> DecisionRecord | None:
        """Return the newest record of a Pod, None if it has fallen out."""
        return next((record for record in reversed(self._records) if record.uid == uid), None)
