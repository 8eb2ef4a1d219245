"""The Prometheus servers that signals may ask: how each is reached, and what goes together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import ConfigDict, Field, StrictInt

from scheduler.promql.nodes import Feature
from scheduler.settings.values import AnyPath, DnsLabel, Group, Headers, HttpUrl, Matchers, UserName, together
from scheduler.strict_yaml.document import Location

SERVERS: Final = ("prometheus", "servers")
TOGETHER: Final = (("username", "passwordFile"), ("certFile", "keyFile"))
"""Fields of which none means anything without the other."""
PATHS: Final = ("tokenFile", "passwordFile", "certFile", "keyFile", "caFile")


class Flavor(StrEnum):
    """What answers as Prometheus does."""

    PROMETHEUS = "prometheus"
    THANOS = "thanos"
    MIMIR = "mimir"
    VICTORIAMETRICS = "victoriametrics"


class ServerSettings(Group):
    """How one Prometheus is asked."""

    model_config = ConfigDict(json_schema_extra=together(*TOGETHER))

    url: HttpUrl | None = Field(
        default=None,
        description="Base URL of the Prometheus API, without /api/v1; unset: signals without a server stay missing",
    )
    flavor: Flavor = Field(
        default=Flavor.PROMETHEUS,
        description="Kind of server at the URL; decides which parameters are sent with each query",
    )
    token_file: AnyPath | None = Field(
        default=None,
        description="File with a bearer token, read again when it changes; process lists would show a flag",
    )
    username: UserName | None = Field(default=None, description="User for basic authentication")
    password_file: AnyPath | None = Field(
        default=None, description="File with the password of the user, read again when it changes"
    )
    cert_file: AnyPath | None = Field(
        default=None, description="Client certificate with its chain (PEM), read again when it changes"
    )
    key_file: AnyPath | None = Field(default=None, description="Private key (PEM) of the client certificate")
    ca_file: AnyPath | None = Field(
        default=None, description="File with the certificate authorities (PEM) to trust; unset: those of the system"
    )
    headers: Headers = Field(
        default=(), description="HTTP header sent with every query, as X-Scope-OrgID=shop for a tenant", repr=False
    )
    features: tuple[Feature, ...] = Field(
        default=(),
        description="What the server has switched on with --enable-feature, as promql-experimental-functions; an"
        " expression that needs another one is a warning",
    )
    matchers: Matchers = Field(
        default=(),
        description="Label and value that every selector of every query gets, as cluster=prod where several clusters"
        " share one Thanos or Mimir",
    )
    max_series: Annotated[StrictInt, Field(ge=1, le=10_000_000)] = Field(
        default=100_000, description="Maximum number of series in the answer to one query"
    )
    max_bytes: Annotated[StrictInt, Field(ge=1024, le=1 << 32)] = Field(
        default=64 << 20, description="Maximum number of bytes in the answer to one query"
    )


class NamedServerSettings(ServerSettings):
    """A further Prometheus; signals ask it with `server: NAME`."""

    name: DnsLabel
    url: HttpUrl


class PrometheusSettings(ServerSettings):
    """The Prometheus without a name, and further ones by name."""

    servers: tuple[NamedServerSettings, ...] = ()

    def by_name(self) -> Mapping[str, ServerSettings]:
        """Return each server that has an address; the one without a name is the empty text."""
        nameless: dict[str, ServerSettings] = {"": self} if self.url is not None else {}
        return nameless | {server.name: server for server in self.servers}


def conflicts(settings: PrometheusSettings, place: Callable[[Location], str]) -> list[str]:
    """Return the problems between fields that are right one by one; `place` says where one was given."""
    found = _of_one(settings, ("prometheus",), place)
    first: dict[str, Location] = {}
    for i, server in enumerate(settings.servers):
        at: Location = (*SERVERS, i)
        found += _of_one(server, at, place)
        if server.name in first:
            there = place((*first[server.name], "name"))
            found.append(f"{place((*at, 'name'))}: {server.name!r} is used twice, first at {there}. Rename one")
        first.setdefault(server.name, at)
    return found


def _of_one(server: ServerSettings, at: Location, place: Callable[[Location], str]) -> list[str]:
    found = []
    given_pairs = ((server.username, server.password_file), (server.cert_file, server.key_file))
    for (one, other), (name, other_name) in zip(given_pairs, TOGETHER, strict=True):
        if (one is None) != (other is None):
            given, lacking = (name, other_name) if other is None else (other_name, name)
            found.append(f"{place((*at, given))}: also needs {lacking}. Write it, or drop {given}")
    ways = {
        "tokenFile": server.token_file is not None,
        "passwordFile": server.username is not None and server.password_file is not None,
        "headers": any(name.lower() == "authorization" for name, _ in server.headers),
    }
    used = [name for name, is_used in ways.items() if is_used]
    if len(used) > 1:
        found.append(f"{place((*at, used[-1]))}: Authorization is also set by {used[0]}. Drop one of the two")
    if server.cert_file is not None and server.url is not None and not server.url.startswith("https:"):
        found.append(f"{place((*at, 'certFile'))}: a certificate needs https, got {server.url!r}. Write https://...")
    return found


def anchor(document: Mapping[str, Any], anchored: Callable[[object, Path], object], folder: Path) -> None:
    """Make the relative paths of named servers relative to `folder`, in place."""
    for server in _listed(document):
        for name in PATHS:
            if name in server:
                server[name] = anchored(server[name], folder)


def _listed(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    prometheus = document.get(SERVERS[0])
    servers = prometheus.get(SERVERS[1]) if isinstance(prometheus, dict) else None
    for server in servers if isinstance(servers, list) else ():
        if isinstance(server, dict):
            yield server
