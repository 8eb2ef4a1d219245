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

MAX_EVENTS = 2_000
"""So many are kept for Pods that wait at Permit. One that was let in before the oldest of them may have missed one that
helps it, and is tried again after its backoff."""

MAX_OWN_EVENTS = 100
"""The same for updates of one such Pod itself."""


@dataclass(slots=True)
class InFlightEntity:
    """One entity between pop and the end of its attempt.

    `latest` and `problem` are the Pod as last seen, `own` the events about this Pod itself since the pop. `has_missed`
    says that events came which are not kept: too many of them, or after the attempt was settled.
    """

    entity: QueuedEntity
    started: int
    latest: PodInfo
    problem: str
    own: list[ClusterEvent] = field(default_factory=list)
    has_missed: bool = False

    def saw(self, pod: PodInfo, problem: str) -> None:
        self.latest, self.problem = pod, problem

    def record(self, events: list[ClusterEvent]) -> None:
        """Keep events about this Pod itself."""
        if not self.has_missed:
            self.own += events
        if len(self.own) > MAX_OWN_EVENTS:
            self.miss()

    def miss(self) -> None:
        self.has_missed = True
        self.own.clear()


class InFlight:
    """The attempts under way in the order of their start, and every event since the oldest of them.

    A settled attempt needs no more events, because only an error can send its Pod back, and that waits for none. Its
    Pod is remembered until the watch shows it bound or gone.
    """

    def __init__(self) -> None:
        self._attempts: dict[str, InFlightEntity] = {}
        self._settled: dict[str, InFlightEntity] = {}
        self._events: deque[tuple[int, ClusterEvent]] = deque()
        self._n_recorded = 0
        self._n_dropped = 0

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
            if len(self._events) > MAX_EVENTS:
                self._n_dropped, _ = self._events.popleft()

    def events_since(self, attempt: InFlightEntity) -> list[ClusterEvent] | None:
        """Return what came during an attempt; None if not all of it was kept."""
        if attempt.has_missed or attempt.started < self._n_dropped:
            return None
        return [event for number, event in self._events if number > attempt.started] + attempt.own

    def settle(self, uid: str) -> None:
        """End the recording for an attempt, still remembering its Pod; an unknown one is ignored."""
        attempt = self._attempts.get(uid)
        if attempt is not None:
            self.finish(uid)
            attempt.miss()
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
