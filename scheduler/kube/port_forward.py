"""One connection to a port of a Pod, through the API server and the kubelet, as `kubectl port-forward` makes them.

The `kubernetes` package carries the bytes; the websocket is opened here, with the trust and the credentials of all
other requests. No local port is opened: nobody else on this machine can use the connection.
"""

from __future__ import annotations

import logging
import socket
from typing import Any, Final, cast
from urllib.parse import quote, unquote, urlsplit

import websocket
from kubernetes.stream.ws_client import PortForward

from scheduler.errors import VaneError
from scheduler.kube.api_objects import status_of
from scheduler.kube.config import Connection
from scheduler.kube.credentials import CredentialsError
from scheduler.kube.leader import PodAddress

log = logging.getLogger(__name__)

_PROTOCOL: Final = "v4.channel.k8s.io"
_TIMEOUT_S: Final = 10.0
_FORBIDDEN: Final = 403


class PortForwardError(VaneError):
    """No connection to the Pod; says why."""


class _Forward(PortForward):  # without annotations
    """Carries bytes in a thread of its own until one side ends; then nothing is left open, however it ended."""

    def _proxy(self) -> None:
        plain = self.websocket.sock
        try:
            super()._proxy()  # type: ignore[no-untyped-call]
        except (OSError, ValueError, RuntimeError, websocket.WebSocketException) as error:
            log.debug("a forwarded connection broke: %s", error)
        finally:
            for port in self.local_ports.values():
                port.python.close()
            if plain is not None:
                plain.close()


class PodConnection:
    """An open connection: `socket` is read and written, `error` says what the kubelet says is wrong."""

    def __init__(self, forward: Any, port: int) -> None:
        self._forward = forward
        self._port = port
        self.socket = cast(socket.socket, forward.socket(port))

    @property
    def error(self) -> str:
        return " ".join(str(self._forward.error(self._port) or "").split())


def connect_to_pod(connection: Connection, pod: PodAddress) -> PodConnection:
    """Open a connection to the Pod's port.

    Raises
    ------
    PortForwardError
        The API server refuses it or does not answer.
    """
    endpoint = connection.endpoint
    path = f"/api/v1/namespaces/{quote(pod.namespace, safe='')}/pods/{quote(pod.name, safe='')}/portforward"
    try:
        header = connection.authorization_header()
        tls: dict[str, Any] = {} if connection.tls is None else {"context": connection.tls.context()}
        if endpoint.server_name:
            tls["server_hostname"] = endpoint.server_name
        opened = websocket.WebSocket(sslopt=tls, skip_utf8_validation=True)
        opened.settimeout(_TIMEOUT_S)
        opened.connect(  # type: ignore[no-untyped-call]  # websocket-client's
            f"{endpoint.host.replace('http', 'ws', 1)}{path}?ports={pod.port}",
            header=[f"User-Agent: {connection.user_agent}", *([f"Authorization: {header}"] if header else [])],
            subprotocols=[_PROTOCOL],
            suppress_origin=True,
            **_proxy(endpoint.proxy),
        )
    except websocket.WebSocketBadStatusException as error:
        raise PortForwardError(_refused(pod, error)) from error
    except (websocket.WebSocketException, OSError, CredentialsError) as error:
        raise PortForwardError(f"no connection to Pod {pod} through {connection.host}: {error}") from error
    opened.settimeout(None)
    forward = _Forward(opened, [pod.port])  # type: ignore[no-untyped-call]
    return PodConnection(forward, pod.port)


def _refused(pod: PodAddress, error: Any) -> str:
    status, body = int(error.status_code), error.resp_body or b""
    said = status_of(body)
    why = said.message or body[:200].decode(errors="replace").strip() or f"HTTP {status}"
    right = ". It needs the right to create (and get) pods/portforward there" if status == _FORBIDDEN else ""
    return f"the API server does not forward to Pod {pod}: {why}{right}"


def _proxy(url: str | None) -> dict[str, Any]:
    """Return what to connect through; without one nothing, whatever the environment says, which is read already."""
    if url is None:
        return {"http_no_proxy": ["*"]}
    parts = urlsplit(url)
    auth = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    return {
        "http_proxy_host": parts.hostname,
        "http_proxy_port": parts.port or 3128,
        "http_proxy_auth": auth,
        "proxy_type": "http",
    }
