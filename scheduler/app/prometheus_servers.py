"""The Prometheus servers of the settings, as what asks them.

The deciding process reads the settings here and asks nobody: what asks is imported where it is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from scheduler.settings.prometheus import PrometheusSettings, ServerSettings
from scheduler.signals.answers import SignalAnswer

if TYPE_CHECKING:
    from scheduler.signals.asking.client import ClientSettings, PrometheusClient
    from scheduler.signals.asking.refresher import RefreshObserver
    from scheduler.signals.asking.servers import Servers
    from scheduler.signals.format.promql_matchers import Matchers


def check_addresses(settings: PrometheusSettings) -> None:
    """Check every address; ConfigError with what is wrong."""
    for url in _addresses(settings).values():
        from scheduler.signals.asking.client import check_prometheus_url

        check_prometheus_url(url)


def server_names(settings: PrometheusSettings) -> frozenset[str]:
    """Return what a signal may write as its `server`."""
    return frozenset(server.name for server in settings.servers)


def features_of(settings: PrometheusSettings) -> dict[str, frozenset[str]]:
    """Return what each server has switched on, by its name; the one without a name is the empty text."""
    named = {server.name: server.features for server in settings.servers}
    return {name: frozenset(features) for name, features in {"": settings.features, **named}.items()}


def matchers_of(settings: PrometheusSettings) -> dict[str, Matchers]:
    """Return what every selector of every query gets, by server; those without matchers are left out."""
    named = {server.name: server.matchers for server in settings.servers}
    return {name: matchers for name, matchers in {"": settings.matchers, **named}.items() if matchers}


def client_settings(server: ServerSettings, url: str) -> ClientSettings:
    """Return how a server is asked that is at `url`."""
    from scheduler.signals.asking.client import ClientSettings
    from scheduler.signals.asking.credentials import Access
    from scheduler.signals.asking.session import Bounds

    access = Access(
        headers=dict(server.headers),
        bearer_token_file=server.token_file,
        ca_file=server.ca_file,
        username=server.username or "",
        password_file=server.password_file,
        cert_file=server.cert_file,
        key_file=server.key_file,
    )
    bounds = Bounds(max_bytes=server.max_bytes)
    return ClientSettings(url, access, bounds, max_series=server.max_series, flavor=server.flavor)


def make_clients(settings: PrometheusSettings, *, with_stats: bool = False) -> dict[str, PrometheusClient]:
    """Return a client for each server, by name; the one without a name, where it has an address, is the empty text.

    `with_stats`: the servers are also to say what queries cost.
    """
    from scheduler.signals.asking.client import PrometheusClient

    servers = settings.by_name()
    return {
        name: PrometheusClient(replace(client_settings(servers[name], url), with_stats=with_stats))
        for name, url in _addresses(settings).items()
    }


def make_servers(
    settings: PrometheusSettings, publish: Callable[[SignalAnswer], None], observer: RefreshObserver
) -> Servers | None:
    """Return what asks all servers; None where there is none."""
    from scheduler.signals.asking.servers import Servers

    clients = make_clients(settings)
    return Servers(clients, publish, observer, matchers=matchers_of(settings)) if clients else None


def _addresses(settings: PrometheusSettings) -> Mapping[str, str]:
    return {name: server.url for name, server in settings.by_name().items() if server.url is not None}
