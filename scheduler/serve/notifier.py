"""The notifier: delivers CloudEvents to HTTP receivers, in an event loop and a thread of its own.

It runs in the refresher process, far from decisions and binds. A receiver that is slow or down costs memory up to a
bound, then events, which are counted; never anything else.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from scheduler.framework.instructions import Receiver
from scheduler.metrics import Metrics
from scheduler.serve import cloud_event
from scheduler.serve.cloud_event import Event
from scheduler.serve.poster import Failure, Poster

_START_LIMIT_S: Final = 10.0
_STOP_LIMIT_S: Final = 5.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NotifierLimits:
    """How much waits for one receiver and for all of them, how many requests it gets at a time, how long one may take.

    After a try that failed comes a pause, which doubles from `first_pause_s` on; of each a half to the whole is waited.
    """

    max_waiting: int = 1_000
    max_waiting_in_all: int = 10_000
    max_requests: int = 4
    timeout_s: float = 5.0
    max_tries: int = 5
    first_pause_s: float = 0.5
    longest_pause_s: float = 30.0


@dataclass(slots=True)
class _Lane:
    """One receiver, while anything waits for it. A pause holds a slot: who is down is not asked more often."""

    slots: asyncio.Semaphore
    n_waiting: int = 0


class Notifier:
    """Takes events with `submit`, from any thread, between `start` and `stop`.

    source
        The CloudEvents' source. With `id` it tells events apart, so replicas that stand in for each other share it.
    """

    def __init__(
        self,
        source: str,
        metrics: Metrics,
        now_ns: Callable[[], int] = time.time_ns,
        chance: Callable[[], float] = random.random,
        limits: NotifierLimits = NotifierLimits(),
    ) -> None:
        self._source = source
        self._metrics = metrics
        self._now_ns = now_ns
        self._chance = chance
        self._limits = limits
        self._changed = threading.Condition()  # over the lanes and what waits
        self._lanes: dict[Receiver, _Lane] = {}
        self._n_waiting = 0
        self._failing: set[Receiver] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread: threading.Thread | None = None
        self._inside: _Inside | None = None
        self._stopping = False

    def start(self) -> None:
        """Start the thread, and return once it takes events."""
        opened: concurrent.futures.Future[_Inside] = concurrent.futures.Future()
        self._metrics.notifications_pending().set(0)
        for result in ("delivered", "failed", "dropped"):
            self._metrics.notifications(result)  # from 0 on, so that the first one is seen as an increase
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run(opened)), name="notifier", daemon=True)
        self._thread.start()
        self._inside = opened.result(_START_LIMIT_S)

    def submit(self, event: Event) -> None:
        """Have an event delivered, now or after some tries; it is dropped where too many wait already."""
        inside, receiver = self._inside, event.receiver
        lane = None if inside is None else self._admit(receiver)
        if inside is None or lane is None:
            self._metrics.notifications("dropped").inc()
            return
        body = cloud_event.encode(event, self._source, self._now_ns())
        inside.loop.call_soon_threadsafe(self._accept, inside.poster, lane, receiver, body)

    def stop(self, grace_s: float) -> None:
        """Give what waits `grace_s` seconds to be delivered, then end the thread; what is left counts as dropped."""
        thread, inside = self._thread, self._inside
        if thread is None or inside is None:
            return
        with self._changed:
            self._stopping = True
            self._changed.wait_for(lambda: not self._n_waiting, grace_s)
        with contextlib.suppress(RuntimeError):  # the loop has ended by itself
            inside.loop.call_soon_threadsafe(inside.ended.set)
        thread.join(_STOP_LIMIT_S)

    def _admit(self, receiver: Receiver) -> _Lane | None:
        limits = self._limits
        with self._changed:
            lane = self._lanes.get(receiver)
            is_full = lane is not None and lane.n_waiting >= limits.max_waiting
            if is_full or self._n_waiting >= limits.max_waiting_in_all or self._stopping:
                return None
            if lane is None:
                lane = self._lanes[receiver] = _Lane(asyncio.Semaphore(limits.max_requests))
            lane.n_waiting += 1
            self._count(1)
        return lane

    def _leave(self, lane: _Lane, receiver: Receiver) -> None:
        with self._changed:
            lane.n_waiting -= 1
            if not lane.n_waiting:
                del self._lanes[receiver]
            self._count(-1)
            self._changed.notify_all()

    def _count(self, change: int) -> None:
        self._n_waiting += change
        self._metrics.notifications_pending().set(self._n_waiting)

    async def _run(self, opened: concurrent.futures.Future[_Inside]) -> None:
        inside = _Inside(asyncio.get_running_loop(), asyncio.Event(), Poster(self._limits.timeout_s))
        opened.set_result(inside)
        await inside.ended.wait()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await inside.poster.close()

    def _accept(self, poster: Poster, lane: _Lane, receiver: Receiver, body: bytes) -> None:
        task = asyncio.get_running_loop().create_task(self._deliver(poster, lane, receiver, body))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _deliver(self, poster: Poster, lane: _Lane, receiver: Receiver, body: bytes) -> None:
        result = "dropped"  # if `stop` cancels it
        try:
            async with lane.slots:
                failure = await self._try(poster, receiver, body)
            result = "delivered" if failure is None else "failed"
            self._tell(receiver, failure)
        except Exception:  # a fault of ours, which must not end in silence
            result = "failed"
            log.exception("a notification failed")
        finally:
            self._metrics.notifications(result).inc()
            self._leave(lane, receiver)

    async def _try(self, poster: Poster, receiver: Receiver, body: bytes) -> Failure | None:
        """Return None once it is delivered, or the failure after which it is given up."""
        pause_s, n_tries = self._limits.first_pause_s, 1
        while (failure := await poster.post(receiver, body)) is not None:
            if failure.is_final or n_tries == self._limits.max_tries:
                break
            n_tries += 1
            await asyncio.sleep(max(failure.pause_s, pause_s * (0.5 + 0.5 * self._chance())))
            pause_s = min(2 * pause_s, self._limits.longest_pause_s)
        return failure

    def _tell(self, receiver: Receiver, failure: Failure | None) -> None:
        """Log when a receiver begins to fail and when it delivers again, not each event."""
        if failure is None and receiver in self._failing:
            self._failing.discard(receiver)
            log.info("notifications are delivered again", extra={"receiver": _host(receiver)})
        elif failure is not None and receiver not in self._failing and len(self._failing) < self._limits.max_waiting:
            self._failing.add(receiver)
            log.warning(
                "a notification was not delivered; further failures are only counted",
                extra={"receiver": _host(receiver), "error": failure.text},
            )


@dataclass(frozen=True, slots=True)
class _Inside:
    """What belongs to the notifier's event loop."""

    loop: asyncio.AbstractEventLoop
    ended: asyncio.Event
    poster: Poster


def _host(receiver: Receiver) -> str:
    """Return where an event goes, without path and query, which may hold a password."""
    parts = urlsplit(receiver.url)
    return f"{parts.scheme}://{parts.netloc}"
