"""What may be wrong with a signal: one closed list of names for `/metrics`, the log and `vane top`.

| problem | what has happened |
|---|---|
| `unreachable` | the server refuses connections, has no address, or the connection was interrupted |
| `certificate` | the two sides do not trust each other's certificates |
| `timeout` | no complete answer in time: the query hangs, or the server sends too slowly or aborts the query |
| `server_error` | HTTP 5xx of a server or proxy with an error of its own |
| `unauthorized` | HTTP 401 or 403: another token, user or tenant is required |
| `rejected` | the server answers that it cannot evaluate the query |
| `redirect` | the address answers with another address |
| `credentials` | the token, password or key file cannot be used |
| `bad_answer` | an incomplete answer, or one that is not from Prometheus |
| `result_type` | no vector, or a scalar where series must name nodes |
| `too_much` | more series or bytes than are allowed |
| `other` | a fault of Vane's own; the log has it |
| `warnings` | the server says that the answer is partial |
| `empty` | an answer without series |
| `partial` | far fewer nodes than before |
| `unmapped` | series, but none of a known node or domain |
| `stale` | some or all samples are older than the signal's `max_age`, or much older than those of other nodes |
| `duplicate` | several series of one node and no `reduce` |
| `nan`, `inf`, `parse`, `range` | some or all samples are no number, infinite, unreadable, out of range |
| `clock_skew` | the server's clock is far from ours; ages are right, because they do not use it |

`vane_signal_problem` has the worst of the last answer: one series per signal, and none for a healthy signal.
`vane_signal_query_errors_total` counts the first twelve by cause: `timeout`; else `server` (unreachable,
server_error, bad_answer), `access` (certificate, unauthorized, redirect, credentials), `query` (rejected, result_type,
too_much), `other`. `vane_signal_samples_dropped_total` counts samples by the reasons of the last rows.

The first twelve mean that there is no answer: what was published before stays in force until it is too old. With
`warnings` and `partial` a good answer stays in force, too, and valves are open. All others are of samples: their
nodes have no value, or with `stale` one that fades.
"""

from __future__ import annotations

import enum
from typing import Final

from scheduler.signals.answers import Drops, SignalAnswer


class SignalProblem(enum.StrEnum):
    """Values of the metric label `problem`."""

    UNREACHABLE = "unreachable"
    CERTIFICATE = "certificate"
    TIMEOUT = "timeout"
    SERVER_ERROR = "server_error"
    UNAUTHORIZED = "unauthorized"
    REJECTED = "rejected"
    REDIRECT = "redirect"
    CREDENTIALS = "credentials"
    BAD_ANSWER = "bad_answer"
    RESULT_TYPE = "result_type"
    TOO_MUCH = "too_much"
    OTHER = "other"
    WARNINGS = "warnings"
    EMPTY = "empty"
    PARTIAL = "partial"
    UNMAPPED = "unmapped"
    STALE = "stale"
    DUPLICATE = "duplicate"
    NAN = "nan"
    INF = "inf"
    PARSE = "parse"
    RANGE = "range"
    CLOCK_SKEW = "clock_skew"


class MissingReason(enum.StrEnum):
    """Why a node has no value."""

    NO_ANSWER = "no_answer"
    """There never was an answer."""
    TOO_OLD = "too_old"
    """The whole signal is absent: the last answer is older than `max_age`."""
    NO_SERIES = "no_series"
    STALE = "stale"
    DUPLICATE = "duplicate"
    NAN = "nan"
    INF = "inf"
    PARSE = "parse"
    RANGE = "range"
    UNKNOWN = "unknown"
    """It had none in the answer that is in force, which is not the last one."""


_CONCERNS: Final = {
    SignalProblem.TIMEOUT: "timeout",
    SignalProblem.UNREACHABLE: "server",
    SignalProblem.SERVER_ERROR: "server",
    SignalProblem.BAD_ANSWER: "server",
    SignalProblem.CERTIFICATE: "access",
    SignalProblem.UNAUTHORIZED: "access",
    SignalProblem.REDIRECT: "access",
    SignalProblem.CREDENTIALS: "access",
    SignalProblem.REJECTED: "query",
    SignalProblem.RESULT_TYPE: "query",
    SignalProblem.TOO_MUCH: "query",
}

CLOCK_SKEW_S: Final = 30.0
"""How far the server's clock may be from ours before it is reported."""

_OF_SAMPLES: Final = (
    SignalProblem.STALE,
    SignalProblem.DUPLICATE,
    SignalProblem.NAN,
    SignalProblem.INF,
    SignalProblem.PARSE,
    SignalProblem.RANGE,
)

_WORDS: Final = {
    SignalProblem.WARNINGS: "warnings in the answer",
    SignalProblem.EMPTY: "no series; does Prometheus have these metrics?",
    SignalProblem.PARTIAL: "far fewer nodes than before",
    SignalProblem.UNMAPPED: "series, but none names a known node or domain",
    SignalProblem.STALE: "samples that are too old",
    SignalProblem.DUPLICATE: "several series of one node; write `reduce`, or aggregate in the query",
    SignalProblem.NAN: "samples that are NaN",
    SignalProblem.INF: "samples that are infinite",
    SignalProblem.PARSE: "samples that are not numbers",
    SignalProblem.RANGE: "samples outside `range`",
    SignalProblem.CLOCK_SKEW: "the server's clock is far from ours",
}


def problems_of(answer: SignalAnswer) -> tuple[SignalProblem, ...]:
    """Return what is wrong with an answer, the gravest first; nothing if it is healthy.

    Series without a known node are not a problem as long as others map: Prometheus often measures more machines
    than those of the cluster.
    """
    if answer.error:
        return (_kind(answer.error_kind),)
    found: list[SignalProblem] = []
    if answer.warnings:
        found.append(SignalProblem.WARNINGS)
    if not answer.n_series:
        found.append(SignalProblem.EMPTY)
    elif answer.is_suspect and not answer.warnings:
        found.append(SignalProblem.PARTIAL)
    dropped = [problem for problem in _OF_SAMPLES if _n_dropped(answer.drops, problem)]
    if answer.lag_by_key and SignalProblem.STALE not in dropped:
        dropped.insert(0, SignalProblem.STALE)
    if answer.n_series and not answer.n_mapped and answer.drops.unmapped and not dropped:
        found.append(SignalProblem.UNMAPPED)
    found += dropped
    if abs(answer.clock_skew_s) > CLOCK_SKEW_S:
        found.append(SignalProblem.CLOCK_SKEW)
    return tuple(found)


def is_grave(problem: SignalProblem, answer: SignalAnswer) -> bool:
    """Whether the signal as a whole is not healthy; else only some of its nodes have no value."""
    if problem in _OF_SAMPLES and problem is not SignalProblem.DUPLICATE:
        return not answer.n_mapped
    return problem is not SignalProblem.CLOCK_SKEW


def words_of(problem: SignalProblem) -> str:
    """Return the problem in words without changing numbers."""
    return _WORDS.get(problem) or f"no answer ({problem.value})"


def concern_of(error_kind: str) -> str:
    """Return the cause by which a failed query is counted."""
    return _CONCERNS.get(_kind(error_kind), "other")


def _kind(error_kind: str) -> SignalProblem:
    return SignalProblem(error_kind) if error_kind in set(SignalProblem) else SignalProblem.OTHER


def _n_dropped(drops: Drops, problem: SignalProblem) -> int:
    n_dropped: int = getattr(drops, problem.value)
    return n_dropped
