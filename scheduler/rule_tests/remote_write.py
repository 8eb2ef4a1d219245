"""Samples as Prometheus' remote write takes them: protobuf in Snappy's block format, both written by hand.

The only way in that keeps stale markers, which the text of OpenMetrics cannot say.

Source: the specification of Prometheus Remote-Write 1.0 and format_description.txt of Snappy.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from scheduler.evaluator.values import Labels
from scheduler.rule_tests.model import InputSeries

HEADERS: Final = {
    "Content-Type": "application/x-protobuf",
    "Content-Encoding": "snappy",
    "X-Prometheus-Remote-Write-Version": "0.1.0",
}
# A Prometheus refuses samples older than half a block behind the newest: time is told piece by piece.
_PIECE_S: Final = 600.0
_CHUNK: Final = 1 << 16
_LITERAL_OF_TWO_BYTES: Final = 61 << 2


def write_requests(series: Sequence[InputSeries]) -> Iterator[bytes]:
    """Yield the bodies to be sent one after the other."""
    end_s = max((at_s for one in series for at_s, _ in one.samples), default=-1.0)
    for piece in range(int(end_s // _PIECE_S) + 1):
        parts = []
        for one in series:
            samples = [(round(at_s * 1000), value) for at_s, value in one.samples if at_s // _PIECE_S == piece]
            if samples:
                parts.append((one.labels, samples))
        if parts:
            yield write_request(parts)


def write_request(series: Iterable[tuple[Labels, Iterable[tuple[int, float]]]]) -> bytes:
    """Return the body for series with their samples as (Unix milliseconds, value)."""
    return _snappy(b"".join(_field(1, _series(labels, samples)) for labels, samples in series))


def _series(labels: Labels, samples: Iterable[tuple[int, float]]) -> bytes:
    named = [_field(1, _field(1, name.encode()) + _field(2, labels[name].encode())) for name in sorted(labels)]
    timed = [_field(2, b"\x09" + struct.pack("<d", value) + b"\x10" + _varint(at_ms)) for at_ms, value in samples]
    return b"".join((*named, *timed))


def _field(number: int, body: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(body)) + body


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _snappy(data: bytes) -> bytes:
    """Return `data` as a Snappy block of literals only."""
    chunks = [data[i : i + _CHUNK] for i in range(0, len(data), _CHUNK)]
    literals = [bytes([_LITERAL_OF_TWO_BYTES]) + struct.pack("<H", len(chunk) - 1) + chunk for chunk in chunks]
    return _varint(len(data)) + b"".join(literals)
