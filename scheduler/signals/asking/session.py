"""The HTTP session under the Prometheus client: bounded in time, size and reach.

What `requests` and `prometheus-api-client` do by default and this session does not: wait for ever, follow
redirects with our token in hand, read proxies and passwords from the environment, keep cookies, put a POST's
query into the URL, and drop the warnings of an answer.
"""

from __future__ import annotations

import email.utils
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import urlencode, urlsplit, urlunsplit

import msgspec
import requests
import urllib3.exceptions
from urllib3 import Timeout

from scheduler.model.structs import MALFORMED_JSON
from scheduler.signals.asking.credentials import Access, Authorization, PrometheusConnections
from scheduler.signals.asking.query_errors import (
    BadAnswer,
    CertificateRefused,
    CredentialsUnreadable,
    PrometheusUnreachable,
    QueryRejected,
    QueryTimeout,
    RedirectRefused,
    TooMuchData,
    WrongResultType,
    rejection,
)

_CHUNK_BYTES: Final = 1 << 18
_SERIES: Final = b'{"metric":{'
"""How a series begins; no text within one looks so, as its quotes are escaped."""
_LEAST_BYTES: Final = len(b'{"metric":{},"value":[0,"0"]}')
"""No series is written in fewer."""
# RFC 9110, 5.5: what stands before and after a value is no part of it.
_HEADER_VALUE: Final = re.compile(r"(?:[!-~\x80-\xff](?:[\t -~\x80-\xff]*[!-~\x80-\xff])?)?")
_ALERT: Final = re.compile(r"ALERT_(CERTIFICATE_REQUIRED|UNKNOWN_CA|BAD_CERTIFICATE|CERTIFICATE_\w+|ACCESS_DENIED)")


class ResultSeries(msgspec.Struct, gc=False):
    """One element of a vector: its labels, and its time with its value, a number or the text of what may be one.

    A native histogram has no `value`.
    """

    metric: dict[str, str] = {}
    value: tuple[float, float | str] | None = None


class ReadSeries(ResultSeries, gc=False):
    """One whose value has been read with its answer."""

    value: tuple[float, float] | None = None


class QueryAnswer(msgspec.Struct, gc=False):
    """What Prometheus answered, as it said it; a scalar is one series without labels.

    `server_date_s` is the header Date, Unix seconds rounded down, None without one. `n_samples` is how many samples the
    query read, None where the server was not asked or does not say.
    """

    result_type: str
    series: list[ResultSeries]
    warnings: tuple[str, ...] = ()
    server_date_s: float | None = None
    n_samples: int | None = None


class _Data(msgspec.Struct):
    result: msgspec.Raw
    result_type: str = msgspec.field(name="resultType")
    stats: msgspec.Raw = msgspec.Raw(b"null")


class _Samples(msgspec.Struct, frozen=True, rename="camel"):
    total_queryable_samples: int | None = None


class _Stats(msgspec.Struct, frozen=True):
    samples: _Samples = _Samples()


class _AnswerEnvelope(msgspec.Struct):
    status: str
    data: _Data | None = None
    error_type: str = msgspec.field(name="errorType", default="")
    error: str = ""
    warnings: tuple[str, ...] | None = None
    is_partial: bool = msgspec.field(name="isPartial", default=False)
    """Of a cluster of VictoriaMetrics, which says so in no warning."""


class _VectorData(msgspec.Struct):
    result: list[ReadSeries]
    result_type: Literal["vector"] = msgspec.field(name="resultType")
    stats: msgspec.Raw = msgspec.Raw(b"null")


class _VectorEnvelope(msgspec.Struct):
    """A good answer with a vector, which most are, read in one go; twice as fast as reading numbers from text later.

    It reads fewer texts as numbers than Prometheus writes, and no other.
    """

    status: Literal["success"]
    data: _VectorData
    warnings: tuple[str, ...] | None = None
    is_partial: bool = msgspec.field(name="isPartial", default=False)


_ENVELOPE: Final = msgspec.json.Decoder(_AnswerEnvelope)
_VECTOR_ENVELOPE: Final = msgspec.json.Decoder(_VectorEnvelope, strict=False)
_VECTOR: Final = msgspec.json.Decoder(list[ResultSeries])
_SCALAR: Final = msgspec.json.Decoder(tuple[float, str])


