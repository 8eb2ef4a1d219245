"""Objects of one kind with their recent past: what lists at a revision and watches from a revision are made of."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from scheduler.sim.apiserver.failures import expired
from scheduler.sim.apiserver.resources import Json

ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]
Key = tuple[str, str]
"""Namespace and name."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict).decode


def place_of(key: Key) -> str:
    """Return what lists are ordered by, as etcd's are."""
    return "/".join(key)


@dataclass(slots=True)
class Stored:
    """One state of one object, without kind and apiVersion; never changed once stored, so any number may share it.

    `written_s` is the wall clock's, in seconds since 1970.
    """

    object: Json
    version: int
    written_s: float
    _encoded: bytes = b""

    @property
    def encoded(self) -> bytes:
        if not self._encoded:
            self._encoded = _encode(self.object)
        return self._encoded

    def copy(self) -> Json:
        """Return an object of the caller's own."""
        copied: Json = _decode(self.encoded)
        return copied


@dataclass(frozen=True, slots=True)
class Change:
    """What happened to one object at `version`; `before` is None for ADDED, `stored` the last state for DELETED."""

    type: ChangeType
    key: Key
    stored: Stored
    before: Stored | None
    version: int


Listener = Callable[[Change], None]


@dataclass(slots=True)
class History:
    """The objects of one kind, those written to longest ago first, and its last `window` changes."""

    window: int
    objects: dict[Key, Stored] = field(default_factory=dict)
    _changes: deque[Change] = field(default_factory=deque)
    _forgotten: int = 0
    _listeners: dict[object, Listener] = field(default_factory=dict)

    def record(self, change: Change) -> None:
        """Make a change and tell the listeners, in the order in which they came."""
        if change.type == "DELETED":
            del self.objects[change.key]
        else:
            self.objects.pop(change.key, None)
            self.objects[change.key] = change.stored
        self._changes.append(change)
        if len(self._changes) > self.window:
            self._forgotten = self._changes.popleft().version
        for listener in list(self._listeners.values()):
            listener(change)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call the listener at every change from now on; what is returned ends that."""
        token = object()
        self._listeners[token] = listener

        def end() -> None:
            self._listeners.pop(token, None)

        return end

    def sorted(self) -> list[tuple[Key, Stored]]:
        return sorted(self.objects.items(), key=lambda item: place_of(item[0]))

    def since(self, version: int) -> list[Change]:
        """Return the changes after a version.

        Raises
        ------
        StatusError
            410: some of them are beyond the window.
        """
        if version < self._forgotten:
            raise expired(f"too old resource version: {version} ({self._forgotten + 1})")
        return self._after(version)

    def at(self, version: int) -> dict[Key, Stored]:
        """Return the objects as they were at a version; raise as `since`."""
        if version < self._forgotten:
            raise expired(
                "The provided continue parameter is too old to display a consistent list result. You must start a "
                "new list without the continue parameter."
            )
        objects = dict(self.objects)
        for change in reversed(self._after(version)):
            if change.before is None:
                del objects[change.key]
            else:
                objects[change.key] = change.before
        return objects

    def _after(self, version: int) -> list[Change]:
        later = []
        for change in reversed(self._changes):
            if change.version <= version:
                break
            later.append(change)
        later.reverse()
        return later
