"""Why a query has no answer, as a tree.

QueryError
├── PrometheusUnreachable   refused, no such host, TLS does not agree, connection cut
├── QueryTimeout            no answer within the time that a query may take
├── QueryRejected           an HTTP status other than 200, with Prometheus' own words where it sent some
├── RedirectRefused         the address answers with another address
├── CredentialsUnreadable   the token file cannot be read or holds no token
├── BadAnswer               not what the API of Prometheus answers
├── WrongResultType         an answer, but no vector and no scalar
└── TooMuchData             more series or bytes than are allowed
"""

from __future__ import annotations

from typing import ClassVar, Final

from scheduler.errors import VaneError

_STATUS_OF_AN_ABSENT_SERVER: Final = frozenset({502, 503, 504})
_ERRORS_OF_A_LIVING_SERVER: Final = frozenset({"timeout", "canceled", "execution", "bad_data"})


class QueryError(VaneError):
    """Base; `kind` is the value of the metric label `error`, from a small fixed set."""

    kind: ClassVar[str] = "other"

    @property
    def is_outage(self) -> bool:
        """Whether it speaks of the server rather than of this query."""
        return False


class PrometheusUnreachable(QueryError):
    kind = "unreachable"

    @property
    def is_outage(self) -> bool:
        return True


class QueryTimeout(QueryError):
    kind = "timeout"

    @property
    def is_outage(self) -> bool:
        return True


class QueryRejected(QueryError):
    """`error_type` and `error` are Prometheus' own, empty where a proxy answered in its place."""

    kind = "status"

    def __init__(self, status: int, error_type: str, error: str) -> None:
        self.status = status
        self.error_type = error_type
        self.error = error
        said = f"{error_type}: {error}" if error_type else error
        super().__init__(f"HTTP {status}" + (f", {said}" if said else ""))

    @property
    def is_outage(self) -> bool:
        return self.status in _STATUS_OF_AN_ABSENT_SERVER and self.error_type not in _ERRORS_OF_A_LIVING_SERVER


class RedirectRefused(QueryError):
    kind = "redirect"


class CredentialsUnreadable(QueryError):
    kind = "credentials"


class BadAnswer(QueryError):
    kind = "bad_answer"


class WrongResultType(QueryError):
    kind = "result_type"


class TooMuchData(QueryError):
    kind = "too_much"
