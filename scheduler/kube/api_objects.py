"""What several readers take from the API server's answers: list and object metadata, and the Status of an error."""

from __future__ import annotations

import msgspec

from scheduler.model.structs import MALFORMED_JSON

_SHOWN_BYTES = 200


class ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    """The metadata of a page of a list; `continue_` is the token of the next page, "" on the last one."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class BriefMeta(msgspec.Struct, frozen=True, rename="camel"):
    """The metadata of an object, of which only this is needed: the rest is skipped unread."""

    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None


class _Details(msgspec.Struct, frozen=True, rename="camel"):
    retry_after_seconds: float = 0


class ApiStatus(msgspec.Struct, frozen=True, rename="camel"):
    """What is read of a Status; all of it may be missing."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: _Details | None = None

    @property
    def retry_after_s(self) -> float:
        """How long the server asks to wait, 0 where it does not say."""
        return self.details.retry_after_seconds if self.details else 0.0


_decoder = msgspec.json.Decoder(ApiStatus)


def decode_status(raw: bytes | msgspec.Raw) -> ApiStatus | None:
    """Return the Status, None for anything else."""
    try:
        return _decoder.decode(raw)
    except MALFORMED_JSON:
        return None


def status_of(body: bytes) -> ApiStatus:
    """Return the Status in the body of an error; of another body, as proxies send, its start is the message."""
    return decode_status(body) or ApiStatus(message=body[:_SHOWN_BYTES].decode("utf-8", "replace"))
