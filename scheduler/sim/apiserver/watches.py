"""Watches: changes from a version on, as lines, until the client has enough.

A watch keeps no queue of its own: it remembers how far it got and reads on from the store's window. One that falls out
of the window gets 410 as an event, as one that asks for too old a version.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

import msgspec
from aiohttp import web

from scheduler.sim.apiserver.failures import StatusError
from scheduler.sim.apiserver.history import Change, Key, Stored
from scheduler.sim.apiserver.lists import encode_object
from scheduler.sim.apiserver.resources import Json
from scheduler.sim.apiserver.store import ObjectStore
from scheduler.sim.apiserver.tables import encode_table, wants_table
from scheduler.sim.apiserver.target import RequestQuery, Target

BOOKMARK_S: Final = 60.0
DEFAULT_LENGTH_S: Final = 1800.0
"""How long a watch lasts that does not say; the real API server takes between this and twice this."""

_INITIAL_EVENTS_END: Final = {"k8s.io/initial-events-end": "true"}


class Ending:
    """Whether the server ends, for watches that wait for something else."""

    def __init__(self) -> None:
        self.is_set = False
        self._waiting: set[asyncio.Event] = set()

    def add(self, event: asyncio.Event) -> Callable[[], None]:
        """Set the event at the end; what is returned takes it off again."""
        self._waiting.add(event)
        return lambda: self._waiting.discard(event)

    def set(self) -> None:
        self.is_set = True
        for event in self._waiting:
            event.set()


async def follow(
    request: web.Request, store: ObjectStore, target: Target, query: RequestQuery, ending: Ending, bookmark_s: float
) -> web.StreamResponse:
    """Answer a watch; return when its time is over, the client has gone or the server ends."""
    watch = _Watch(store, target, query, wants_table(request.headers.get("Accept", "")))
    length_s = float(query.number("timeoutSeconds") or DEFAULT_LENGTH_S)
    response = web.StreamResponse(headers={"Content-Type": "application/json", "Cache-Control": "no-cache, private"})
    woken = asyncio.Event()
    forget = ending.add(woken), store.history(target.resource).listen(lambda _: woken.set())
    try:
        await response.prepare(request)
        await _write(response, watch, woken, length_s, lambda: ending.is_set, bookmark_s)
    except ConnectionError:
        pass  # the client has seen enough
    finally:
        for one in forget:
            one()
    return response


async def _write(
    response: web.StreamResponse, watch: _Watch, woken: asyncio.Event, length_s: float, is_ending: Callable[[], bool],
    bookmark_s: float,
) -> None:  # fmt: skip
    clock = asyncio.get_running_loop().time
    end, bookmark_at = clock() + length_s, clock() + bookmark_s
    lines = watch.first()
    while True:
        if lines:
            await response.write(b"".join(lines))
        if watch.has_failed or is_ending() or clock() >= end:
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(woken.wait(), max(min(end, bookmark_at) - clock(), 0))
        woken.clear()
        lines = watch.more()
        if clock() >= min(end, bookmark_at):
            lines += watch.bookmark()
            bookmark_at = clock() + bookmark_s


class _Watch:
    """How far one watch has got, and its lines."""

    def __init__(self, store: ObjectStore, target: Target, query: RequestQuery, is_table: bool) -> None:
        self._store = store
        self._target = target
        self._history = store.history(target.resource)
        self._select = query.selector(target.resource)
        self._asked = query.version()
        self._sends_state = not self._asked or query.flag("sendInitialEvents")
        self._marks_state = query.flag("sendInitialEvents")
        self._has_bookmarks = query.flag("allowWatchBookmarks")
        self._is_table = is_table
        self._has_columns = False
        self._version = self._asked or 0
        self.has_failed = False

    def first(self) -> list[bytes]:
        """Return the lines to begin with: what there is, unless the client knows it, or what it has missed."""
        if not self._sends_state:
            return self.more()
        self._version = self._store.version
        lines = [self._line("ADDED", one) for key, one in self._history.sorted() if self._is_chosen(key, one)]
        return lines + self.bookmark(_INITIAL_EVENTS_END) if self._marks_state else lines

    def more(self) -> list[bytes]:
        """Return the lines of all changes since the last call; an expiry is a line, too, and the last one."""
        try:
            changes = self._history.since(self._version)
        except StatusError as error:
            self.has_failed = True
            return [_encode_line("ERROR", msgspec.json.encode(error.status))]
        self._version = max(self._store.version, self._version)
        return [line for change in changes for line in self._lines(change)]

    def bookmark(self, annotations: Json | None = None) -> list[bytes]:
        """Return the line that says which version was reached, none for a client that did not allow it."""
        if not self._has_bookmarks or self.has_failed:
            return []
        metadata: Json = {"resourceVersion": str(self._version), "creationTimestamp": None}
        if annotations is not None:
            metadata["annotations"] = annotations
        stored = Stored({"metadata": metadata}, self._version, 0.0)
        return [self._line("BOOKMARK", stored)]

    def _lines(self, change: Change) -> list[bytes]:
        was = change.before is not None and self._is_chosen(change.key, change.before)
        if change.type == "DELETED":
            return [self._line("DELETED", change.stored)] if was else []
        is_chosen = self._is_chosen(change.key, change.stored)
        if is_chosen:
            return [self._line("MODIFIED" if was else "ADDED", change.stored)]
        if not was or change.before is None:
            return []
        # It is still there, but no longer what was asked for: gone, as far as this client is concerned.
        last = change.before.copy()
        last["metadata"]["resourceVersion"] = str(change.version)
        return [self._line("DELETED", Stored(last, change.version, 0.0))]

    def _is_chosen(self, key: Key, stored: Stored) -> bool:
        target = self._target
        is_here = target.namespace in ("", key[0]) and target.name in ("", key[1])
        return is_here and self._select(stored.object)

    def _line(self, type_: str, stored: Stored) -> bytes:
        resource = self._target.resource
        if not self._is_table:
            return _encode_line(type_, encode_object(resource, stored))
        metadata = {"resourceVersion": str(stored.version)}
        rows = [] if type_ == "BOOKMARK" else [stored]  # the real API server sends a row of empty cells
        table = encode_table(resource, rows, metadata, self._store.now(), has_columns=not self._has_columns)
        self._has_columns = True
        return _encode_line(type_, table)


def _encode_line(type_: str, obj: bytes) -> bytes:
    return b'{"type":"' + type_.encode() + b'","object":' + obj + b"}\n"
