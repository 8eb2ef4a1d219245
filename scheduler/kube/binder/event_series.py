"""Which Events are new and which repeat one: client-go's event broadcaster (tools/events), with a bound.

The first repeat of an Event within six minutes turns it into a series of two; further ones are only counted here, and
the count is written when the series has been quiet for six minutes, and every half an hour while it goes on.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace

from scheduler.kube.binder import events
from scheduler.kube.binder.messages import EventRequest

FINISH_S = 360.0
REFRESH_S = 1800.0
MAX_KEYS = 4096
"""Events remembered at most; beyond that the one seen longest ago is forgotten, and a repeat of it is new."""

EventKey = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EventRecord:
    """One Event as written, or to be written. `count` is 1 for one that has not repeated."""

    body: events.JsonObject
    count: int
    last_ns: int

    @property
    def is_series(self) -> bool:
        return self.count > 1

    @property
    def path(self) -> str:
        return f"{self.collection_path}/{self.body['metadata']['name']}"

    @property
    def collection_path(self) -> str:
        return f"/apis/events.k8s.io/v1/namespaces/{self.body['metadata']['namespace']}/events"

    def patch(self) -> events.JsonObject:
        return events.series(self.count, self.last_ns)

    def whole(self) -> events.JsonObject:
        """Return the Event for creation, with its series if it is one."""
        return {**self.body, **self.patch()} if self.is_series else self.body


class EventSeries:
    """Remembers recent Events by what makes them equal; the note is not part of that."""

    def __init__(self, hostname: str, now_ns: Callable[[], int], unique: Callable[[], str]) -> None:
        self._hostname = hostname
        self._now_ns = now_ns
        self._unique = unique
        self._records: OrderedDict[EventKey, EventRecord] = OrderedDict()

    def __len__(self) -> int:
        return len(self._records)

    def observe(self, request: EventRequest) -> EventRecord | None:
        """Return what is to be written for this Event now: a new one, a series of two, or None (counted only)."""
        now = self._now_ns()
        key = _key(request)
        record = self._records.get(key)
        if record is None:
            record = EventRecord(events.event(request, self._hostname, now, self._unique), 1, now)
            self._remember(key, record)
            return record
        repeated = replace(record, count=record.count + 1, last_ns=now)
        self._remember(key, repeated)
        return None if record.is_series else repeated

    def finish(self) -> list[EventRecord]:
        """Forget what has been quiet for six minutes; return the ended series, whose final count is to be written."""
        oldest = self._now_ns() - int(FINISH_S * 1e9)
        ended = [key for key, record in self._records.items() if record.last_ns < oldest]
        return [record for key in ended if (record := self._records.pop(key)).is_series]

    def refresh(self) -> list[EventRecord]:
        """Return the series that go on, to be written so that the API server keeps them."""
        return [record for record in self._records.values() if record.is_series]

    def _remember(self, key: EventKey, record: EventRecord) -> None:
        self._records[key] = record
        self._records.move_to_end(key)
        if len(self._records) > MAX_KEYS:
            self._records.popitem(last=False)


def _key(request: EventRequest) -> EventKey:
    pod, related = request.pod, request.related
    key: EventKey = (request.type, request.action, request.reason, request.scheduler_name)
    key += (pod.namespace, pod.name, pod.uid, pod.resource_version)
    if related is not None:
        key += (related.namespace, related.name, related.uid, related.resource_version)
    return key
