"""List pages and watch lines, from bytes to objects. No network, no thread, no clock."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from scheduler.errors import InvalidObjectError, VaneError
from scheduler.kube.resources import ResourceKind
from scheduler.model.objects import ObjectMeta

log = logging.getLogger(__name__)

EventType = Literal["ADDED", "MODIFIED", "DELETED"]


@dataclass(frozen=True, slots=True)
class Replaced:
    """A complete list: all objects there are. What the receiver holds beyond them has been deleted."""

    kind: str
    objects: list[Any]


@dataclass(frozen=True, slots=True)
class Changed:
    """One object came, changed or went; DELETED carries its last state."""

    kind: str
    type: EventType
    object: Any


class ExpiredError(VaneError):
    """The resource version is too old for the API server: list again."""


class ServerError(VaneError):
    """The watch ended with an ERROR event that is no expiry."""

    def __init__(self, message: str, retry_after_s: float = 0.0) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(message)


class MalformedStreamError(VaneError):
    """What came is not a watch event, or is half of one."""


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct, rename="camel"):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


class _Line(msgspec.Struct):
    type: str
    object: msgspec.Raw = msgspec.Raw()


class _Metadata(msgspec.Struct):
    metadata: ObjectMeta


class _StatusDetails(msgspec.Struct, rename="camel"):
    retry_after_seconds: float = 0


class _Status(msgspec.Struct, rename="camel"):
    code: int = 0
    reason: str = ""
    message: str = ""
    details: _StatusDetails | None = None


@dataclass(frozen=True, slots=True)
class Page:
    objects: list[Any]
    resource_version: str
    next_token: str


class ObjectReader:
    """Decodes the objects of one kind, and keeps count of those that cannot be read."""

    def __init__(self, kind: ResourceKind) -> None:
        self._kind = kind
        self._named: set[str] = set()
        self._page = msgspec.json.Decoder(_Page)
        self._line = msgspec.json.Decoder(_Line)
        self._metadata = msgspec.json.Decoder(_Metadata)
        self.n_unreadable = 0

    def page(self, body: bytes) -> Page:
        """Decode one page of a list.

        Objects are decoded one by one from copies: a Raw field would otherwise keep the whole page in memory, and one
        call for 500 Pods would hold the GIL for 5 ms.
        """
        try:
            page = self._page.decode(body)
        except msgspec.DecodeError as error:
            raise MalformedStreamError(f"list of {self._kind.name}: {error}") from error
        objects = []
        for raw in page.items or ():
            try:
                objects.append(self._kind.decode(bytes(raw)))
            except InvalidObjectError as error:
                self._set_aside(bytes(raw), error)
        return Page(objects, page.metadata.resource_version, page.metadata.continue_)

    def event(self, line: bytes) -> tuple[Changed | None, str]:
        """Decode one line of a watch: the message for the receiver, if any, and the resource version reached.

        Raises
        ------
        ExpiredError, ServerError, MalformedStreamError
            The watch is over.
        """
        try:
            event = self._line.decode(line)
        except msgspec.DecodeError as error:
            raise MalformedStreamError(f"watch of {self._kind.name}: {error}") from error
        if event.type == "ERROR":
            raise _error_event(event.object)
        if event.type == "BOOKMARK":
            return None, self._metadata_of(event.object).resource_version
        if event.type not in ("ADDED", "MODIFIED", "DELETED"):
            raise MalformedStreamError(f"watch of {self._kind.name}: event of type {event.type!r}")
        try:
            decoded = self._kind.decode(event.object)
            return Changed(self._kind.name, event.type, decoded), decoded.metadata.resource_version  # type: ignore[arg-type] # mypy doesn't narrow str to a Literal by `in`
        except InvalidObjectError as error:
            self._set_aside(event.object, error)
            return self._gone(event)

    def _gone(self, event: _Line) -> tuple[Changed | None, str]:
        """What cannot be read is out of sight: to the receiver it is deleted."""
        metadata = self._metadata_of(event.object)
        if event.type == "ADDED":
            return None, metadata.resource_version
        return Changed(self._kind.name, "DELETED", self._kind.stub(metadata)), metadata.resource_version

    def _metadata_of(self, raw: msgspec.Raw) -> ObjectMeta:
        try:
            return self._metadata.decode(raw).metadata
        except msgspec.DecodeError as error:
            raise MalformedStreamError(f"watch of {self._kind.name}: {error}") from error

    def _set_aside(self, raw: bytes | msgspec.Raw, error: InvalidObjectError) -> None:
        self.n_unreadable += 1
        try:
            metadata = self._metadata.decode(raw).metadata
            name = f"{metadata.namespace}/{metadata.name}".strip("/")
        except msgspec.DecodeError:
            name = "(without readable metadata)"
        if name not in self._named and len(self._named) < _MAX_NAMED:
            self._named.add(name)
            log.error("%s %s is ignored, it cannot be read: %s", self._kind.name, name, error)


_MAX_NAMED = 1000
"""Unreadable objects that are logged by name; further ones are only counted."""


def _error_event(raw: msgspec.Raw) -> VaneError:
    try:
        status = msgspec.json.decode(raw, type=_Status)
    except msgspec.DecodeError as error:
        return MalformedStreamError(f"ERROR event: {error}")
    text = f"{status.code} {status.reason}: {status.message}"
    if status.code == 410 or status.reason in ("Expired", "Gone"):
        return ExpiredError(text)
    return ServerError(text, status.details.retry_after_seconds if status.details else 0.0)


class LineSplitter:
    """Cuts a byte stream into lines; what follows the last newline waits for the next chunk."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        end = chunk.rfind(b"\n")
        if end < 0:
            self._pieces.append(chunk)
            return
        whole = b"".join([*self._pieces, chunk[:end]])
        rest = chunk[end + 1 :]
        self._pieces = [rest] if rest else []
        for line in whole.split(b"\n"):
            if line:
                yield line

    @property
    def has_rest(self) -> bool:
        """Whether the stream ended in the middle of a line."""
        return bool(self._pieces)
