"""Lists: what the watch threads read, one slice of a list at a time, so that decisions and pages go on in between.

A list of 150,000 Pods takes ten seconds and more to apply. What it names counts as it comes, as if the watch had shown
it; what it has not named is deleted when it is complete, before any later change of its kind.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from scheduler.cluster.router import Router
from scheduler.kube.ended_pods import ENDED_PODS
from scheduler.kube.watch_stream import SLICE, Changed, Replaced
from scheduler.loop.ports import Clock

AT_ONCE: Final = SLICE


@dataclass(slots=True)
class _Ending:
    """A list that is complete: what is left to delete, and the later messages of its kind, which wait for that."""

    deletions: deque[Callable[[float], None]]
    later: deque[Changed | Replaced] = field(default_factory=deque)


class Lists:
    """Owned by the deciding thread. `synced` holds the kinds of which a complete list has been applied."""

    def __init__(self, router: Router, clock: Clock) -> None:
        self._router = router
        self._clock = clock
        self._endings: dict[str, _Ending] = {}
        self.synced: set[str] = set()

    @property
    def is_ending(self) -> bool:
        """Whether `go_on` has something to do."""
        return bool(self._endings)

    def take(self, message: Changed | Replaced) -> None:
        """Apply a message, or keep it until the list before it has been applied."""
        ending = self._endings.get(message.kind)
        if ending is not None:
            ending.later.append(message)
            return
        self._apply(message)
        if message.kind in self._endings:
            self._go_on(message.kind, self._endings[message.kind])

    def go_on(self) -> None:
        """Delete some of what complete lists have not named."""
        for kind, ending in list(self._endings.items()):
            self._go_on(kind, ending)

    def _go_on(self, kind: str, ending: _Ending) -> None:
        for _ in range(AT_ONCE):
            if ending.deletions:
                ending.deletions.popleft()(self._clock())
            elif ending.later:
                self._apply(ending.later.popleft())
            else:
                del self._endings[kind]
                return

    def _apply(self, message: Changed | Replaced) -> None:
        now_s = self._clock()
        if isinstance(message, Changed):
            self._router.changed(message.type, message.object, now_s)
        elif message.kind == ENDED_PODS:
            self._router.ended(message.objects, now_s)
            if message.is_last:
                self.synced.add(message.kind)
        else:
            self._router.listed(message.kind, message.objects, now_s, is_first=message.is_first)
            if message.is_last:
                self._end(message.kind)

    def _end(self, kind: str) -> None:
        deletions = deque(self._router.unlisted(kind))
        deletions.append(partial(self._complete, kind))
        self._endings.setdefault(kind, _Ending(deque())).deletions = deletions

    def _complete(self, kind: str, _now_s: float) -> None:
        self.synced.add(kind)
