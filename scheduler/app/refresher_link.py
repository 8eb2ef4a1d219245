"""The deciding process' side of the refresher process: starts it, and starts it again if it ends by itself."""

from __future__ import annotations

import logging
import os
import pickle
import socket
import subprocess
import threading
from collections.abc import Callable

import msgspec

from scheduler.app.wire import (
    AskPage,
    Begin,
    CallPermit,
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
from scheduler.child_process import endings_held_back, module_command, module_environment
from scheduler.framework.instructions import Notify
from scheduler.loop.messages import (
    Inbox,
    PageAsked,
    PermitCalled,
    RulesLoaded,
    RulesRefused,
    SignalAnswered,
)
from scheduler.metrics import Metrics
from scheduler.model.identity import KnownNodes, NodeChanges
from scheduler.model.rules import RuleSet
from scheduler.serve.cloud_event import Event

log = logging.getLogger(__name__)

_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 30.0
_END_S = 5.0
_MAX_QUEUED = 1_000


class RefresherLink:
    """Keeps one refresher process running and carries messages between it and the inbox.

    Prometheus, rule files and pages must never stop scheduling, so neither does the end of this process: a
    new one is started after a pause. `failed` is told the reason if the first one cannot start at all.
    """

    def __init__(
        self, start: Start, rules: RuleSet, inbox: Inbox, failed: Callable[[str], None], metrics: Metrics
    ) -> None:
        self._start = start
        self._rules = rules
        self._inbox = inbox
        self._failed = failed
        self._metrics = metrics
        self._nodes = KnownNodes()
        # What a new process is told and what follows must come in order: two threads tell it.
        self._telling = threading.Lock()
        self._wire: Wire[ToRefresher, FromRefresher] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._has_served = False
        self._pause_s = _FIRST_PAUSE_S
        self._ended = threading.Event()
        self._lost = threading.Event()

    def start(self) -> None:
        """Start the process, and a thread that starts the next one if it ends by itself."""
        self._launch()
        threading.Thread(target=self._keep_alive, name="refresher-keeper", daemon=True).start()

    def publish_nodes(self, changes: NodeChanges) -> None:
        """Tell the resolver which nodes have come, gone or changed their names; never blocks for long."""
        with self._telling:
            self._nodes.apply(changes)
            if self._wire is not None:
                self._wire.send(Nodes(changes))

    def notify(self, notify: Notify) -> None:
        """Have a plugin's event delivered; never blocks.

        It is dropped and counted while there is no refresher process, or when that does not keep up. What one had
        taken over when it ended by itself is lost with it.
        """
        wire = self._wire
        if wire is None or self._lost.is_set() or wire.n_queued >= _MAX_QUEUED:
            self._metrics.notifications("dropped").inc()
            return
        try:
            event = Event.of(notify)
        except (TypeError, ValueError) as error:
            self._metrics.notifications("failed").inc()
            log.error("a plugin's notification is not valid JSON", extra={"type": notify.type, "error": str(error)})
            return
        wire.send(Notification(event))

    def stop(self) -> None:
        """End the process and wait for it."""
        self._ended.set()
        self._lost.set()
        if self._wire is not None:
            self._wire.close()
        self._await_end()

    def _await_end(self) -> None:
        """Wait for the process, whose wire is closed; it may not outlast that for long."""
        if self._process is not None:
            try:
                self._process.wait(_END_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def _launch(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            fd = theirs.fileno()
            argv = module_command("scheduler.app.refresher_process", str(fd))
            environ = module_environment(os.environ)
            with endings_held_back():
                self._process = subprocess.Popen(argv, pass_fds=(fd,), stdin=subprocess.DEVNULL, env=environ)
        wire: Wire[ToRefresher, FromRefresher] = Wire(
            ours.detach(), FromRefresher, self._receive, self._lost.set, "refresher"
        )
        wire.start()
        wire.send(Begin(pickle.dumps(self._start), self._rules))
        with self._telling:
            known = self._nodes.all()
            if known.generation:
                wire.send(Nodes(known))
            self._wire = wire

    def _receive(self, message: FromRefresher) -> None:
        match message:
            case SignalAnswered() | RulesRefused():
                self._inbox.put(message)
            case Rules():
                # A process that takes over goes on from here, not from where the first one began.
                self._rules = message.rules
                self._start = self._start._replace(loader=message.loader)
                self._inbox.put(RulesLoaded(message.rules))
            case AskPage():
                number = message.number
                self._inbox.put(
                    PageAsked(
                        message.query,
                        lambda body: self._reply(number, body),
                        lambda fault: self._reply(number, b"", fault),
                        message.goes_on,
                    )
                )
            case CallPermit():
                number = message.number
                self._inbox.put(PermitCalled(message.call, lambda did: self._reply(number, msgspec.json.encode(did))))
            case Serving():
                self._served(message.problem)

    def _reply(self, number: int, body: bytes, fault: str = "") -> None:
        if self._wire is not None:
            self._wire.send(Reply(number, body, fault))

    def _served(self, problem: str) -> None:
        if problem and not self._has_served:
            self._failed(problem)
        elif problem:
            log.error("the pages are not served: %s", problem)
        self._has_served = True
        self._pause_s = _FIRST_PAUSE_S

    def _keep_alive(self) -> None:
        while True:
            self._lost.wait()
            if self._ended.is_set():
                return
            self._await_end()
            log.error("the refresher process ended by itself; a new one is started", extra={"pause_s": self._pause_s})
            if self._ended.wait(self._pause_s):
                return
            self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)
            self._lost.clear()
            self._launch()
