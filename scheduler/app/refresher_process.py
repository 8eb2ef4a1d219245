"""The refresher process: asks Prometheus, watches the rule files, serves the pages.

Started by `app.refresher_link` as `python -m scheduler.app.refresher_process FD`; ends when its parent is gone.
"""

from __future__ import annotations

import gc
import logging
import os
import pickle
import signal
import sys
import threading
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from scheduler import logs
from scheduler.app.deciding_process import DecidingProcess
from scheduler.app.observers import CountingRefresher
from scheduler.app.prometheus_servers import features_of, make_servers, matchers_of, server_names
from scheduler.app.wire import (
    Begin,
    FromRefresher,
    Nodes,
    Notification,
    Reply,
    Rules,
    Serving,
    Start,
    ToRefresher,
    Wire,
)
from scheduler.errors import ConfigError
from scheduler.loop.messages import RulesRefused, SignalAnswered
from scheduler.metrics import Metrics
from scheduler.model.identity import KnownNodes
from scheduler.model.rules import RuleSet
from scheduler.serve.access import Reviews
from scheduler.serve.http import PageServer
from scheduler.serve.notifier import Notifier
from scheduler.settings.settings import Settings
from scheduler.signals.loader import RuleLoader

if TYPE_CHECKING:
    from scheduler.kube.reviews import Caller

log = logging.getLogger(__name__)

_LOOK_S = 0.25
_LAST_NOTIFICATIONS_S = 2.0


class RefresherProcess:
    """Puts the parts of this process together."""

    def __init__(self, start: Start, rules: RuleSet, wire: Wire[FromRefresher, ToRefresher]) -> None:
        settings = self._settings = start.settings
        self._wire = wire
        self._nodes = KnownNodes()
        self._metrics = Metrics(CollectorRegistry())
        self._refresher = make_servers(
            settings.prometheus, lambda answer: wire.send(SignalAnswered(answer)), CountingRefresher(self._metrics)
        )
        pids = {**start.pids, "refresher": os.getpid()}
        query_health = dict if self._refresher is None else self._refresher.query_health
        self._deciding = DecidingProcess(wire, self._metrics.registry, pids, query_health)
        self._loader = RuleLoader(
            settings.rules,
            self._loaded,
            self._refused,
            servers=server_names(settings.prometheus),
            features=features_of(settings.prometheus),
            matchers=matchers_of(settings.prometheus),
        )
        self._loader.resume(start.loader)
        self._server = PageServer(settings.serving, self._deciding, _ReviewsWhenAsked(start))
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
            case Nodes() if self._refresher is not None:
                self._nodes.apply(message.changes)
                self._refresher.set_identity(self._nodes.identity())
            case Reply():
                self._deciding.replied(message)
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
        self._wire.send(RulesRefused(message))


class _ReviewsWhenAsked:
    """Asks the API server about callers; connects for the first of them, as most servers on loopback see none."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self._connecting = threading.Lock()
        self._reviews: Reviews | None = None

    def caller(self, token: str) -> Caller | None:
        return self._connected().caller(token)

    def allows(self, caller: Caller, verb: str, path: str) -> bool:
        return self._connected().allows(caller, verb, path)

    def _connected(self) -> Reviews:
        with self._connecting:
            if self._reviews is None:
                # Slow to import, and mostly not needed.
                from scheduler.kube.config import load_connection
                from scheduler.kube.reviews import AccessReviews
                from scheduler.kube.transport import Transport

                path = self._start.settings.kubeconfig
                connection = load_connection(None if path is None else str(path))
                own = connection.as_replica(self._start.identity, "access-reviews")
                self._reviews = AccessReviews(Transport(own))
            return self._reviews


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
    start: Start = pickle.loads(begin[0].start)  # nosec B301 # from our own parent, by a socket that nobody else has
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
