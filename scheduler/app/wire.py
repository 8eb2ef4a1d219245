"""The wire between the deciding process and the refresher process: typed messages over one socket.

The deciding thread must never block, so what it sends is queued for a writer thread; what arrives is decoded
in a reader thread and handed on.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import socket
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from scheduler.loop.messages import PermitCall, RulesRefused, SignalAnswered
from scheduler.model.identity import NodeChanges
from scheduler.model.rules import RuleSet
from scheduler.serve.cloud_event import Event
from scheduler.serve.pages import AnyQuery
from scheduler.settings.settings import Settings
from scheduler.signals.loader import LoaderState

log = logging.getLogger(__name__)


class Start(NamedTuple):
    """What the refresher process is started with; crosses pickled, as both ends are ours.

    `pids` are the other processes by name, whose figures stand on the metrics page; `identity` is the replica's.
    """

    settings: Settings
    loader: LoaderState
    pids: dict[str, int]
    identity: str


class Begin(msgspec.Struct, frozen=True, tag=True):
    """To the refresher, first: a pickled Start and the rules in force."""

    start: bytes
    rules: RuleSet


class Nodes(msgspec.Struct, frozen=True, tag=True):
    """To the refresher: which nodes have come, gone or changed their names since the last time; at first, all."""

    changes: NodeChanges


class Reply(msgspec.Struct, frozen=True, tag=True):
    """To the refresher: the answer to what bears this number, or the fault for which there is none."""

    number: int
    body: bytes
    fault: str = ""


class Notification(msgspec.Struct, frozen=True, tag=True):
    """To the refresher: an event to deliver."""

    event: Event


class Rules(msgspec.Struct, frozen=True, tag=True):
    """From the refresher: a rule set to swap in; its new signals have been asked."""

    rules: RuleSet
    loader: LoaderState


class AskPage(msgspec.Struct, frozen=True, tag=True):
    """From the refresher: a page needs what only the deciding process knows, or the next slice of it (`goes_on`)."""

    number: int
    query: AnyQuery
    goes_on: bool = False


class CallPermit(msgspec.Struct, frozen=True, tag=True):
    """From the refresher: somebody decides about a Pod that waits at Permit; the Reply is JSON, whether it did."""

    number: int
    call: PermitCall


class Serving(msgspec.Struct, frozen=True, tag=True):
    """From the refresher: it is ready; `problem` says why it cannot be."""

    problem: str = ""


ToRefresher = Begin | Nodes | Reply | Notification
FromRefresher = SignalAnswered | Rules | RulesRefused | AskPage | CallPermit | Serving
"""What has no class here goes on into the inbox as it is."""

Out = TypeVar("Out")
In = TypeVar("In")


class Wire(Generic[Out, In]):
    """One end; `receive` and, once at the end, `closed` are called from the reader thread."""

    def __init__(
        self, fd: int, incoming: Any, receive: Callable[[In], None], closed: Callable[[], None], name: str
    ) -> None:
        self._connection = Connection(fd)
        self._decoder: msgspec.msgpack.Decoder[In] = msgspec.msgpack.Decoder(incoming)
        self._encoder = msgspec.msgpack.Encoder()
        self._receive = receive
        self._closed = closed
        self._outgoing: queue.SimpleQueue[Out | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._read, name=f"{name}-receive", daemon=True),
            threading.Thread(target=self._write, name=f"{name}-send", daemon=True),
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    @property
    def n_queued(self) -> int:
        """About how many messages wait to be written."""
        return self._outgoing.qsize()

    def send(self, message: Out) -> None:
        """Queue a message; never blocks."""
        self._outgoing.put(message)

    def close(self) -> None:
        """Send what is queued, then close our end."""
        self._outgoing.put(None)

    def _write(self) -> None:
        try:
            while (message := self._outgoing.get()) is not None:
                if (body := self._encoded(message)) is not None:
                    self._connection.send_bytes(body)
        except OSError:
            return  # the reader notices too, and says so
        # Closing alone would reach nobody while our own reader still waits on the same socket.
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(self._connection.fileno())) as ours:
            ours.shutdown(socket.SHUT_RDWR)

    def _encoded(self, message: Out) -> bytes | None:
        """Return what to send, None for what cannot be sent: the others must not wait for ever behind it."""
        try:
            return self._encoder.encode(message)
        except Exception:  # text that is none, a number too large, another type than was promised
            kind = type(message).__name__
            log.exception("a message between the processes is dropped: it cannot be sent", extra={"kind": kind})
            return None

    def _read(self) -> None:
        try:
            while True:
                self._receive(self._decoder.decode(self._connection.recv_bytes()))
        except (EOFError, OSError):
            pass  # the other end is gone
        except Exception:  # a fault in what receives must not leave a wire that nobody reads
            log.exception("the connection between two of Vane's processes failed")
        finally:
            self._connection.close()
            self._closed()