@dataclass(frozen=True, slots=True)
class Bounds:
    """How long and how large one query may be.

    `read_s` bounds each silence of the server, `deadline_s` the answer as a whole: the two together at most.
    """

    connect_s: float = 1.0
    read_s: float = 5.0
    deadline_s: float = 6.0
    max_bytes: int = 64 << 20
    max_series: int = 100_000


class PrometheusResponse(requests.Response):
    """A response whose `json()` is typed, in the nesting in which prometheus-api-client looks for a result."""

    def json(self, **_options: Any) -> Any:
        return {"data": {"result": parse_answer(self.content, self.headers.get("Date", ""))}}


class PrometheusSession(requests.Session):
    """A session for one Prometheus, shared by threads.

    Straight on urllib3's connections: what `requests` does for one request takes as long as all of that.
    """

    def __init__(self, access: Access, bounds: Bounds, clock: Callable[[], float], n_connections: int) -> None:
        super().__init__()
        self._headers = {
            "Accept-Encoding": "identity",
            "User-Agent": "vane",
            **access.headers,
            "Content-Type": "application/x-www-form-urlencoded",
        }
        self._authorization = Authorization(access, clock)
        self._connections = PrometheusConnections(access, n_connections)
        self._bounds = bounds
        self._timeout = Timeout(connect=bounds.connect_s, read=bounds.read_s)
        self._clock = clock

    def close(self) -> None:
        super().close()
        self._connections.close()

    def request(self, method: str | bytes, url: str | bytes, *_args: Any, **options: Any) -> requests.Response:
        """Ask with the parameters in the form body and the whole answer read.

        Raises
        ------
        QueryError
            For every answer other than 200, and for none.
        """
        address, form = str(url), urlencode(options.get("params") or {})
        response = self._send_bounded(address, form)
        if response.status_code == requests.codes.unauthorized and self._authorization.reread():
            response = self._send_bounded(address, form)
        if 300 <= response.status_code < 400:
            target = _without_secrets(response.headers.get("Location", ""))
            raise RedirectRefused(f"HTTP {response.status_code}, redirected to {target!r}; write that address instead")
        if response.status_code != requests.codes.ok:
            raise _rejection(response)
        return response

    def _send_bounded(self, url: str, form: str) -> PrometheusResponse:
        headers = self._headers | self._authorization.header()
        if not all(map(_HEADER_VALUE.fullmatch, headers.values())):
            # Not shown: it may be a password.
            raise CredentialsUnreadable("a header's value is not valid in HTTP")
        deadline_s = self._clock() + self._bounds.deadline_s
        try:
            return self._exchanged(url, form, headers, deadline_s)
        except urllib3.exceptions.NewConnectionError as error:
            raise PrometheusUnreachable(_root(error)) from error
        except urllib3.exceptions.TimeoutError as error:
            raise QueryTimeout(f"no answer within {self._bounds.read_s:g} s: {_root(error)}") from error
        except urllib3.exceptions.SSLError as error:
            raise CertificateRefused(_certificate_words(_root(error))) from error
        except urllib3.exceptions.HTTPError as error:
            raise PrometheusUnreachable(_root(error)) from error

    def _exchanged(self, url: str, form: str, headers: Mapping[str, str], deadline_s: float) -> PrometheusResponse:
        response = self._connections.pool(url).urlopen(
            "POST",
            urlsplit(url).path,
            body=form,
            headers=headers,
            retries=False,
            redirect=False,
            timeout=self._timeout,
            preload_content=False,
        )
        try:
            body = self._read(response, deadline_s)
        except BaseException:
            response.close()  # what is left of the answer must not be taken for the next
            raise
        finally:
            response.release_conn()
        answer = PrometheusResponse()
        answer.status_code, answer.reason = response.status, response.reason or ""
        answer.headers.update({name: response.headers.get(name, "") for name in ("Date", "Location")})
        answer.__dict__.update(_content=body, _content_consumed=True)
        return answer

    def _read(self, response: urllib3.BaseHTTPResponse, deadline_s: float) -> bytes:
        """Read piece by piece: the timeout bounds each piece only, so a slow server could hold us for ever."""
        pieces: list[bytes] = []
        n_bytes = n_series = n_counted = 0
        while piece := response.read1(_CHUNK_BYTES, decode_content=True):
            pieces.append(piece)
            n_bytes += len(piece)
            if n_bytes > self._bounds.max_bytes:
                raise TooMuchData(f"an answer of more than {self._bounds.max_bytes} bytes; aggregate in the query")
            # Before they are decoded: objects take far more memory than their text.
            if n_bytes > _LEAST_BYTES * self._bounds.max_series:
                n_series += sum(one.count(_SERIES) for one in pieces[n_counted:])
                n_counted = len(pieces)
            if n_series > self._bounds.max_series:
                raise TooMuchData(f"more than {self._bounds.max_series} series; aggregate in the query")
            if self._clock() > deadline_s:
                raise QueryTimeout(f"the answer was not complete within {self._bounds.deadline_s:g} s")
        return b"".join(pieces)


