"""EventWriter: writes Events from a bounded queue. They may be lost; they never hold up a bind."""

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

_MAX_TRIES = 12
_SLEEP_S = 10.0
_SLEEP_JITTER = 0.25

_encode = msgspec.json.Encoder().encode


class EventWriter:
    """Writes Events and series, a few at a time; what does not fit the queue is dropped and counted.

    While `are_binds_waiting` they are fewer, unless the queue is half full.
    """

    def __init__(
        self,
        http: ApiHttp,
        series: EventSeries,
        on_dropped: Callable[[], None],
        chance: Chance,
        are_binds_waiting: Callable[[], bool] = lambda: False,
    ) -> None:
        self._http = http
        self._series = series
        self._on_dropped = on_dropped
        self._chance = chance
        self._are_binds_waiting = are_binds_waiting
        self._queue: deque[EventRecord] = deque()
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
        self._queue.append(record)
        self._add_writer()

    def _n_writers(self) -> int:
        is_second = self._are_binds_waiting() and len(self._queue) < MAX_QUEUED // 2
        return N_BESIDE_BINDS if is_second else N_WRITERS

    def _add_writer(self) -> None:
        if self._queue and len(self._writers) < self._n_writers():
            self._writers.add(asyncio.create_task(self._drain()))

    async def _drain(self) -> None:
        try:
            while self._queue and len(self._writers) <= self._n_writers():
                # Each brings another one back, once binds wait no longer.
                self._add_writer()
                record = self._queue.popleft()
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
        """Write one record; as client-go, an answer is final but for 429 and a series that was just created."""
        for _ in range(_MAX_TRIES):
            delay = _SLEEP_S * (1.0 + _SLEEP_JITTER * self._chance.random())
            try:
                answer = await self._send(record)
                if answer.is_ok:
                    return True
                if answer.retry_after_s > 0 or answer.code == 429:
                    delay = max(answer.retry_after_s, 1.0) * (1.0 + _SLEEP_JITTER * self._chance.random())
                elif not (answer.code == 409 and record.is_series):
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
