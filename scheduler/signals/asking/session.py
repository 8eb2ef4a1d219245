"""The HTTP session under the Prometheus client: bounded in time, size and reach.

What `requests` and `prometheus-api-client` do by default and this session does not: wait for ever, follow
redirects with our token in hand, read proxies and passwords from the environment, put a POST's query into
the URL, and drop the warnings of an answer.
"""

from __future__ import annotations

import email.utils
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.cookiejar import DefaultCookiePolicy
from pathlib import Path
from typing import Any, Final

import msgspec
import requests
import urllib3.exceptions
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from scheduler.model.structs import MALFORMED_JSON
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

_CHUNK_BYTES: Final = 1 << 16
_TOKEN: Final = re.compile(r"[\x21-\x7e]+")
TOKEN_REREAD_S: Final = 60.0


class Series(msgspec.Struct, gc=False):
    """One element of a vector; a native histogram has no `value`."""

    metric: dict[str, str] = {}
    value: tuple[float, str] | None = None


class QueryAnswer(msgspec.Struct, gc=False):
    """What Prometheus answered, as it said it; a scalar is one series without labels.

    `server_date_s` is the header Date, Unix seconds rounded down, None without one.
    """

    result_type: str
    series: list[Series]
    warnings: tuple[str, ...] = ()
    server_date_s: float | None = None


class _Data(msgspec.Struct):
    result: msgspec.Raw
    result_type: str = msgspec.field(name="resultType")


class _Envelope(msgspec.Struct):
    status: str
    data: _Data | None = None
    error_type: str = msgspec.field(name="errorType", default="")
    error: str = ""
    warnings: tuple[str, ...] | None = None


_ENVELOPE: Final = msgspec.json.Decoder(_Envelope)
_VECTOR: Final = msgspec.json.Decoder(list[Series])
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


@dataclass(frozen=True, slots=True)
class Access:
    """With what to present ourselves, and whom to trust; `ca_file` replaces the system's authorities."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    bearer_token_file: Path | None = None
    ca_file: Path | None = None


class TokenFile:
    """A bearer token that others rotate: read again after a minute, or when a server refuses it."""

    def __init__(self, path: Path, clock: Callable[[], float]) -> None:
        self._path = path
        self._clock = clock
        self._token = ""
        self._read_at_s = -TOKEN_REREAD_S

    def token(self) -> str:
        if not self._token or self._clock() - self._read_at_s >= TOKEN_REREAD_S:
            self.reread()
        return self._token

    def reread(self) -> bool:
        """Read now; return whether the token is another one."""
        try:
            text = self._path.read_text(encoding="ascii").strip()
        except (OSError, ValueError) as error:
            raise CredentialsUnreadable(f"token file {self._path} cannot be read: {error}") from error
        if not _TOKEN.fullmatch(text):
            raise CredentialsUnreadable(f"token file {self._path} holds no token: it must be one word on one line")
        is_new = text != self._token
        self._token, self._read_at_s = text, self._clock()
        return is_new


class PrometheusResponse(requests.Response):
    """A response whose `json()` is typed, in the nesting in which prometheus-api-client looks for a result."""

    def json(self, **_options: Any) -> Any:
        return {"data": {"result": parse_answer(self.content, self.headers.get("Date", ""))}}


class PrometheusSession(requests.Session):
    """A session for one Prometheus, shared by threads: nothing of it changes after construction."""

    def __init__(self, access: Access, bounds: Bounds, clock: Callable[[], float]) -> None:
        super().__init__()
        self.trust_env = False
        self.verify = str(access.ca_file) if access.ca_file else True
        self.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        self._headers = {"Accept-Encoding": "identity", "User-Agent": "vane", **access.headers}
        self._token_file = TokenFile(access.bearer_token_file, clock) if access.bearer_token_file else None
        self._bounds = bounds
        self._clock = clock

    def mount_api(self, url: str, n_connections: int) -> None:
        """Use our own adapter below `url`/api/; prometheus-api-client mounts one that retries at `url`."""
        adapter = HTTPAdapter(pool_connections=1, pool_maxsize=n_connections, max_retries=Retry(0), pool_block=True)
        self.mount(f"{url}/api/", adapter)

    def request(self, method: str | bytes, url: str | bytes, *_args: Any, **options: Any) -> requests.Response:
        """Ask with the parameters in the form body and the whole answer read.

        Raises
        ------
        QueryError
            For every answer other than 200, and for none.
        """
        options["data"] = options.pop("params", None)
        options["timeout"] = (self._bounds.connect_s, self._bounds.read_s)
        options["allow_redirects"] = False
        options["stream"] = True
        response = self._send_bounded("POST", url, options)
        if response.status_code == requests.codes.unauthorized and self._token_file and self._token_file.reread():
            response = self._send_bounded("POST", url, options)
        if response.is_redirect or 300 <= response.status_code < 400:
            target = response.headers.get("Location", "")
            raise RedirectRefused(f"HTTP {response.status_code}, redirected to {target!r}; give that address instead")
        if response.status_code != requests.codes.ok:
            raise _rejection(response)
        return response

    def _send_bounded(self, method: str, url: str | bytes, options: dict[str, Any]) -> PrometheusResponse:
        headers = dict(self._headers)
        if self._token_file:
            headers["Authorization"] = f"Bearer {self._token_file.token()}"
        deadline_s = self._clock() + self._bounds.deadline_s
        try:
            with super().request(method, url, **{**options, "headers": headers}) as response:
                body = self._read(response, deadline_s)
        except (requests.exceptions.Timeout, urllib3.exceptions.ReadTimeoutError) as error:
            raise QueryTimeout(f"no answer within {self._bounds.read_s:g} s: {_root(error)}") from error
        except (requests.exceptions.InvalidHeader, UnicodeEncodeError):
            # Its text would show the value, which may be a password.
            raise CredentialsUnreadable("a header's value is none that HTTP can carry") from None
        except (requests.exceptions.SSLError, urllib3.exceptions.SSLError) as error:
            raise CertificateRefused(_root(error)) from error
        except (requests.exceptions.RequestException, urllib3.exceptions.HTTPError) as error:
            raise PrometheusUnreachable(_root(error)) from error
        answer = PrometheusResponse()
        answer.__dict__.update(response.__dict__)
        answer.__dict__.update(_content=body, _content_consumed=True)
        return answer

    def _read(self, response: requests.Response, deadline_s: float) -> bytes:
        """Read piece by piece: `requests` bounds each piece only, so a server that drips would hold us for ever."""
        pieces: list[bytes] = []
        n_bytes = 0
        while piece := response.raw.read1(_CHUNK_BYTES, decode_content=True):
            pieces.append(piece)
            n_bytes += len(piece)
            if n_bytes > self._bounds.max_bytes:
                raise TooMuchData(f"an answer of more than {self._bounds.max_bytes} bytes; aggregate in the query")
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
        envelope = _ENVELOPE.decode(body)
        if envelope.status != "success" or envelope.data is None:
            raise BadAnswer(f"status {envelope.status!r}, {envelope.error_type}: {envelope.error}")
        kind = envelope.data.result_type
        if kind == "vector":
            series = _VECTOR.decode(envelope.data.result)
        elif kind == "scalar":
            series = [Series(value=_SCALAR.decode(envelope.data.result))]
        else:
            raise WrongResultType(f"got a {kind!r}; write an expression that gives one number per series")
    except MALFORMED_JSON as error:
        raise BadAnswer(f"not an answer of Prometheus: {error}; it begins {body[:60]!r}") from error
    return QueryAnswer(kind, series, envelope.warnings or (), _unix_seconds(date))


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
