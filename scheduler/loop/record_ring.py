"""RecordRing: the records of the last decisions, in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice

from scheduler.decision.record import DecisionRecord

CAPACITY = 10_000


class RecordRing:
    """A bounded ring of DecisionRecords, newest last; the oldest falls out. They are numbered from 1 on."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._records: deque[DecisionRecord] = deque(maxlen=capacity)
        self._n_added = 0

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[DecisionRecord]:
        return iter(self._records)

    def add(self, record: DecisionRecord) -> None:
        self._records.append(record)
        self._n_added += 1

    def latest(self, uid: str) -> DecisionRecord | None:
        """Return the newest record of a Pod, None if it has fallen out."""
        return next((record for record in reversed(self._records) if record.uid == uid), None)

    def after(self, number: int, limit: int) -> list[tuple[int, DecisionRecord]]:
        """Return the oldest records that come after that number, each with its own, at most `limit`."""
        n_gone = self._n_added - len(self._records)
        start = max(number - n_gone, 0)
        return list(enumerate(islice(self._records, start, start + limit), n_gone + start + 1))

    @property
    def n_added(self) -> int:
        """The number of the newest record, 0 before the first."""
        return self._n_added
