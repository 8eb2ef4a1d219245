"""Why a query has no answer, as a tree.

QueryError
├── PrometheusUnreachable   refused, no such host, connection cut
│   └── CertificateRefused  the two sides do not trust each other
├── QueryTimeout            no answer within the time that a query may take
├── QueryRejected           an HTTP status other than 200, with Prometheus' own words where it sent some
│   ├── UnauthorizedError   401 or 403
│   ├── ServerFailed        5xx, and not by this query
│   └── QueryGivenUp        Prometheus itself ended it for its time
├── RedirectRefused         the address answers with another address
├── CredentialsUnreadable   the file of a token, password or certificate cannot be used
├── NotNarrowed             the server has matchers, and they cannot be added to the expression
├── BadAnswer               not what the API of Prometheus answers
├── WrongResultType         an answer, but no vector and no scalar
└── TooMuchData             more series or bytes than are allowed
"""

from __future__ import annotations

from typing import ClassVar, Final

from scheduler.errors import VaneError

_UNKNOWN_CALLER: Final = 401
_REFUSALS: Final = frozenset({_UNKNOWN_CALLER, 403})
_STATUS_OF_AN_ABSENT_SERVER: Final = frozenset({502, 503, 504})
_ERRORS_OF_A_LIVING_SERVER: Final = frozenset({"timeout", "canceled", "execution", "bad_data"})


class QueryError(VaneError):
    """Base; `kind` is one of `signals.problems.SignalProblem`, which metrics and the log name."""

    kind: ClassVar[str] = "other"

    @property
    def is_outage(self) -> bool:
        """Whether it speaks of the server, or of how we come to it, rather than of this query."""
        return False


class PrometheusUnreachable(QueryError):
    kind = "unreachable"

    @property
    def is_outage(self) -> bool:
        return True


class CertificateRefused(PrometheusUnreachable):
    kind = "certificate"


class QueryTimeout(QueryError):
    kind = "timeout"

    @property
    def is_outage(self) -> bool:
        return True


class QueryRejected(QueryError):
    """`error_type` and `error` are Prometheus' own, empty where a proxy answered in its place."""

    kind = "rejected"

    def __init__(self, status: int, error_type: str, error: str) -> None:
        self.status = status
        self.error_type = error_type
        self.error = error
        said = f"{error_type}: {error}" if error_type else error
        super().__init__(f"HTTP {status}" + (f", {said}" if said else ""))

    @property
    def is_outage(self) -> bool:
        return self.status in _STATUS_OF_AN_ABSENT_SERVER and self.error_type not in _ERRORS_OF_A_LIVING_SERVER


class UnauthorizedError(QueryRejected):
    kind = "unauthorized"

    @property
    def is_outage(self) -> bool:
        # A proxy may forbid one query; who does not know us knows us for no query.
        return self.status == _UNKNOWN_CALLER

    def __str__(self) -> str:
        return f"{super().__str__()}; it requires another token, user or tenant"


class ServerFailed(QueryRejected):
    kind = "server_error"


class QueryGivenUp(QueryRejected):
    kind = "timeout"


def rejection(status: int, error_type: str, error: str) -> QueryRejected:
    """Return the error that an HTTP status other than 200 stands for."""
    if status in _REFUSALS:
        return UnauthorizedError(status, error_type, error)
    if error_type == "timeout":
        return QueryGivenUp(status, error_type, error)
    if status >= 500 and error_type not in _ERRORS_OF_A_LIVING_SERVER:
        return ServerFailed(status, error_type, error)
    return QueryRejected(status, error_type, error)


class RedirectRefused(QueryError):
    kind = "redirect"

    @property
    def is_outage(self) -> bool:
        return True


class CredentialsUnreadable(QueryError):
    kind = "credentials"

    @property
    def is_outage(self) -> bool:
        return True


class NotNarrowed(QueryError):
    """Nothing was asked: the answer might have been that of another cluster."""

    kind = "rejected"


class BadAnswer(QueryError):
    kind = "bad_answer"


class WrongResultType(QueryError):
    kind = "result_type"


class TooMuchData(QueryError):
    kind = "too_much"
