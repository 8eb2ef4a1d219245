"""The refresher process: asks Prometheus, watches the rule files, serves the pages.

Started by `app.refresher_link` as `python -m scheduler.app.refresher_process FD`; ends when its parent is gone.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec
from prometheus_client import CollectorRegistry

from scheduler import logs
from scheduler.app.observers import CountingRefresher
from scheduler.app.prometheus_servers import make_servers, server_names
from scheduler.app.wire import (
    Answer,
    Ask,
    AskDecisions,
    AskSignals,
    Begin,
    Call,
    FromRefresher,
    Identity,
    Notification,
    ReloadFailed,
    Reply,
    Rules,
    Serving,
    Start,
    ToRefresher,
    Wire,
)
from scheduler.errors import ConfigError
from scheduler.exposition import PAGE_LIFE_S, Page, merge, process_registry
from scheduler.loop.pages.pages import HEALTH, METRICS, MORE_METRICS, MORE_RESOURCES, MORE_SIGNALS, RESOURCES
from scheduler.loop.pages.signal_listing import SignalsQuery
from scheduler.metrics import Metrics
from scheduler.model.rules import RuleSet
from scheduler.serve.access import Reviews
from scheduler.serve.calls import PermitCall
from scheduler.serve.decisions import DecisionsQuery
from scheduler.serve.http import Server
from scheduler.serve.notifier import Notifier
from scheduler.serve.pages import Check
from scheduler.serve.resources import ResourcesPage
from scheduler.serve.signals import SignalsPage
from scheduler.settings.settings import Settings
from scheduler.signals.asking.query_health import QueryHealth
from scheduler.signals.loader import RuleLoader

log = logging.getLogger(__name__)

_LOOK_S = 0.25
_LAST_NOTIFICATIONS_S = 2.0


class DecidingProcess:
    """The PageSource: this process' own metrics, and what the deciding process says when asked."""

    def __init__(self, registry: CollectorRegistry, pids: Mapping[str, int]) -> None:
        self._own = Page(registry)
        self._processes = {name: Page(process_registry(pid)) for name, pid in pids.items()}
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._number = 0
        self._collecting: asyncio.Task[bytes] | None = None
        self._collected_until_s = 0.0
        self._listing: asyncio.Task[Sequence[bytes]] | None = None
        self._one_signals_page = asyncio.Lock()
        self.query_health: Callable[[], Mapping[str, QueryHealth]] = dict
        self.wire: Wire[FromRefresher, ToRefresher] | None = None

    async def metrics(self) -> bytes:
        # One at a time, and for a second the same: a page asked for from the start takes the other's slices away.
        if self._collecting is None or (self._collecting.done() and time.monotonic() >= self._collected_until_s):
            self._collecting = asyncio.ensure_future(self._collect())
        theirs = await asyncio.shield(self._collecting)
        pages = {name: page.render() for name, page in self._processes.items()}
        pages["deciding"] += theirs
        pages["refresher"] += self._own.render()
        return merge(pages)

    async def _collect(self) -> bytes:
        slices = [await self._ask(METRICS)]
        while slices[-1]:
            slices.append(await self._ask(MORE_METRICS))
        self._collected_until_s = time.monotonic() + PAGE_LIFE_S
        return b"".join(slices)

    async def resources(self) -> Sequence[bytes]:
        # One listing at a time, whoever asks: the deciding thread keeps no more than one.
        if self._listing is None or self._listing.done():
            self._listing = asyncio.ensure_future(self._list_resources())
        return await asyncio.shield(self._listing)

    async def _list_resources(self) -> Sequence[bytes]:
        page = ResourcesPage()
        what = RESOURCES
        while page.add(await self._ask(what)):
            what = MORE_RESOURCES
        return page.pieces()

    async def health(self, kind: str) -> Sequence[Check]:
        checks = [Check("ping", True, "")]
        body = await self._ask(HEALTH)
        if kind == "livez":
            # It answered, so it lives; what it still waits for is a matter of readiness.
            return [*checks, Check("deciding-thread", True, "")]
        return checks + [Check(*check) for check in msgspec.json.decode(body)]

    async def permit(self, call: PermitCall) -> bool:
        body = await self._exchange(lambda number: Call(number, *call))
        return msgspec.json.decode(body, type=bool)

    async def decisions(self, asked: DecisionsQuery) -> bytes:
        return await self._exchange(lambda number: AskDecisions(number, *asked))

    async def signals(self, asked: SignalsQuery) -> bytes | str:
        page = SignalsPage(asked)
        # One at a time: the deciding thread keeps no more than one listing.
        async with self._one_signals_page:
            slice_ = await self._exchange(lambda number: AskSignals(number, *asked))
            while page.add(slice_):
                slice_ = await self._ask(MORE_SIGNALS)
        return page.body(self.query_health())

    def answered(self, reply: Reply) -> None:
        """Hand an answer to the page that waits for it; called from the reader thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._settle, reply)

    def _settle(self, reply: Reply) -> None:
        future = self._waiting.pop(reply.number, None)
        if future is not None and not future.done():
            future.set_result(reply.body)

    async def _ask(self, what: str) -> bytes:
        return await self._exchange(lambda number: Ask(number, what))

    async def _exchange(self, message: Callable[[int], Ask | AskDecisions | AskSignals | Call]) -> bytes:
        if self.wire is None:
            raise ConnectionError("the deciding process is not connected")
        self._loop = asyncio.get_running_loop()
        self._number += 1
        number = self._number
        future: asyncio.Future[bytes] = self._loop.create_future()
        self._waiting[number] = future
        self.wire.send(message(number))
        try:
            return await future
        finally:
            self._waiting.pop(number, None)


class RefresherProcess:
    """Puts the parts of this process together."""

    def __init__(self, start: Start, rules: RuleSet, wire: Wire[FromRefresher, ToRefresher]) -> None:
        settings = self._settings = start.settings
        self._wire = wire
        self._metrics = Metrics(CollectorRegistry())
        self.pages = DecidingProcess(self._metrics.registry, {**start.pids, "refresher": os.getpid()})
        self.pages.wire = wire
        self._refresher = make_servers(
            settings.prometheus, lambda answer: wire.send(Answer(answer)), CountingRefresher(self._metrics)
        )
        if self._refresher is not None:
            self.pages.query_health = self._refresher.query_health
        self._loader = RuleLoader(
            settings.rules, self._loaded, self._refused, servers=server_names(settings.prometheus)
        )
        self._loader.resume(start.loader)
        self._server = Server(settings.serving, self.pages, _reviews(start))
        self._notifier = Notifier(_source(settings), self._metrics)
        self._notifier.start()  # before `run`: some events may have come already
        self._reloaded(rules)
        if self._refresher is not None:
            self._refresher.set_rules(rules)

    def run(self, ended: threading.Event) -> None:
        """Serve, then look after files and timetable until the parent is gone."""
        try:
            self._server.start()
        except ConfigError as error:
            self._wire.send(Serving(str(error)))
        else:
            self._wire.send(Serving())
        while not ended.wait(_LOOK_S):
            self._loader.poll()
            if self._refresher is not None:
                self._refresher.tick()
        self._notifier.stop(_LAST_NOTIFICATIONS_S)

    def receive(self, message: ToRefresher) -> None:
        match message:
            case Identity() if self._refresher is not None:
                self._refresher.set_identity(message.identity)
            case Reply():
                self.pages.answered(message)
            case Notification():
                self._notifier.submit(message.event)
            case _:
                pass

    def _loaded(self, rules: RuleSet) -> None:
        def announce(rules: RuleSet) -> None:
            self._wire.send(Rules(rules, self._loader.state))
            self._reloaded(rules)

        if self._refresher is None:
            announce(rules)
        else:
            self._refresher.swap(rules, announce)

    def _reloaded(self, rules: RuleSet) -> None:
        self._metrics.rules_last_reload_successful().set(1)
        self._metrics.rules_last_reload_success_timestamp().set_to_current_time()
        self._metrics.keep_signals(rules.signals)

    def _refused(self, message: str) -> None:
        self._metrics.rules_last_reload_successful().set(0)
        self._wire.send(ReloadFailed(message))


def _reviews(start: Start) -> Reviews | None:
    """Return who is asked about callers; nobody where all callers are on this machine, and trusted."""
    settings = start.settings
    if settings.serving.is_loopback or not settings.serving.secure_port:
        return None
    # Slow to import, and mostly not needed.
    from scheduler.kube.config import load_connection
    from scheduler.kube.reviews import AccessReviews
    from scheduler.kube.transport import Transport

    kubeconfig = None if settings.kubeconfig is None else str(settings.kubeconfig)
    try:
        connection = load_connection(kubeconfig).as_replica(start.identity, "access-reviews")
    except ConfigError as error:  # the deciding process could read it; signals must not end with it
        log.error("no caller from elsewhere is let in: %s", error)
        return None
    return AccessReviews(Transport(connection, pool_size=2))


def _source(settings: Settings) -> str:
    """Return the source of all events: that of the Lease, which replicas that stand in for each other share."""
    election = settings.leader_election
    return f"/vane/{election.resource_namespace}/{election.resource_name}"


def main(fd: int) -> None:
    """Run until the other end of the socket closes."""
    for ignored in (signal.SIGINT, signal.SIGTERM):
        # Ctrl-C and a stop of the whole group reach us too, but pages and answers go on until the parent ends.
        signal.signal(ignored, signal.SIG_IGN)
    ended, begun = threading.Event(), threading.Event()
    begin: list[Begin] = []
    process: list[RefresherProcess] = []
    early: list[ToRefresher] = []

    def receive(message: ToRefresher) -> None:
        if isinstance(message, Begin):
            begin.append(message)
            begun.set()
        elif process:
            process[0].receive(message)
        else:
            early.append(message)

    def closed() -> None:
        ended.set()
        begun.set()

    wire: Wire[FromRefresher, ToRefresher] = Wire(fd, ToRefresher, receive, closed, "deciding")
    wire.start()
    begun.wait()
    if not begin:
        return
    start: Start = pickle.loads(begin[0].start)
    form = start.settings.logging
    with logs.configure(form.format, form.verbosity, sys.stderr):
        process.append(RefresherProcess(start, begin[0].rules, wire))
        while early:
            process[0].receive(early.pop(0))
        gc.collect()
        gc.freeze()  # answers make garbage; what has been imported need not be looked through for it
        process[0].run(ended)


if __name__ == "__main__":
    main(int(sys.argv[1]))
