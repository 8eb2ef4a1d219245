"""EventWriter: writes Events from a bounded queue. They may be lost, and binds come first; but they are not late.

An Event is written within 5 s, as long as the API server takes Events as fast as binds.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable

import msgspec

from scheduler.kube.binder.event_series import FINISH_S, REFRESH_S, EventRecord, EventSeries
from scheduler.kube.binder.http import STRATEGIC_MERGE_PATCH, ApiAnswer, ApiHttp, NoAnswerError
from scheduler.kube.binder.messages import EventRequest
from scheduler.kube.binder.retry import Chance

log = logging.getLogger(__name__)

MAX_QUEUED = 10_000
"""Room for a burst (3,000 binds at once left 1,300 Events waiting); client-go has no bound for those being written."""

N_WRITERS = 16

N_BESIDE_BINDS = 4
"""How many write while binds wait for their turn: a busy API server should bind first, Events can come after."""

N_LATE_WRITERS = 40
"""How many write while an Event is late: as many as binds are under way at most, since each of those leads to one."""

LATE_S = 2.0
"""How long an Event waits before it counts as late: what waits then is written within 3 s more."""

_LOOK_S = 0.25

_CROSSED_S = 0.1
"""After how long a series is written again that came before the Event it continues, and found that on its way."""

_MAX_TRIES = 12
_SLEEP_S = 10.0
_SLEEP_JITTER = 0.25

_encode = msgspec.json.Encoder().encode


class EventWriter:
    """Writes Events and series, a few at a time; what does not fit the queue is dropped and counted.

    While `are_binds_waiting` they are fewer, while one is late more: it has waited for `LATE_S`, on `clock`.
    """

    def __init__(
        self,
        http: ApiHttp,
        series: EventSeries,
        on_dropped: Callable[[], None],
        chance: Chance,
        clock: Callable[[], float],
        are_binds_waiting: Callable[[], bool] = lambda: False,
    ) -> None:
        self._http = http
        self._series = series
        self._on_dropped = on_dropped
        self._chance = chance
        self._clock = clock
        self._are_binds_waiting = are_binds_waiting
        self._queue: deque[tuple[float, EventRecord]] = deque()
        self._pace: asyncio.Task[None] | None = None
        self._n_writing = 0
        self._writers: set[asyncio.Task[None]] = set()

    @property
    def n_pending(self) -> int:
        return len(self._queue) + self._n_writing

    def submit(self, request: EventRequest) -> None:
        record = self._series.observe(request)
        if record is not None:
            self._enqueue(record)

    async def keep_series(self) -> None:
        """End quiet series every six minutes and renew the others every half an hour; runs until cancelled."""
        since_refresh_s = 0.0
        while True:
            await self._chance.sleep(FINISH_S)
            since_refresh_s += FINISH_S
            for record in self._series.finish():
                self._enqueue(record)
            if since_refresh_s >= REFRESH_S:
                since_refresh_s = 0.0
                for record in self._series.refresh():
                    self._enqueue(record)

    def _enqueue(self, record: EventRecord) -> None:
        if len(self._queue) >= MAX_QUEUED:
            self._on_dropped()
            return
        self._queue.append((self._clock(), record))
        self._add_writer()
        if self._pace is None or self._pace.done():
            self._pace = asyncio.create_task(self._keep_pace())

    async def _keep_pace(self) -> None:
        """Bring in more writers once Events are late, though all that write wait for answers."""
        while self._queue:
            await self._chance.sleep(_LOOK_S)
            for _ in range(N_LATE_WRITERS):
                self._add_writer()

    def _n_writers(self) -> int:
        """Return how many may write what is queued."""
        since_s, _ = self._queue[0]
        if self._clock() - since_s >= LATE_S:
            return N_LATE_WRITERS
        return N_BESIDE_BINDS if self._are_binds_waiting() else N_WRITERS

    def _add_writer(self) -> None:
        if self._queue and len(self._writers) < self._n_writers():
            self._writers.add(asyncio.create_task(self._drain()))

    async def _drain(self) -> None:
        try:
            while self._queue and len(self._writers) <= self._n_writers():
                # Each brings another one back, once binds wait no longer.
                self._add_writer()
                _, record = self._queue.popleft()
                self._n_writing += 1
                try:
                    if not await self._write(record):
                        self._on_dropped()
                finally:
                    self._n_writing -= 1
        finally:
            # Here and not in a done callback: that runs later, and an Event queued between would find no writer.
            task = asyncio.current_task()
            if task is not None:
                self._writers.discard(task)

    async def _write(self, record: EventRecord) -> bool:
        """Write one record; as client-go, an answer is final but for 429 and a series that was just created.

        client-go writes one Event after the other, here a series may overtake its own first Event.
        """
        for _ in range(_MAX_TRIES):
            delay = _SLEEP_S * (1.0 + _SLEEP_JITTER * self._chance.random())
            try:
                answer = await self._send(record)
                if answer.is_ok:
                    return True
                if answer.retry_after_s > 0 or answer.code == 429:
                    delay = max(answer.retry_after_s, 1.0) * (1.0 + _SLEEP_JITTER * self._chance.random())
                elif answer.code == 409 and record.is_series:
                    delay = _CROSSED_S
                else:
                    log.debug("Event refused: %d %s", answer.code, answer.message)
                    return answer.code == 409  # it is there already: an earlier answer was lost
            except NoAnswerError as error:
                log.debug("Event not written yet: %s", error)
            await self._chance.sleep(delay)
        return False

    async def _send(self, record: EventRecord) -> ApiAnswer:
        if record.is_series:
            answer = await self._http.request("PATCH", record.path, _encode(record.patch()), STRATEGIC_MERGE_PATCH)
            if answer.code != 404:
                return answer
            # The Event has outlived its hour, or was never written.
        return await self._http.request("POST", record.collection_path, _encode(record.whole()))
