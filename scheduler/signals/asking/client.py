"""The Prometheus client: one instant query, one typed answer, with the time of its evaluation on our own clock.

Built on prometheus-api-client; `session` says what is hardened and why.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol
from urllib.parse import urlsplit, urlunsplit

from prometheus_api_client.prometheus_connect import PrometheusConnect
from urllib3.util import Retry

from scheduler.errors import ConfigError
from scheduler.settings.prometheus import Flavor
from scheduler.signals.asking import flavors
from scheduler.signals.asking.credentials import Access
from scheduler.signals.asking.query_errors import TooMuchData
from scheduler.signals.asking.server_clock import Exchange, ServerClock
from scheduler.signals.asking.session import Bounds, PrometheusSession, QueryAnswer, ResultSeries

_SERVER_TIMEOUT_S: Final = 4.0
_SHOWN: Final = "Write an address as http://prometheus.monitoring:9090 or https://host/prefix"


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Where Prometheus is and how to ask it; `with_stats`: it is also to say what a query costs."""

    url: str
    access: Access = field(default_factory=Access)
    bounds: Bounds = field(default_factory=Bounds)
    max_series: int = 100_000
    n_connections: int = 8
    flavor: Flavor = Flavor.PROMETHEUS
    with_stats: bool = False


@dataclass(frozen=True, slots=True)
class QueryResult:
    """An answer and its times, in seconds of our clock.

    evaluated_at_s
        When Prometheus evaluated, never later than it truly was.
    server_time_s
        The same moment in the server's own Unix seconds, None where no sample says it.
    n_samples
        How many samples the query read, None where the server does not say.
    clock_skew_s
        The server's clock less ours.
    """

    series: list[ResultSeries]
    is_scalar: bool
    warnings: tuple[str, ...]
    evaluated_at_s: float
    server_time_s: float | None
    n_samples: int | None = None
    clock_skew_s: float = 0.0


def check_prometheus_url(url: str) -> str:
    """Return `url` as the client wants it: with scheme and host, without a slash at the end.

    Raises
    ------
    ConfigError
        With what is wrong and what to write.
    """
    try:
        parts = urlsplit(url.strip())
        port_is_valid = parts.port != 0
    except ValueError as error:
        raise ConfigError(f"Prometheus address {url!r}: {error}. {_SHOWN}") from error
    problem = ""
    if parts.scheme not in ("http", "https"):
        problem = f"the scheme must be http or https, got {parts.scheme!r}"
    elif not parts.hostname:
        problem = "no host"
    elif not port_is_valid:
        problem = "port 0 is not a valid port"
    elif parts.username is not None or parts.password is not None:
        url = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
        problem = "no user and password here, logs would show them; use a token file, or a user with a password file"
    elif parts.query or parts.fragment:
        problem = "no query and no fragment"
    elif parts.path.rstrip("/").endswith(("/api", "/api/v1", "/api/v1/query")):
        problem = "the path must end before /api"
    if problem:
        raise ConfigError(f"Prometheus address {url!r}: {problem}. {_SHOWN}")
    return urlunsplit(parts._replace(path=parts.path.rstrip("/")))


class QueryClient(Protocol):
    """What asks Prometheus: a `PrometheusClient`, or in tests another. Called by several threads."""

    def query(self, expr: str, lookback_s: float | None = None) -> QueryResult:
        """Evaluate `expr` now; a series whose last sample is older than `lookback_s` is not in the answer.

        Raises
        ------
        QueryError
            See `signals.asking.query_errors`.
        """


class PrometheusClient:
    """Asks instant queries; threads may share it."""

    def __init__(self, settings: ClientSettings, clock: Callable[[], float] = time.monotonic) -> None:
        url = check_prometheus_url(settings.url)
        self._settings = settings
        self._clock = clock
        self._server_clock = ServerClock()
        # What the user sets wins.
        access = replace(settings.access, headers=flavors.headers(settings.flavor) | dict(settings.access.headers))
        bounds = replace(settings.bounds, max_series=settings.max_series)
        self._session = PrometheusSession(access, bounds, clock, settings.n_connections)
        # Typed as Any: its parameters are annotated without the None that they allow.
        connect: Any = PrometheusConnect
        self._connect: Any = connect(url=url, session=self._session, retry=Retry(0), method="POST")

    def query(self, expr: str, lookback_s: float | None = None) -> QueryResult:
        """Evaluate `expr` now; a series whose last sample is older than `lookback_s` is not in the answer.

        Raises
        ------
        QueryError
            See `signals.asking.query_errors`.
        """
        settings = self._settings
        timeout_s = min(_SERVER_TIMEOUT_S, settings.bounds.read_s)
        along = flavors.parameters(settings.flavor, timeout_s, settings.max_series, lookback_s)
        if settings.with_stats:
            along["stats"] = "all"
        sent_s = self._clock()
        answer: QueryAnswer = self._connect.custom_query(expr, params=along)
        received_s = self._clock()
        if len(answer.series) > settings.max_series:
            raise TooMuchData(f"more than {settings.max_series} series; aggregate in the query")
        server_time_s = next((series.value[0] for series in answer.series if series.value), None)
        exchange = Exchange(sent_s, received_s, server_time_s, answer.server_date_s)
        return QueryResult(
            series=answer.series,
            is_scalar=answer.result_type == "scalar",
            warnings=answer.warnings,
            evaluated_at_s=self._server_clock.evaluated_at(expr, exchange),
            server_time_s=server_time_s,
            clock_skew_s=self._server_clock.skew_s(exchange),
            n_samples=answer.n_samples,
        )

    def close(self) -> None:
        self._session.close()
