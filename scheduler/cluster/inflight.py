"""InFlight: Pods between pop and the end of their attempt, and the events that they would otherwise miss.

Source: kube-scheduler v1.37 backend/queue/active_queue.go (behaviour).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

from scheduler.framework.events import ClusterEvent
from scheduler.framework.queued import QueuedEntity
from scheduler.model.pods import PodInfo


@dataclass(slots=True)
class InFlightEntity:
    """One entity between pop and the end of its attempt.

    `latest` and `problem` are the Pod as last seen, `own` the events about this Pod itself since the pop.
    """

    entity: QueuedEntity
    started: int
    latest: PodInfo
    problem: str
    own: list[ClusterEvent] = field(default_factory=list)

    def saw(self, pod: PodInfo, problem: str) -> None:
        self.latest, self.problem = pod, problem


class InFlight:
    """The attempts under way in the order of their start, and every event since the oldest of them.

    A settled attempt needs no more events: its Pod is only remembered until the watch shows it bound or gone,
    because its bind may still fail.
    """

    def __init__(self) -> None:
        self._attempts: dict[str, InFlightEntity] = {}
        self._settled: dict[str, InFlightEntity] = {}
        self._events: deque[tuple[int, ClusterEvent]] = deque()
        self._n_recorded = 0

    def __len__(self) -> int:
        return len(self._attempts)

    def __iter__(self) -> Iterator[InFlightEntity]:
        return chain(self._attempts.values(), self._settled.values())

    def start(self, entity: QueuedEntity) -> None:
        self._attempts[entity.uid] = InFlightEntity(entity, self._n_recorded, entity.pod, entity.problem)

    def get(self, uid: str) -> InFlightEntity | None:
        return self._attempts.get(uid) or self._settled.get(uid)

    def record(self, event: ClusterEvent) -> None:
        """Keep an event for the attempts under way, if there are any."""
        if self._attempts:
            self._n_recorded += 1
            self._events.append((self._n_recorded, event))

    def events_since(self, attempt: InFlightEntity) -> list[ClusterEvent]:
        """Return what an attempt missed; nothing once it is settled."""
        if attempt.entity.uid not in self._attempts:
            return []
        return [event for number, event in self._events if number > attempt.started] + attempt.own

    def settle(self, uid: str) -> None:
        """End the recording for an attempt, still remembering its Pod; an unknown one is ignored."""
        attempt = self._attempts.get(uid)
        if attempt is not None:
            self.finish(uid)
            self._settled[uid] = attempt

    def finish(self, uid: str) -> InFlightEntity | None:
        """Forget an attempt and the events that no other one needs; return it if it was known."""
        attempt = self._attempts.pop(uid, None)
        if attempt is None:
            return self._settled.pop(uid, None)
        oldest = next(iter(self._attempts.values()), None)
        if oldest is None:
            self._events.clear()
        while oldest is not None and self._events and self._events[0][0] <= oldest.started:
            self._events.popleft()
        return attempt
