"""A CloudEvent on its way to a receiver, in the form in which it crosses to the process that delivers it."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from scheduler.framework.instructions import Notify, Receiver

CONTENT_TYPE = "application/cloudevents+json; charset=utf-8"


class Event(msgspec.Struct, frozen=True):
    """What to tell whom; `data` is JSON."""

    receiver: Receiver
    id: str
    type: str
    subject: str
    data: bytes

    @classmethod
    def of(cls, notify: Notify) -> Event:
        """Make it of a plugin's instruction.

        Raises
        ------
        TypeError, ValueError
            Its data are not what JSON can hold.
        """
        return cls(notify.receiver, notify.id, notify.type, notify.subject, msgspec.json.encode(dict(notify.data)))


class _Envelope(msgspec.Struct, frozen=True):
    """The attributes of CloudEvents 1.0, in the JSON event format."""

    specversion: str
    id: str
    source: str
    type: str
    subject: str
    time: str
    datacontenttype: str
    data: msgspec.Raw


def encode(event: Event, source: str, time_ns: int) -> bytes:
    """Return the event as CloudEvents 1.0 structured JSON; `time_ns` is when it happened, since 1970."""
    seconds, rest = divmod(time_ns, 1_000_000_000)
    time = f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest // 1_000_000:03d}Z"
    envelope = _Envelope(
        "1.0", event.id, source, event.type, event.subject, time, "application/json", msgspec.Raw(event.data)
    )
    return msgspec.json.encode(envelope)
