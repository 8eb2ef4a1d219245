"""The binder process: reads requests from its socket, carries them out, writes results back.

It ends at once, without flushing, when its parent is gone or its lease has ended (see `fence`): what it had left
belongs to a scheduler that no longer leads. SIGINT and SIGTERM are the parent's business, which drains before it stops.
It imports no more than it needs (neither numpy nor the `kubernetes` package), to start in a fraction of a second and
stay small.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import logging
import os
import random
import signal
import socket
import sys
import time
import traceback
import uuid
from collections.abc import Coroutine
from functools import partial
from typing import Any

from scheduler.errors import VaneError
from scheduler.kube.binder import events, messages
from scheduler.kube.binder.binds import MAX_BINDS, PodBinder
from scheduler.kube.binder.event_series import EventSeries
from scheduler.kube.binder.event_writer import EventWriter
from scheduler.kube.binder.evictions import PodEvictions
from scheduler.kube.binder.failure_reports import FailureReports
from scheduler.kube.binder.fence import AlarmTimer, Fence
from scheduler.kube.binder.http import ApiHttp
from scheduler.kube.binder.messages import (
    BinderConnection,
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
    NewCredentials,
    PatchRequest,
    PatchResult,
    Ping,
    Pong,
    RequestsDone,
    ToChild,
    WriteRequest,
)
from scheduler.kube.binder.patches import ObjectPatches, PodPatches
from scheduler.kube.binder.retry import Chance
from scheduler.tls import TlsFilesError

_FLUSH_S = 0.002
_DRAIN_POLL_S = 0.005
_CERTIFICATE_CHECK_S = 60.0


class Outbox:
    """Collects messages to the parent and writes them every 2 ms."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._messages: list[FromChild] = []
        self._requests: dict[tuple[str, str, str], list[float]] = {}
        self._n_dropped = 0
        self._is_due = False

    def send(self, message: FromChild) -> None:
        self._messages.append(message)
        self._schedule()

    def request_done(self, cluster: str, verb: str, code: str, duration_s: float) -> None:
        self._requests.setdefault((verb, code, cluster), []).append(duration_s)
        self._schedule()

    def event_dropped(self) -> None:
        self._n_dropped += 1
        self._schedule()

    def _schedule(self) -> None:
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_later(_FLUSH_S, self._flush)

    def _flush(self) -> None:
        self._is_due = False
        batch = self._messages
        for (verb, code, cluster), durations in self._requests.items():
            batch.append(RequestsDone(verb=verb, code=code, durations_s=durations, cluster=cluster))
        if self._n_dropped:
            batch.append(EventsDropped(count=self._n_dropped))
        self._messages, self._requests, self._n_dropped = [], {}, 0
        self._writer.write(messages.encode_results(batch))


class OutboxHandler(logging.Handler):
    """Sends log records to the parent, which logs them in its own format."""

    def __init__(self, outbox: Outbox) -> None:
        super().__init__(logging.INFO)
        self._outbox = outbox

    def emit(self, record: logging.LogRecord) -> None:
        self._outbox.send(LogLine(level=record.levelno, text=self.format(record)))


