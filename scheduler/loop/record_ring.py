"""RecordRing: the records of the last decisions, in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice

from scheduler.decision.record import DecisionRecord, size_of

CAPACITY = 10_000

MOST_BYTES = 64 * 2**20
"""Some 10,000 records of ordinary decisions, 1,500 of those under 50 rules."""


class RecordRing:
    """DecisionRecords, newest last, bounded in number and bytes; the oldest fall out. They are numbered from 1 on."""

    def __init__(self, capacity: int = CAPACITY, most_bytes: int = MOST_BYTES) -> None:
        self._records: deque[DecisionRecord] = deque()
        self._capacity = capacity
        self._most_bytes = most_bytes
        self._n_bytes = 0
        self._n_added = 0

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[DecisionRecord]:
        return iter(self._records)

    def add(self, record: DecisionRecord) -> None:
        self._records.append(record)
        self._n_added += 1
        self._n_bytes += size_of(record)
        while len(self._records) > self._capacity or (self._n_bytes > self._most_bytes and len(self._records) > 1):
            self._n_bytes -= size_of(self._records.popleft())

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
