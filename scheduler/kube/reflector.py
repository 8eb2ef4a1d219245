"""List and watch: keeps a receiver's picture of one kind of objects equal to the API server's.

Lists are consistent and paged, with no resourceVersion. `resourceVersion=0` would make the API server ignore `limit`
(one answer of 240 MB for 50,000 Pods) and may go back in time behind another replica of it; the plain paged list is
served from its watch cache too, since 1.31 the first page and since 1.34 all of them.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import SystemRandom
from typing import Literal, Protocol

from scheduler.errors import VaneError
from scheduler.kube.backoff import Backoff, BackoffSettings
from scheduler.kube.resources import ResourceKind
from scheduler.kube.transport import ApiError, Stream, Transport, TransportError, TransportTimeoutError
from scheduler.kube.watch_stream import (
    Changed,
    ExpiredError,
    LineSplitter,
    MalformedStreamError,
    ObjectReader,
    Replaced,
    ServerError,
)

log = logging.getLogger(__name__)

Sink = Callable[[Replaced | Changed], None]

RestartReason = Literal["closed", "expired", "timeout", "disconnected", "error", "malformed"]
"""Why listing or watching begins again.

closed: the API server ended the watch, as it does every few minutes. expired: 410, so a list comes first. timeout: no
byte for as long as was waited. disconnected: no connection, or a broken one. error: an HTTP status, an ERROR event or
a fault of ours. malformed: what came is not a list or a watch event.
"""

RestartObserver = Callable[[str, RestartReason], None]
"""Called with kind and reason, in the reflector's thread; for vane_watch_restarts_total."""

_SHORT_WATCH_S = 1.0
"""A watch that ends sooner and brought nothing counts as failed, or a broken proxy would be asked in a tight loop."""

_MALFORMED_BEFORE_LIST = 3
"""So many unreadable streams in a row at one place, and the list is asked for: the watch may never get past it."""


_EXPIRED_BEFORE_ALL = 2
"""So many times in a row the pages of a list may expire before all of it is asked for at once."""


class _EndedAtOnceError(TransportError):
    """A watch that was accepted and closed again, with nothing in it."""


class Random(Protocol):
    def random(self) -> float: ...

    def uniform(self, a: float, b: float) -> float: ...


@dataclass(frozen=True, slots=True)
class ReflectorSettings:
    """`watch_read_timeout_s`: bookmarks come about every 60 s, so a watch without any byte for longer is dead.

    A peer that vanished is noticed earlier, within 45 s, by TCP keepalive; the read timeout is for one whose kernel
    still answers but whose server hangs.
    """

    page_size: int = 500
    list_timeout_s: float = 60.0
    watch_read_timeout_s: float = 90.0
    watch_min_s: float = 300.0
    watch_max_s: float = 600.0
    backoff: BackoffSettings = field(default_factory=BackoffSettings)