class Worker:
    """Hands each request to what carries it out; one per process."""

    def __init__(self, connection: BinderConnection, outbox: Outbox) -> None:
        chance = Chance(asyncio.sleep, random.random)
        self._outbox = outbox
        self._servers: dict[str, ApiHttp] = {}
        self._connect(connection)
        http = self._servers[connection.cluster]
        series = EventSeries(socket.gethostname(), time.time_ns, lambda: str(uuid.uuid4()))
        self._events = EventWriter(
            http, series, outbox.event_dropped, chance, time.monotonic, lambda: self._n_under_way > MAX_BINDS
        )
        self._reports = FailureReports(http, time.time_ns, chance, time.monotonic)
        self._fence = Fence(AlarmTimer())
        self._binder = PodBinder(self._servers, self._reports, self._events.submit, self._fence, time.monotonic, chance)
        self._patches = PodPatches(http, self._reports, self._fence, chance)
        self._writes = ObjectPatches(http, self._fence, chance)
        self._evictions = PodEvictions(http, self._events.submit, self._fence, time.time_ns, chance)
        self._tasks: set[asyncio.Task[None]] = set()
        self._n_under_way = 0
        self._spawn(self._events.keep_series())
        self._spawn(self._watch_certificates())

    def handle(self, message: ToChild) -> None:
        match message:
            case BindRequest():
                self._begin(self._binder.bind(message, time.monotonic()))
            case PatchRequest() | WriteRequest():
                self._begin(self._patch(message))
            case EvictRequest():
                self._begin(self._evictions.evict(message))
            case FailureReport():
                self._reports.submit(message)
                self._events.submit(events.failed_scheduling_event(message))
            case EventRequest():
                self._events.submit(message)
            case NewCredentials():
                self._use(message)
            case LeaseUntil():
                self._fence.extend(message)
            case Drain() | Ping():
                self._answer(message)
            case BinderConnection():
                self._connect(message)

    def _patch(self, request: PatchRequest | WriteRequest) -> Coroutine[Any, Any, PatchResult]:
        return self._patches.patch(request) if isinstance(request, PatchRequest) else self._writes.patch(request)

    def _connect(self, connection: BinderConnection) -> None:
        cluster = connection.cluster
        if cluster in self._servers:
            raise ValueError(f"a second BinderConnection to cluster {cluster!r}")
        http = self._servers[cluster] = ApiHttp(
            connection.endpoint,
            connection.header,
            partial(self._outbox.request_done, cluster),
            lambda header: self._outbox.send(CredentialsRefused(header=header, cluster=cluster)),
            connection.user_agent,
        )
        if connection.cert_file is not None:
            http.use(connection.header, connection.cert_file, connection.key_file)

    def _begin(self, work: Coroutine[Any, Any, BindResult | PatchResult | EvictResult]) -> None:
        async def carry_out() -> None:
            try:
                self._outbox.send(await work)
            finally:
                self._n_under_way -= 1

        self._n_under_way += 1
        self._spawn(carry_out())

    def _use(self, credentials: NewCredentials) -> None:
        try:
            self._servers[credentials.cluster].use(credentials.header, credentials.cert_file, credentials.key_file)
        except TlsFilesError as error:
            logging.error("binder: %s", error)

    async def _watch_certificates(self) -> None:
        while True:
            await asyncio.sleep(_CERTIFICATE_CHECK_S)
            for http in self._servers.values():
                http.renew_connections()

    def _answer(self, question: Drain | Ping) -> None:
        if isinstance(question, Drain):
            self._spawn(self._drain(question.number))
        else:
            self._outbox.send(Pong())

    async def _drain(self, number: int) -> None:
        while self._n_under_way or self._reports.n_pending or self._events.n_pending:
            await asyncio.sleep(_DRAIN_POLL_S)
        self._outbox.send(Drained(number=number))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # A bind without a result would leave its Pod assumed for ever: the parent must start over.
            traceback.print_exception(error, file=sys.stderr)
            os._exit(70)


async def serve(sock: socket.socket) -> None:
    """Carry out what comes over the socket until its other end is closed."""
    reader, writer = await asyncio.open_connection(sock=sock)
    outbox = Outbox(writer)
    logging.basicConfig(level=logging.INFO, format="%(message)s", handlers=[OutboxHandler(outbox)])
    first = await _receive(reader)
    connection = first[0]
    if not isinstance(connection, BinderConnection):
        raise ValueError("the first message must be a BinderConnection")
    worker = Worker(connection, outbox)
    for message in first[1:]:
        worker.handle(message)
    gc.freeze()
    while True:
        for message in await _receive(reader):
            worker.handle(message)
        # Reading does not yield while data is there: without this, a flood of requests would keep all of them waiting.
        await asyncio.sleep(0)


async def _receive(reader: asyncio.StreamReader) -> list[ToChild]:
    length = messages.frame_length(await reader.readexactly(messages.LENGTH_BYTES))
    return messages.decode_to_child(await reader.readexactly(length))


def die_with_parent(parent: int) -> None:
    """Ask the kernel to kill this process when the thread that started it ends; elsewhere EOF alone must do."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)  # it ended before we asked


def main() -> None:
    """Run the process: `python -m scheduler.kube.binder.process FD PARENT_PID`."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    die_with_parent(int(sys.argv[2]))
    sock = socket.socket(fileno=int(sys.argv[1]))
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        try:
            asyncio.run(serve(sock))
        except VaneError as error:
            sys.exit(f"binder: {error}")
    os._exit(0)


if __name__ == "__main__":
    main()
