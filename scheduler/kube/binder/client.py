"""BinderClient: the scheduler's side of the binder process. Requests never wait, results come back by callback."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from queue import Empty, SimpleQueue

from scheduler.child_process import endings_held_back, module_command, module_environment
from scheduler.errors import VaneError
from scheduler.kube.binder import fence, messages
from scheduler.kube.binder.credentials_keeper import CredentialsKeeper
from scheduler.kube.binder.heartbeat import Heartbeat
from scheduler.kube.binder.messages import (
    BindRequest,
    BindResult,
    CredentialsRefused,
    Drain,
    Drained,
    EventRequest,
    EventsDropped,
    EvictRequest,
    EvictResult,
    FailureReport,
    FromChild,
    LeaseUntil,
    LogLine,
    PatchRequest,
    PatchResult,
    Ping,
    Pong,
    RequestsDone,
    ToChild,
    WriteRequest,
)
from scheduler.kube.config import Connection

log = logging.getLogger(__name__)

BATCH = 16
MAX_QUEUED = 10_000
"""Reports and Events wait here only while the child does not read; beyond so many they are dropped. Binds never are."""

_STOP_S = 5.0
_EXITED_S = 1.0
_LEASE_ENDED = (-signal.SIGALRM, fence.EXIT_CODE)


@dataclass(frozen=True, slots=True)
class BinderTimes:
    """`batch_wait_s` is how long a request waits for others to be sent with it, unless flushed.

    A process that says nothing for `silence_s` is ended; it is asked every `look_s`.
    """

    batch_wait_s: float = 0.002
    credentials_check_s: float = 10.0
    look_s: float = 1.0
    silence_s: float = 10.0
    start_s: float = 60.0


class BinderError(VaneError):
    """The binder process was used before it was started, or after its end."""


def _ignore(_: object) -> None:
    pass


class BinderClient:
    """Starts the binder process and talks to it.

    `bind`, `patch`, `write`, `evict`, `report_failure` and `event` may be called by any thread and never wait; what
    they are given goes to the process in batches, and at once with `flush`. `on_result` gets the results of binds,
    `on_patched` those of patches, writes and evictions, `on_requests` finished HTTP requests and `on_events_dropped`
    lost Events, for metrics, all in the reader thread; in the sender's what becomes of requests that cannot be sent.
    `on_dead` is called once if the process ends unasked, or is ended because it hangs: nothing under way will have a
    result then.
    """

    def __init__(
        self,
        connection: Connection,
        on_result: Callable[[list[BindResult]], None],
        on_dead: Callable[[str], None],
        on_requests: Callable[[list[RequestsDone]], None] = _ignore,
        on_events_dropped: Callable[[int], None] = _ignore,
        on_patched: Callable[[list[PatchResult | EvictResult]], None] = _ignore,
        times: BinderTimes = BinderTimes(),
    ) -> None:
        self._connection = connection
        self._on_result = on_result
        self._on_patched = on_patched
        self._on_dead = on_dead
        self._on_requests = on_requests
        self._on_events_dropped = on_events_dropped
        self._times = times
        self._queue: SimpleQueue[ToChild | None] = SimpleQueue()
        self._has_news = False
        self._is_complete = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._threads: list[threading.Thread] = []
        self._stopping = threading.Event()
        self._keepers: dict[str, CredentialsKeeper] = {}
        self._heartbeat = Heartbeat(self._ping, self._end_hung, times.look_s, times.silence_s, times.start_s)
        self._is_hung = False
        self._term: LeaseUntil | None = None
        self._drained = threading.Condition()
        self._drain_asked = 0
        self._drain_done = 0

    @property
    def pid(self) -> int:
        return self._started().pid

    def start(self, clusters: Mapping[str, Connection] | None = None) -> None:
        """Start the process and the threads; `clusters` are other API servers that a BindRequest may name.

        Call it from the main thread: the kernel kills the child when the thread that started it ends.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            fd = theirs.fileno()
            argv = module_command("scheduler.kube.binder.process", str(fd), str(os.getpid()))
            with endings_held_back():
                self._process = subprocess.Popen(
                    argv, pass_fds=(fd,), stdin=subprocess.DEVNULL, env=module_environment(os.environ)
                )
        self._socket = ours
        for cluster, connection in {"": self._connection, **(clusters or {})}.items():
            keeper = CredentialsKeeper(cluster, connection, self._queue.put, self._times.credentials_check_s)
            self._keepers[cluster] = keeper
        ours.sendall(messages.encode([keeper.first() for keeper in self._keepers.values()]))
        keeping = {f"credentials-{cluster}": keeper.run for cluster, keeper in self._keepers.items()}
        running = {"send": self._send, "receive": self._receive, "heartbeat": self._heartbeat.run, **keeping}
        for name, target in running.items():
            thread = threading.Thread(target=target, name=f"binder-{name}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def set_term(self, term: LeaseUntil) -> None:
        """Have the process keep to this term of the lease from now on: see `LeaseUntil`.

        Set the first one before anything is to be bound, and never an earlier one than the last.
        """
        self._term = term
        self._queue.put(term)  # even if there is nothing to send with it: the process ends with the term it knows

    def bind(self, request: BindRequest) -> None:
        """Have a Pod bound; its BindResult comes to `on_result`."""
        self._put(request)

    def patch(self, request: PatchRequest) -> None:
        """Have a Pod patched; its PatchResult comes to `on_patched`."""
        self._put(request)

    def write(self, request: WriteRequest) -> None:
        """Have another object than a Pod patched; its PatchResult comes to `on_patched`."""
        self._put(request)

    def evict(self, request: EvictRequest) -> None:
        """Have a Pod told why, and deleted; its EvictResult comes to `on_patched`."""
        self._put(request)

    def report_failure(self, report: FailureReport) -> None:
        """Have the condition PodScheduled=False and the Event FailedScheduling written."""
        self._put_unless_full(report)

    def event(self, request: EventRequest) -> None:
        """Have an Event written, or counted into its series."""
        self._put_unless_full(request)

    def flush(self) -> None:
        """Send what waits for more requests: none are coming."""
        if self._has_news:
            self._has_news = False
            self._is_complete.set()

    def drain(self, timeout_s: float) -> bool:
        """Wait until all requests made so far are done; return whether they were in time."""
        with self._drained:
            self._drain_asked += 1
            number = self._drain_asked
            self._queue.put(Drain(number=number))
            self._is_complete.set()
            return self._drained.wait_for(
                lambda: self._drain_done >= number or not self._is_running(), timeout_s
            ) and self._drain_done >= number  # fmt: skip

    def stop(self) -> None:
        """End the process now; what was not drained is lost."""
        self._stopping.set()
        self._heartbeat.stop()
        for keeper in self._keepers.values():
            keeper.stop()
        self._queue.put(None)
        if self._socket is not None:
            self._shut_down()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(_STOP_S)
        if self._process is not None:
            try:
                self._process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                with contextlib.suppress(subprocess.TimeoutExpired):  # in the kernel, where a signal waits
                    self._process.wait(_STOP_S)
        if self._socket is not None:
            self._socket.close()

    def _ping(self) -> None:
        self._queue.put(Ping())

    def _end_hung(self) -> None:
        """End a process that hangs or is stopped: nobody would bind, and nobody take over."""
        self._is_hung = True
        self._started().kill()
        self._shut_down()

    def _put_unless_full(self, request: FailureReport | EventRequest) -> None:
        if self._queue.qsize() < MAX_QUEUED:
            self._put(request)
        else:
            self._on_events_dropped(1)

    def _put(self, request: ToChild) -> None:
        self._queue.put(request)
        self._has_news = True

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise BinderError("the binder process was not started")
        return self._process

    def _is_running(self) -> bool:
        return not self._stopping.is_set() and self._started().poll() is None

    def _shut_down(self) -> None:
        try:
            self._sock().shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the child was first

    def _sock(self) -> socket.socket:
        if self._socket is None:
            raise BinderError("the binder process was not started")
        return self._socket

    def _send(self) -> None:
        """Write requests in batches: up to 16, or what comes in a short time or before `flush`.

        Waiting once and then taking all costs one wake-up of this thread a batch; waking for each request would take
        the GIL from the deciding thread each time.
        """
        queue = self._queue
        while (first := queue.get()) is not None:
            if queue.qsize() < BATCH - 1:
                self._is_complete.wait(self._times.batch_wait_s)
            self._is_complete.clear()
            batch = [first]
            ended = False
            while len(batch) < BATCH and not ended:
                try:
                    item = queue.get_nowait()
                except Empty:
                    break
                if item is None:
                    ended = True
                else:
                    batch.append(item)
            try:
                frame, unsent = messages.encode_requests(self._under_term(batch))
                self._sock().sendall(frame)
                self._handle(unsent)
            except OSError:
                return  # the reader notices too, and says so
            except Exception:
                # A fault of ours. Binds that wait for ever would be worse than an end: now the reader says so.
                log.exception("binder: requests cannot be sent")
                self._shut_down()
                return
            if ended:
                return

    def _under_term(self, batch: list[ToChild]) -> list[ToChild]:
        """Put the newest term ahead: the one that was queued may be seconds behind, after a flood of requests."""
        term = self._term
        return batch if term is None else [term, *(one for one in batch if not isinstance(one, LeaseUntil))]

    def _receive(self) -> None:
        reader = self._sock().makefile("rb", buffering=1 << 16)
        try:
            while len(prefix := reader.read(messages.LENGTH_BYTES)) == messages.LENGTH_BYTES:
                length = messages.frame_length(prefix)
                body = reader.read(length)
                if len(body) < length:
                    break
                self._heartbeat.heard()
                self._handle(messages.decode_from_child(body))
        except OSError:
            pass  # reset: the child was killed
        finally:
            reader.close()
            self._ended()

    def _handle(self, received: list[FromChild]) -> None:
        results: list[BindResult] = []
        patched: list[PatchResult | EvictResult] = []
        requests: list[RequestsDone] = []
        for message in received:
            match message:
                case BindResult():
                    results.append(message)
                case PatchResult() | EvictResult():
                    patched.append(message)
                case RequestsDone():
                    requests.append(message)
                case _:
                    self._handle_one(message)
        if results:
            self._on_result(results)
        if patched:
            self._on_patched(patched)
        if requests:
            self._on_requests(requests)

    def _handle_one(self, message: EventsDropped | CredentialsRefused | LogLine | Drained | Pong) -> None:
        match message:
            case EventsDropped():
                self._on_events_dropped(message.count)
            case CredentialsRefused():
                self._keepers[message.cluster].refused(message)
            case LogLine():
                log.log(message.level, "%s", message.text)
            case Drained():
                self._note_drained(message.number)
            case Pong():
                pass  # it was heard

    def _note_drained(self, number: int) -> None:
        with self._drained:
            self._drain_done = max(self._drain_done, number)
            self._drained.notify_all()

    def _ended(self) -> None:
        self._queue.put(None)
        self._heartbeat.stop()
        if self._stopping.is_set():
            return
        try:
            code: int | None = self._started().wait(_EXITED_S)
        except subprocess.TimeoutExpired:
            code = None
        with self._drained:
            self._drained.notify_all()
        if self._is_hung:
            self._on_dead(f"the binder process said nothing for {self._times.silence_s:g} s, so it was ended")
        elif code in _LEASE_ENDED:
            self._on_dead("the binder process ended with the lease")
        else:
            self._on_dead(f"the binder process ended by itself (exit code {code})")
