"""List pages and watch lines, from bytes to objects. No network, no thread, no clock."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from scheduler.errors import InvalidObjectError, VaneError
from scheduler.kube.api_objects import ListMeta, decode_status
from scheduler.kube.resources import ResourceKind
from scheduler.model.structs import MALFORMED_JSON, ObjectMeta

log = logging.getLogger(__name__)

EventType = Literal["ADDED", "MODIFIED", "DELETED"]

SLICE: Final = 100
"""Objects that the receiver takes in at once: some 10 ms for Pods."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """A list of all objects there are, or a slice of one; at the last, what no slice has named is deleted.

    A list that breaks off is followed by one from the start (`is_first`); what it has brought until then is true.
    """

    kind: str
    objects: list[Any]
    is_first: bool = True
    is_last: bool = True

    @classmethod
    def slices(
        cls, kind: str, objects: list[Any], *, is_first: bool = True, is_last: bool = True
    ) -> Iterator[Replaced]:
        """Yield objects as slices of a list that begins or ends with them; one slice where there are none."""
        for begin in range(0, max(len(objects), 1), SLICE):
            end = begin + SLICE
            yield cls(kind, objects[begin:end], is_first and begin == 0, is_last and end >= len(objects))


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


class _ListBody(msgspec.Struct):
    metadata: ListMeta
    items: list[msgspec.Raw] | None = None


class _Line(msgspec.Struct):
    type: str
    object: msgspec.Raw = msgspec.Raw()


class _Bookmark(msgspec.Struct):
    metadata: ObjectMeta


@dataclass(frozen=True, slots=True)
class ListPage:
    objects: list[Any]
    resource_version: str
    next_token: str


class ObjectReader:
    """Decodes the objects of one kind; one whose content does not fit says so itself, see `model.objects`."""

    def __init__(self, kind: ResourceKind) -> None:
        self._kind = kind
        self._page = msgspec.json.Decoder(_ListBody)
        self._line = msgspec.json.Decoder(_Line)
        self._bookmarks = msgspec.json.Decoder(_Bookmark)

    def page(self, body: bytes) -> ListPage:
        """Decode one page of a list.

        Objects are decoded one by one from copies: a Raw field would otherwise keep the whole page in memory, and one
        call for 500 Pods would hold the GIL for 5 ms.
        """
        try:
            page = self._page.decode(body)
        except MALFORMED_JSON as error:
            raise MalformedStreamError(f"list of {self._kind.name}: {error}") from error
        objects = []
        for raw in page.items or ():
            try:
                objects.append(self._kind.decode(bytes(raw)))
            except InvalidObjectError as error:
                # Nothing says which one it is. The others must not wait for it.
                log.error("a %s that cannot be read is ignored: %s", self._kind.name, error)
        return ListPage(objects, page.metadata.resource_version, page.metadata.continue_)

    def event(self, line: bytes) -> tuple[Changed | None, str]:
        """Decode one line of a watch: the message for the receiver, if any, and the resource version reached.

        Raises
        ------
        ExpiredError, ServerError, MalformedStreamError
            The watch is over.
        """
        try:
            event = self._line.decode(line)
        except MALFORMED_JSON as error:
            raise MalformedStreamError(f"watch of {self._kind.name}: {error}") from error
        if event.type == "ERROR":
            raise _error_event(event.object)
        if event.type == "BOOKMARK":
            return None, self._bookmark(event.object)
        if event.type not in ("ADDED", "MODIFIED", "DELETED"):
            raise MalformedStreamError(f"watch of {self._kind.name}: event of type {event.type!r}")
        try:
            decoded = self._kind.decode(event.object)
            return Changed(self._kind.name, event.type, decoded), decoded.metadata.resource_version  # type: ignore[arg-type] # mypy doesn't narrow str to a Literal by `in`
        except InvalidObjectError as error:
            raise MalformedStreamError(f"watch of {self._kind.name}: {error}") from error

    def _bookmark(self, raw: msgspec.Raw) -> str:
        try:
            return self._bookmarks.decode(raw).metadata.resource_version
        except MALFORMED_JSON as error:
            raise MalformedStreamError(f"watch of {self._kind.name}: {error}") from error


def _error_event(raw: msgspec.Raw) -> VaneError:
    status = decode_status(raw)
    if status is None:
        return MalformedStreamError("ERROR event without a Status")
    text = f"{status.code} {status.reason}: {status.message}"
    if status.code == 410 or status.reason in ("Expired", "Gone"):
        return ExpiredError(text)
    return ServerError(text, status.retry_after_s)


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
