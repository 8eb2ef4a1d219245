"""What the scheduler and its binder process say to each other: msgpack lists of tagged structs, length-prefixed.

Both sides run the same code version; the format is no API.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Sequence
from typing import Literal

import msgspec

from scheduler.kube.endpoint import Endpoint

Outcome = Literal["bound", "conflict_same_node", "conflict_other_node", "deleted", "gated", "expired", "failed"]
"""How a bind ended.

bound, conflict_same_node: the Pod is on the node asked for (the second: it already was, so an earlier request was
carried out without us hearing of it). conflict_other_node: a lost race. deleted: gone, going, or another Pod of that
name. gated: it has scheduling gates. expired: the lease's deadline passed before an answer came, mostly before anything
was sent. failed: all else.
"""


class Message(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag=True, tag_field="message_kind", array_like=True):
    """Base of everything on the socket."""


def _without_header(message: Message) -> str:
    """The repr of a message that carries an Authorization header, which no log and no traceback may show."""
    return f"{type(message).__name__}(header=…)"


class BinderConnection(Message, frozen=True):
    """To the child, before all else: where and as whom. The first is our own API server, those named are others."""

    endpoint: Endpoint
    header: str | None
    cert_file: str | None = None
    key_file: str | None = None
    user_agent: str = ""
    cluster: str = ""

    __repr__ = _without_header


class NewCredentials(Message, frozen=True):
    """From now on use this Authorization header and, if named, this client certificate, with that cluster."""

    header: str | None
    cert_file: str | None = None
    key_file: str | None = None
    cluster: str = ""

    __repr__ = _without_header


class LeaseUntil(Message, frozen=True):
    """How long we lead, unless a later one comes; both in monotonic seconds.

    No bind, patch or eviction is begun after `not_after`; at `ends_at`, when another replica may take the lease, the
    process is gone. It goes ahead of every batch, and by itself after a renewal; without leader election none is sent.
    """

    not_after: float
    ends_at: float


class PodRef(msgspec.Struct, frozen=True, kw_only=True, gc=False, array_like=True):
    """The Pod that a request is about, as the decision saw it."""

    namespace: str
    name: str
    uid: str
    resource_version: str = ""

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods/{self.name}"


class BindRequest(Message, frozen=True):
    """Bind the Pod, then write the Event `Scheduled` in the name of `scheduler_name`.

    With a `cluster` the Pod of that namespace and name there is bound, whatever its UID; the Event is written here.
    """

    pod: PodRef
    node_name: str
    scheduler_name: str
    cluster: str = ""
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class PatchRequest(Message, frozen=True):
    """Patch annotations (None removes one) and, unless None, `status.nominatedNodeName` ("" removes it) of a Pod.

    `number` comes back in the PatchResult.
    """

    number: int
    pod: PodRef
    annotations: dict[str, str | None]
    nominated_node_name: str | None = None


class WriteRequest(Message, frozen=True):
    """Merge a patch, `body` as JSON, over the object at `path`; its resourceVersion there keeps a newer one safe.

    `number` comes back in the PatchResult.
    """

    number: int
    path: str
    body: bytes


class FailureReport(Message, frozen=True):
    """Set the Pod's condition PodScheduled to False, if it isn't just that already, and write FailedScheduling.

    `current_*` is the condition as last seen ("" for none). `nominated_node_name`: None leaves it, "" clears it.
    `message` is the whole text; the Event's note is cut to what the API takes.
    """

    pod: PodRef
    scheduler_name: str
    reason: str
    message: str
    generation: int
    current_status: str = ""
    current_reason: str = ""
    current_message: str = ""
    nominated_node_name: str | None = None


class EventRequest(Message, frozen=True):
    """Write one Event about a Pod."""

    pod: PodRef
    scheduler_name: str
    type: Literal["Normal", "Warning"]
    reason: str
    action: str
    note: str
    related: PodRef | None = None


class EvictRequest(Message, frozen=True):
    """Set the condition DisruptionTarget of a Pod, delete it, then write the Event `Preempted` about it.

    `preemptor` is the Pod that needs its place, on `node_name`. `is_marked`: the Pod has that condition, True, already.
    `number` comes back in the EvictResult.
    """

    number: int
    pod: PodRef
    preemptor: PodRef
    node_name: str
    scheduler_name: str
    generation: int = 0
    is_marked: bool = False


class Drain(Message, frozen=True):
    """Answer with Drained once all that came before is done."""

    number: int


class Ping(Message, frozen=True):
    """Answer with Pong at once: the process goes on."""


class BindResult(Message, frozen=True):
    """How one bind ended. `node_name` is where the Pod is (the node asked for, where that isn't known).

    `code` is the last HTTP status, 0 when no answer came; `duration_s` runs from receipt to end, retries included.
    """

    uid: str
    outcome: Outcome
    node_name: str
    code: int
    message: str
    duration_s: float


class PatchResult(Message, frozen=True):
    """How one patch ended. deleted: the Pod is gone, or another of that name. expired, failed: as with binds.

    `resource_version` is that of the object after a WriteRequest.
    """

    number: int
    outcome: Literal["patched", "deleted", "expired", "failed"]
    message: str = ""
    resource_version: str = ""


class EvictResult(Message, frozen=True):
    """How one eviction ended. gone: the Pod was gone before, or is another of that name. Others: as with binds."""

    number: int
    outcome: Literal["evicted", "gone", "expired", "failed"]
    message: str = ""


class RequestsDone(Message, frozen=True):
    """Finished HTTP requests of one verb and status code (`<error>` when no answer came), in seconds each."""

    verb: str
    code: str
    durations_s: list[float]
    cluster: str = ""


class EventsDropped(Message, frozen=True):
    """Events given up since the last such message, because the queue was full or the API server refused them."""

    count: int


class CredentialsRefused(Message, frozen=True):
    """The API server answered 401 to this header; NewCredentials are awaited."""

    header: str | None
    cluster: str = ""

    __repr__ = _without_header


class LogLine(Message, frozen=True):
    """Something to log, in the parent's format; `level` as in `logging`."""

    level: int
    text: str


class Drained(Message, frozen=True):
    number: int


class Pong(Message, frozen=True):
    pass


ToChild = (
    BinderConnection
    | NewCredentials
    | LeaseUntil
    | BindRequest
    | PatchRequest
    | WriteRequest
    | EvictRequest
    | FailureReport
    | EventRequest
    | Drain
    | Ping
)
FromChild = (
    BindResult
    | PatchResult
    | EvictResult
    | RequestsDone
    | EventsDropped
    | CredentialsRefused
    | LogLine
    | Drained
    | Pong
)

_UNSOUND = (TypeError, ValueError, OverflowError, RecursionError)
"""What encoding and decoding raise: text that is none, a number or a nesting beyond what fits, another type."""

_LENGTH = struct.Struct(">I")
LENGTH_BYTES = _LENGTH.size

_encoder = msgspec.msgpack.Encoder()
_to_child: msgspec.msgpack.Decoder[list[ToChild]] = msgspec.msgpack.Decoder(list[ToChild])
_from_child: msgspec.msgpack.Decoder[list[FromChild]] = msgspec.msgpack.Decoder(list[FromChild])


def encode(messages: Sequence[ToChild] | Sequence[FromChild]) -> bytes:
    """Return one frame: four bytes of length, then the messages."""
    body = _encoder.encode(messages)
    return _LENGTH.pack(len(body)) + body


def encode_requests(requests: Sequence[ToChild]) -> tuple[bytes, list[FromChild]]:
    """Return one frame of the requests that can be sent, and for each other one how it ended: it failed, unsent.

    Plugins put values of their own into annotations. One that the child could not read would end it.
    """
    try:
        frame = encode(requests)
        if any(isinstance(one, BindRequest | PatchRequest) and one.annotations for one in requests):
            decode_to_child(frame[LENGTH_BYTES:])
    except _UNSOUND:
        faults = [(one, _fault_of(one)) for one in requests]
        ends = [_end_of(one, f"the request cannot be sent: {fault}") for one, fault in faults if fault]
        return encode([one for one, fault in faults if not fault]), ends
    return frame, []


def encode_results(results: Sequence[FromChild]) -> bytes:
    """Return one frame. Characters that cannot be sent are replaced: what waits for a lost result waits for ever."""
    try:
        return encode(results)
    except UnicodeEncodeError:
        return encode([_with_sendable_text(one) for one in results])


def _fault_of(request: ToChild) -> str:
    try:
        decode_to_child(_encoder.encode([request]))
    except _UNSOUND as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _end_of(request: ToChild, why: str) -> FromChild:
    match request:
        case BindRequest():
            return BindResult(
                uid=request.pod.uid, outcome="failed", node_name=request.node_name, code=0, message=why, duration_s=0.0
            )
        case PatchRequest() | WriteRequest():
            return PatchResult(number=request.number, outcome="failed", message=why)
        case EvictRequest():
            return EvictResult(number=request.number, outcome="failed", message=why)
        case FailureReport() | EventRequest():
            return EventsDropped(count=1)
    return LogLine(level=logging.ERROR, text=f"binder: {type(request).__name__}: {why}")


def _with_sendable_text(result: FromChild) -> FromChild:
    texts = {name: value for name in result.__struct_fields__ if isinstance(value := getattr(result, name), str)}
    sendable = {name: text.encode("utf-8", "replace").decode() for name, text in texts.items()}
    return msgspec.structs.replace(result, **sendable)


def frame_length(prefix: bytes) -> int:
    return int(_LENGTH.unpack(prefix)[0])


def decode_to_child(body: bytes) -> list[ToChild]:
    return _to_child.decode(body)


def decode_from_child(body: bytes) -> list[FromChild]:
    return _from_child.decode(body)