class Reflector:
    """Lists one kind, then watches it, and tells `sink` in its own thread.

    `sink` gets each list in slices as its pages come, so that no second picture is held beside the receiver's, and one
    Changed per event. It may let the slices of a list wait, but nothing else.
    """

    def __init__(
        self,
        kind: ResourceKind,
        transport: Transport,
        sink: Sink,
        on_restart: RestartObserver = lambda _kind, _reason: None,
        settings: ReflectorSettings = ReflectorSettings(),
        clock: Callable[[], float] = time.monotonic,
        random: Random = SystemRandom(),  # noqa: B008 - stateless
    ) -> None:
        self.kind = kind
        self._transport = transport
        self._sink = sink
        self._on_restart = on_restart
        self._settings = settings
        self._clock = clock
        self._random = random
        self._reader = ObjectReader(kind)
        self._backoff = Backoff(settings.backoff, clock, random.random)
        self._stopped = threading.Event()
        self._stream_lock = threading.Lock()
        self._stream: Stream | None = None
        self._thread: threading.Thread | None = None
        self._resource_version = ""
        self._malformed = 0
        self._failing = False

    @property
    def is_alive(self) -> bool:
        """Whether its thread runs."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        self._thread = threading.Thread(target=self.run, name=f"reflector-{self.kind.name}", daemon=True)
        self._thread.start()

    def stop(self, timeout_s: float = 5.0) -> None:
        """End the watch and the thread; nothing reaches the sink afterwards."""
        self._stopped.set()
        with self._stream_lock:
            if self._stream is not None:
                self._stream.interrupt()
        if self._thread is not None:
            self._thread.join(timeout_s)

    def run(self) -> None:
        """List and watch until stopped; for the reflector's own thread."""
        while not self._stopped.is_set():
            try:
                if not self._resource_version:
                    self._list()
                self._watch()
                self._recovered()
                self._restarts("closed")
            except ExpiredError as error:
                log.info("%s: the watch expired; listing again: %s", self.kind.name, error)
                self._restarts("expired")
                self._resource_version = ""
                if self._failing:  # until now: the list must not wait for that any longer
                    self._backoff.start_over()
                    self._recovered()
                self._pause(0.0)
            except (ApiError, TransportError, ServerError, MalformedStreamError) as error:
                self._failed(error)
            except Exception:
                # A bug, here or in the sink. A thread that ended would leave a picture that gets older and older.
                log.exception("%s: unexpected error; listing again", self.kind.name)
                self._restarts("error")
                self._resource_version = ""
                self._pause(0.0)

    def _list(self) -> None:
        pages = {**self.kind.params, "limit": str(self._settings.page_size)}
        token, n_expired = "", 0
        while not self._stopped.is_set():
            is_first = not token
            try:
                body = self._get({**pages, "continue": token} if token else pages)
            except ApiError as error:
                if error.status != 410 or not token:
                    raise
                # The pages took longer than etcd keeps their revision. client-go asks for all at once, which takes the
                # memory of the whole list; that is for where pages don't work.
                token, n_expired = "", n_expired + 1
                if n_expired < _EXPIRED_BEFORE_ALL:
                    continue
                is_first, body = True, self._get(self.kind.params)
            page = self._reader.page(body)
            self._recovered()
            token = page.next_token
            for slice_ in Replaced.slices(self.kind.name, page.objects, is_first=is_first, is_last=not token):
                if self._stopped.is_set():
                    return
                self._sink(slice_)
            if not token:
                self._resource_version = page.resource_version
                self._malformed = 0
                return

    def _get(self, params: Mapping[str, str]) -> bytes:
        return self._transport.get(self.kind.path, params, self._settings.list_timeout_s)

    def _watch(self) -> None:
        if self._stopped.is_set():
            return
        started = self._clock()
        n_events = self._follow(self._open_watch())
        if n_events == 0 and self._clock() - started < _SHORT_WATCH_S and not self._stopped.is_set():
            raise _EndedAtOnceError("the watch ended at once, with no event")

    def _open_watch(self) -> Stream:
        settings = self._settings
        params = {
            **self.kind.params,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._resource_version,
            "timeoutSeconds": str(int(self._random.uniform(settings.watch_min_s, settings.watch_max_s))),
        }
        try:
            stream = self._transport.stream(self.kind.path, params, settings.watch_read_timeout_s)
        except ApiError as error:
            if error.status == 410:
                raise ExpiredError(str(error)) from error
            raise
        with self._stream_lock:
            self._stream = stream
        if self._stopped.is_set():  # stop() may have come before the stream was there to interrupt
            stream.interrupt()
        return stream

    def _follow(self, stream: Stream) -> int:
        """Hand over the events of a watch until it ends; return how many lines came, bookmarks included."""
        splitter = LineSplitter()
        n_lines = 0
        try:
            for chunk in stream.chunks():
                self._recovered()
                for line in splitter.feed(chunk):
                    n_lines += 1
                    self._line(line)
        finally:
            with self._stream_lock:
                self._stream = None
            stream.close()
        if splitter.has_rest and not self._stopped.is_set():
            raise MalformedStreamError("the watch ended in the middle of an event")
        return n_lines

    def _line(self, line: bytes) -> None:
        if self._stopped.is_set():
            return
        changed, resource_version = self._reader.event(line)
        if changed is not None:
            self._sink(changed)
        self._resource_version = resource_version or self._resource_version
        self._malformed = 0

    def _recovered(self) -> None:
        if self._failing:
            self._failing = False
            log.info("%s: the API server answers again", self.kind.name)

    def _failed(self, error: VaneError) -> None:
        if self._stopped.is_set():
            return
        self._restarts(_reason(error))
        if isinstance(error, MalformedStreamError):
            self._malformed += 1
            if self._malformed >= _MALFORMED_BEFORE_LIST:
                self._resource_version = ""
        if not self._failing:
            self._failing = True
            log.warning("%s: %s; trying again", self.kind.name, error)
        self._pause(error.retry_after_s if isinstance(error, ApiError | ServerError) else 0.0, _is_answered(error))

    def _restarts(self, reason: RestartReason) -> None:
        if not self._stopped.is_set():
            self._on_restart(self.kind.name, reason)

    def _pause(self, at_least_s: float, is_answered: bool = True) -> None:
        self._stopped.wait(self._backoff.next_s(at_least_s, is_answered))


def _is_answered(error: VaneError) -> bool:
    return isinstance(error, _EndedAtOnceError) or not isinstance(error, TransportError)


def _reason(error: VaneError) -> RestartReason:
    match error:
        case _EndedAtOnceError():
            return "closed"
        case TransportTimeoutError():
            return "timeout"
        case TransportError():
            return "disconnected"
        case MalformedStreamError():
            return "malformed"
        case _:
            return "error"
