"""One HTTP/1 response, from bytes as they come."""

from __future__ import annotations

from typing import NamedTuple

from scheduler.errors import VaneError

_MAX_HEAD_BYTES = 65_536


class BrokenError(VaneError):
    """The connection was lost, or what came over it is not HTTP."""


class Response(NamedTuple):
    code: int
    body: bytes
    retry_after: str | None


class ResponseReader:
    """Puts one response together from the bytes as they come."""

    def __init__(self, is_bodiless: bool = False) -> None:
        self._is_bodiless = is_bodiless
        self._buffer = bytearray()
        self._head: bytes | None = None
        self._length: int | None = 0
        self._chunks: list[bytes] | None = None
        self.keeps_open = True

    def feed(self, data: bytes) -> Response | None:
        """Take bytes in; return the response once it is whole.

        Raises
        ------
        BrokenError
            It is none, or more came than belongs to it.
        """
        self._buffer += data
        if self._head is None and not self._read_head():
            return None
        body = self._read_chunks() if self._chunks is not None else self._read_counted()
        if body is None:
            return None
        if self._buffer:
            raise BrokenError("the server sent more than one response")
        return self._response(body)

    def ended(self) -> Response | None:
        """Return the response whose end is that of the connection; None if this was not to be."""
        if self._head is None or self._length is not None or self._chunks is not None:
            return None
        return self._response(bytes(self._buffer))

    def _response(self, body: bytes) -> Response:
        head = self._head or b""
        retry_after = _field(head, b"retry-after")
        return Response(int(head[9:12]), body, None if retry_after is None else retry_after.decode("latin-1"))

    def _read_head(self) -> bool:
        while True:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                if len(self._buffer) > _MAX_HEAD_BYTES:
                    raise BrokenError("the head of the response does not end")
                return False
            # In lower case, for names and the values read here ignore case; the line end is kept for the last field.
            head = bytes(self._buffer[: end + 2]).lower()
            del self._buffer[: end + 4]
            if not (head.startswith(b"http/1.") and head[9:12].isdigit()):
                raise BrokenError("the server did not send an HTTP/1 response")
            if not head.startswith(b"1", 9):
                break
        self._head = head
        self._take_framing(head)
        return True

    def _take_framing(self, head: bytes) -> None:
        self.keeps_open = head.startswith(b"http/1.1") and _field(head, b"connection") != b"close"
        length = _field(head, b"content-length")
        if _field(head, b"transfer-encoding") == b"chunked" and not self._is_bodiless:
            self._chunks = []
        elif self._is_bodiless or head[9:12] in (b"204", b"304"):
            self._length = 0
        elif length is None:
            self._length = None
        elif length.isdigit():
            self._length = int(length)
        else:
            raise BrokenError("the response has no readable length")

    def _read_counted(self) -> bytes | None:
        if self._length is None or len(self._buffer) < self._length:
            return None
        body = bytes(self._buffer[: self._length])
        del self._buffer[: self._length]
        return body

    def _read_chunks(self) -> bytes | None:
        buffer, chunks = self._buffer, self._chunks or []
        self._chunks = chunks
        while (end := buffer.find(b"\r\n")) >= 0:
            try:
                size = int(buffer[:end].partition(b";")[0], 16)
            except ValueError as error:
                raise BrokenError("a chunk has no readable length") from error
            if size == 0:
                # The API server sends no trailers.
                if len(buffer) < end + 4:
                    return None
                del buffer[: end + 4]
                return b"".join(chunks)
            if len(buffer) < end + 2 + size + 2:
                return None
            chunks.append(bytes(buffer[end + 2 : end + 2 + size]))
            del buffer[: end + 2 + size + 2]
        return None


def _field(head: bytes, name: bytes) -> bytes | None:
    """Return the value of a header field, the first of that name, from a head in lower case."""
    start = head.find(b"\r\n" + name + b":")
    if start < 0:
        return None
    start += len(name) + 3
    return head[start : head.index(b"\r\n", start)].strip()
