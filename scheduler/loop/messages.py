"""What reaches the deciding thread's inbox, besides the reflectors' and the binder's own messages.

A msgspec.Struct comes from the refresher process as it is.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from scheduler.kube.binder.messages import BindResult, EventsDropped, EvictResult, PatchResult, RequestsDone
from scheduler.kube.election.roll_call import RollCall
from scheduler.kube.watch_stream import Changed, Replaced
from scheduler.loop.pages.query import PageQuery
from scheduler.model.rules import RuleSet
from scheduler.signals.answers import SignalAnswer

SLICES_AHEAD: Final = 4


@dataclass(frozen=True, slots=True)
class BinderSaid:
    """Results of binds, patches and evictions, finished requests, lost Events: whatever the binder process reports."""

    messages: Sequence[BindResult | PatchResult | EvictResult | RequestsDone | EventsDropped]


class SignalAnswered(msgspec.Struct, frozen=True, tag=True):
    answer: SignalAnswer


@dataclass(frozen=True, slots=True)
class RulesLoaded:
    rules: RuleSet


class RulesRefused(msgspec.Struct, frozen=True, tag=True):
    """A reload failed; `message` lists every problem, and the previous rules stay in force."""

    message: str


@dataclass(frozen=True, slots=True)
class PageAsked:
    """A page wants what only this thread knows, or the next slice of it (`goes_on`).

    `reply` gets that, or `failed` why there is none; neither may block.
    """

    query: PageQuery
    reply: Callable[[bytes], None]
    failed: Callable[[str], None]
    goes_on: bool = False


@dataclass(frozen=True, slots=True)
class Led:
    """We lead from now on; `roll_call` was taken after the lease was ours."""

    roll_call: RollCall


class PermitCall(msgspec.Struct, frozen=True):
    """Which waiting Pod at Permit, whether it goes on, and if not, why."""

    namespace: str
    name: str
    allow: bool
    message: str


@dataclass(frozen=True, slots=True)
class PermitCalled:
    """Somebody decides about a Pod that waits at Permit; `reply` gets whether it did wait, and must not block."""

    call: PermitCall
    reply: Callable[[bool], None]


Settle = Callable[[object, Exception | None], None]
"""Takes an answer, or what was raised instead; called on the deciding thread."""


@dataclass(frozen=True, slots=True)
class PoolDone:
    """A plugin that ran in the pool has ended: with its answer, or with what it raised."""

    settle: Settle
    answer: object
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class Stop:
    """End: exit code 0 for SIGTERM, 1 with the reason why it cannot go on."""

    exit_code: int
    reason: str


Message = (
    Replaced
    | Changed
    | BinderSaid
    | SignalAnswered
    | RulesLoaded
    | RulesRefused
    | PageAsked
    | Led
    | PermitCalled
    | PoolDone
    | Stop
)


class Inbox:
    """The one way into the deciding thread; `put` may be called from any thread.

    It blocks where more slices of lists wait than the deciding thread takes in at a few turns: a list is read no faster
    than it is applied, all other messages wait for few of its slices, and few are in memory.
    """

    def __init__(self) -> None:
        self._messages: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._room = threading.Semaphore(SLICES_AHEAD)

    def put(self, message: Message) -> None:
        if isinstance(message, Replaced):
            self._room.acquire()
        self._messages.put(message)

    def take(self, timeout_s: float) -> Message | None:
        """Wait up to `timeout_s` seconds (0: not at all) for a message; None if none came."""
        try:
            message = self._messages.get(timeout_s > 0, timeout_s if timeout_s > 0 else None)
        except queue.Empty:
            return None
        if isinstance(message, Replaced):
            self._room.release()
        return message
