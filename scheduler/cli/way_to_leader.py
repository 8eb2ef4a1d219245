"""The way to the replica that leads: found by the Lease, reached through the API server, anew for each connection."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass

from scheduler.kube.config import load_connection
from scheduler.kube.leader import LeaderError, PodAddress, Wanted, find_leader, reader_token
from scheduler.kube.port_forward import PodConnection, connect_to_pod
from scheduler.kube.transport import Transport


@dataclass(frozen=True, slots=True)
class Door:
    """Which cluster and which Vane, and whose token is asked for."""

    kubeconfig: str | None
    context: str | None
    wanted: Wanted
    service_account: str


class WayToLeader:
    """A `Way` of `top_client`.

    The API server has proved who it is, and it and the kubelet lead to that very Pod: so the Pod's own certificate,
    mostly self-signed, is not verified.
    """

    def __init__(self, door: Door, environ: Mapping[str, str]) -> None:
        self._door = door
        self._connection = load_connection(door.kubeconfig, door.context, environ)
        self._transport = Transport(self._connection)
        self._pod: PodAddress | None = None
        self._last: PodConnection | None = None

    @property
    def name(self) -> str:
        where = f"Pod {self._pod}" if self._pod is not None else "the leader"
        return f"{where} through {self._connection.host}"

    def connect(self) -> socket.socket:
        """Look for the leader and connect with it; a VaneError where there is none."""
        self._pod = find_leader(self._transport, self._door.wanted)
        self._last = connect_to_pod(self._connection, self._pod)
        return self._last.socket

    def token(self) -> str:
        if self._pod is None:
            raise LeaderError("a token is for a Pod that has been connected with")
        return reader_token(self._transport, self._pod.namespace, self._door.service_account)

    def problem(self) -> str:
        return self._last.error if self._last is not None else ""

    def close(self) -> None:
        self._transport.close()
