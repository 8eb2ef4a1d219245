"""The API server's address and TLS settings: plain data that both processes turn into connections."""

from __future__ import annotations

import platform
import socket
import sys

import msgspec

from scheduler import __version__
from scheduler.tls import ClientTls, TlsFiles

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""Go's names, as in every other component's User-Agent, for what the machine calls itself."""

CONNECT_TIMEOUT_S = 5.0

# A silent peer (pulled cable, blackhole without reset) is given up after 15 + 3·10 s = 45 s without traffic, as
# client-go's HTTP/2 ping does (30 s idle + 15 s), and after 30 s with unacknowledged data in flight.
_KEEPALIVE_IDLE_S = 15
_KEEPALIVE_INTERVAL_S = 10
_KEEPALIVE_PROBES = 3
_UNACKNOWLEDGED_MS = 30_000


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The API server's address and TLS settings; files are named, not held, so that they can be read again."""

    host: str
    server_name: str | None = None
    verify: bool = True
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    proxy: str | None = None

    def __repr__(self) -> str:
        """Name the host only: a proxy's URL may hold a password."""
        return f"Endpoint({self.host})"

    @property
    def is_tls(self) -> bool:
        return self.host.startswith("https://")


def user_agent(identity: str = "", component: str = "") -> str:
    """Return the User-Agent: `vane/0.1.0 (linux/amd64) IDENTITY/COMPONENT`, by which audit logs tell replicas apart.

    Components of Kubernetes write `kube-scheduler/v1.37.1 (linux/amd64) kubernetes/HASH/leader-election`.
    """
    machine = platform.machine()
    product = f"vane/{__version__} ({sys.platform}/{_ARCHITECTURES.get(machine, machine)})"
    return f"{product} {'/'.join(part for part in (identity, component) if part)}".rstrip()


def client_tls(endpoint: Endpoint) -> ClientTls | None:
    """Return what the connections to the API server are made with, None where it speaks plain HTTP.

    Raises
    ------
    TlsFilesError
        A file cannot be used.
    """
    if not endpoint.is_tls:
        return None
    return ClientTls(TlsFiles(endpoint.ca_file, endpoint.cert_file, endpoint.key_file), verify=endpoint.verify)


def socket_options() -> list[tuple[int, int, int]]:
    """Return the TCP options that make a dead peer known within 45 s."""
    options = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1), (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    wanted = {
        "TCP_KEEPIDLE": _KEEPALIVE_IDLE_S,
        "TCP_KEEPINTVL": _KEEPALIVE_INTERVAL_S,
        "TCP_KEEPCNT": _KEEPALIVE_PROBES,
        "TCP_USER_TIMEOUT": _UNACKNOWLEDGED_MS,
    }
    for name, value in wanted.items():
        option = getattr(socket, name, None)  # not every platform has all four
        if option is not None:
            options.append((socket.IPPROTO_TCP, option, value))
    return options
