"""Requests and answers of Prometheus' query API as text: times and durations in, JSON out."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import numpy as np

from scheduler.evaluator.values import (
    Labels,
    PromQLError,
    PromQLSyntaxError,
    QueryTimeoutError,
    Scalar,
    Vector,
)

TRUNCATED: Final = "results truncated due to limit"

# Numbers outside are written with an exponent.
_LEAST_PLAIN: Final = 1e-6
_LEAST_TOO_LARGE: Final = 1e21
_UNIT_MS: Final = {
    "y": 31_536_000_000,
    "w": 604_800_000,
    "d": 86_400_000,
    "h": 3_600_000,
    "m": 60_000,
    "s": 1000,
    "ms": 1,
}
_DURATION: Final = re.compile("".join(rf"(?:(?P<{unit}>\d+){unit})?" for unit in _UNIT_MS))


class BadParameterError(ValueError):
    """A parameter of a request that cannot be used; the text is Prometheus'."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f'invalid parameter "{name}": {problem}')


def parse_time_ms(name: str, text: str) -> int:
    """Return Unix milliseconds of seconds or RFC 3339."""
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = datetime.fromisoformat(text).timestamp()
        except ValueError:
            raise BadParameterError(name, f'cannot parse "{text}" to a valid timestamp') from None
    if not math.isfinite(seconds):
        raise BadParameterError(name, f'cannot parse "{text}" to a valid timestamp')
    return round(seconds * 1000)


def parse_duration_ms(name: str, text: str) -> int:
    """Return milliseconds of seconds or a duration as `1h30m`."""
    try:
        seconds = float(text)
    except ValueError:
        match = _DURATION.fullmatch(text)
        if not text or match is None:
            raise BadParameterError(name, f'cannot parse "{text}" to a valid duration') from None
        return sum(int(count) * _UNIT_MS[unit] for unit, count in match.groupdict().items() if count)
    if not math.isfinite(seconds):
        raise BadParameterError(name, f'cannot parse "{text}" to a valid duration')
    return int(seconds * 1000)


def parse_limit(text: str) -> int:
    """Return how many series are wanted at most, 0 for all."""
    if not text:
        return 0
    if not re.fullmatch(r"[+-]?\d+", text):
        raise BadParameterError("limit", f'cannot parse "{text}" to a valid limit')
    if int(text) < 0:
        raise BadParameterError("limit", "limit must be non-negative")
    return int(text)


def number_text(value: float) -> str:
    """Return a number as Prometheus writes it: the shortest that reads back the same."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value and not _LEAST_PLAIN <= abs(value) < _LEAST_TOO_LARGE:
        return repr(value)
    return np.format_float_positional(value, trim="-")


def instant_answer(result: Vector | Scalar, at_ms: int, limit: int) -> dict[str, Any]:
    """Return the answer to an instant query; every sample bears the time of evaluation."""
    at_s = _seconds(at_ms)
    if isinstance(result, Scalar):
        return _success({"resultType": "scalar", "result": [at_s, number_text(result.value)]}, result.warnings)
    n = min(limit, len(result)) if limit else len(result)
    warnings = [*result.warnings, *([TRUNCATED] if n < len(result) else [])]
    series = [
        {"metric": dict(labels), "value": [at_s, number_text(value)]}
        for labels, value in zip(result.labels[:n], result.values[:n].tolist(), strict=True)
    ]
    return _success({"resultType": "vector", "result": series}, warnings)


def range_answer(
    series: Sequence[tuple[Labels, Iterable[tuple[int, float]]]], warnings: Iterable[str], limit: int
) -> dict[str, Any]:
    """Return the answer to a range query: per series its points as (Unix milliseconds, value)."""
    n = min(limit, len(series)) if limit else len(series)
    said = [*warnings, *([TRUNCATED] if n < len(series) else [])]
    result = [
        {"metric": dict(labels), "values": [[_seconds(at_ms), number_text(value)] for at_ms, value in points]}
        for labels, points in series[:n]
    ]
    return _success({"resultType": "matrix", "result": result}, said)


def plain_answer(data: Any) -> dict[str, Any]:
    return _success(data, ())


def failure(error: PromQLError | BadParameterError) -> tuple[int, dict[str, Any]]:
    """Return the HTTP status and the answer that says what is wrong."""
    if isinstance(error, BadParameterError):
        return 400, failure_answer("bad_data", str(error))
    if isinstance(error, PromQLSyntaxError):
        return 400, failure_answer("bad_data", str(BadParameterError("query", str(error))))
    if isinstance(error, QueryTimeoutError):
        return 503, failure_answer("timeout", str(error))
    return 422, failure_answer("execution", str(error))


def failure_answer(error_type: str, text: str) -> dict[str, Any]:
    return {"status": "error", "errorType": error_type, "error": text}


def encode(answer: Mapping[str, Any]) -> bytes:
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode()


def _success(data: Any, warnings: Iterable[str]) -> dict[str, Any]:
    said = list(warnings)
    return {"status": "success", "data": data, **({"warnings": said} if said else {})}


def _seconds(at_ms: int) -> float:
    return at_ms / 1000