def parse_answer(body: bytes, date: str = "") -> QueryAnswer:
    """Return the typed answer of `/api/v1/query`.

    Raises
    ------
    BadAnswer
        Not JSON, cut off, or not of Prometheus' form.
    WrongResultType
        A matrix or a string.
    """
    try:
        whole = _VECTOR_ENVELOPE.decode(body)
    except MALFORMED_JSON:
        return _parse_other(body, date)
    series: list[Any] = whole.data.result
    return QueryAnswer("vector", series, _warnings(whole), _unix_seconds(date), _n_samples(whole.data.stats))


def _parse_other(body: bytes, date: str) -> QueryAnswer:
    """Return an answer of whatever kind, or raise what is wrong with it."""
    try:
        envelope = _ENVELOPE.decode(body)
        if envelope.status != "success" or envelope.data is None:
            raise BadAnswer(f"status {envelope.status!r}, {envelope.error_type}: {envelope.error}")
        kind = envelope.data.result_type
        if kind == "vector":
            series = _VECTOR.decode(envelope.data.result)
        elif kind == "scalar":
            series = [ResultSeries(value=_SCALAR.decode(envelope.data.result))]
        else:
            raise WrongResultType(f"got a {kind!r}; write an expression that gives one number per series")
    except MALFORMED_JSON as error:
        raise BadAnswer(f"not an answer of Prometheus: {error}; it begins {body[:60]!r}") from error
    return QueryAnswer(kind, series, _warnings(envelope), _unix_seconds(date), _n_samples(envelope.data.stats))


def _warnings(envelope: _AnswerEnvelope | _VectorEnvelope) -> tuple[str, ...]:
    return (envelope.warnings or ()) + (("the server says that its answer is partial",) if envelope.is_partial else ())


def _n_samples(stats: msgspec.Raw) -> int | None:
    try:
        found = msgspec.json.decode(stats, type=_Stats | None)
    except MALFORMED_JSON:
        return None  # of a form of its own; nothing depends on it
    return None if found is None else found.samples.total_queryable_samples


def _unix_seconds(date: str) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError):
        return None


def _rejection(response: requests.Response) -> QueryRejected:
    try:
        envelope = _ENVELOPE.decode(response.content)
    except MALFORMED_JSON:
        words = response.content[:120].decode(errors="replace").strip()
        return rejection(response.status_code, "", words or str(response.reason))
    return rejection(response.status_code, envelope.error_type, envelope.error[:500])


def _without_secrets(address: str) -> str:
    """Return an address without user, password and query, which may hold what lets in."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment=""))


def _certificate_words(reason: str) -> str:
    """Return which of the two sides does not trust the other, and what to fix."""
    if _ALERT.search(reason):
        return f"{reason}: the server requires another client certificate; fix certFile and keyFile"
    if "VERIFY_FAILED" in reason:
        return f"{reason}: the server's certificate is not trusted; set caFile to its authority"
    if "EOF" in reason:
        # The server closes a connection that it does not trust before we read the alert that says so.
        return f"{reason}: the server closed the connection; it may need another client certificate (certFile, keyFile)"
    return f"{reason}; see certFile, keyFile and caFile"


def _root(error: BaseException) -> str:
    """Return the innermost reason: the outer ones only repeat the URL."""
    reason: Any = error
    while True:
        inner = getattr(reason, "reason", None) or next(
            (arg for arg in reversed(getattr(reason, "args", ())) if isinstance(arg, Exception)), None
        )
        if not isinstance(inner, Exception) or inner is reason:
            return f"{type(reason).__name__}: {reason}"
        reason = inner
