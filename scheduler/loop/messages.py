"""What reaches the deciding thread's inbox, besides the reflectors' and the binder's own messages."""

from __future__ import annotations

import queue
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scheduler.kube.binder.messages import BindResult, EventsDropped, EvictResult, PatchResult, RequestsDone
from scheduler.kube.election.roll_call import RollCall
from scheduler.kube.watch_stream import Changed, Replaced
from scheduler.loop.pages.signal_listing import SignalsQuery
from scheduler.model.rules import RuleSet
from scheduler.signals.answers import SignalAnswer


@dataclass(frozen=True, slots=True)
class BinderSaid:
    """Results of binds, patches and evictions, finished requests, lost Events: whatever the binder process reports."""

    messages: Sequence[BindResult | PatchResult | EvictResult | RequestsDone | EventsDropped]


@dataclass(frozen=True, slots=True)
class SignalAnswered:
    answer: SignalAnswer


@dataclass(frozen=True, slots=True)
class RulesLoaded:
    rules: RuleSet


@dataclass(frozen=True, slots=True)
class RulesRefused:
    """A reload failed; `message` lists every problem, and the previous rules stay in force."""

    message: str


@dataclass(frozen=True, slots=True)
class PageAsked:
    """A page wants what only this thread knows: metrics, livez or readyz. `reply` must not block."""

    what: str
    reply: Callable[[bytes], None]


@dataclass(frozen=True, slots=True)
class DecisionsAsked:
    """Somebody wants the records that come after a number, None: the newest ones. `reply` must not block."""

    after: int | None
    limit: int
    reply: Callable[[bytes], None]


@dataclass(frozen=True, slots=True)
class SignalsAsked:
    """Somebody wants to see signals: the first slice of a SignalListing. `reply` must not block."""

    query: SignalsQuery
    reply: Callable[[bytes], None]


@dataclass(frozen=True, slots=True)
class Led:
    """We lead from now on; `roll_call` was taken after the lease was ours."""

    roll_call: RollCall


@dataclass(frozen=True, slots=True)
class PermitCalled:
    """Somebody sets a Pod free that waits at Permit, or sends it back with `message` as the reason.

    `reply` gets whether the Pod was waiting; it must not block.
    """

    namespace: str
    name: str
    allow: bool
    message: str
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
    | DecisionsAsked
    | SignalsAsked
    | Led
    | PermitCalled
    | PoolDone
    | Stop
)


class Inbox:
    """The one way into the deciding thread; `put` may be called from any thread."""

    def __init__(self) -> None:
        self._messages: queue.SimpleQueue[Message] = queue.SimpleQueue()

    def put(self, message: Message) -> None:
        self._messages.put(message)

    def take(self, timeout_s: float) -> Message | None:
        """Wait up to `timeout_s` seconds (0: not at all) for a message; None if none came."""
        try:
            return self._messages.get(timeout_s > 0, timeout_s if timeout_s > 0 else None)
        except queue.Empty:
            return None
