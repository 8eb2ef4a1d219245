"""Which Pod leads, for commands that speak with it: the Lease names it, the API server knows where it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeVar
from urllib.parse import quote

import msgspec

from scheduler.errors import InvalidObjectError, VaneError
from scheduler.kube.election.lease import decode_lease
from scheduler.kube.transport import ApiError, Transport

NAMESPACE: Final = "vane-system"
LEASE: Final = "vane"
LEASE_NAMESPACE: Final = "kube-system"
READER: Final = "vane-reader"
"""The service account that may read the pages and nothing else."""
PORT_NAME: Final = "https-metrics"
PORT: Final = 10259
TOKEN_S: Final = 600
"""How long a token is good; the API server gives none for less."""

_NOT_FOUND: Final = 404
_FORBIDDEN: Final = 403

T = TypeVar("T")


class LeaderError(VaneError):
    """No leader can be spoken with; says what to do about it."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Where to look: `namespace` is that of Vane's Pods, empty for wherever the leader is; `pod` needs no Lease."""

    namespace: str = ""
    lease: str = LEASE
    lease_namespace: str = LEASE_NAMESPACE
    pod: str = ""


@dataclass(frozen=True, slots=True)
class PodAddress:
    """A Pod, and the port of its pages."""

    namespace: str
    name: str
    port: int

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class _Metadata(msgspec.Struct):
    name: str
    namespace: str


class _Port(msgspec.Struct, rename="camel"):
    container_port: int
    name: str = ""


class _Container(msgspec.Struct):
    ports: list[_Port] = []


class _PodSpec(msgspec.Struct, rename="camel"):
    containers: list[_Container] = []
    host_network: bool = False
    node_name: str = ""


class _PodStatus(msgspec.Struct):
    phase: str = ""


class _Pod(msgspec.Struct):
    metadata: _Metadata
    spec: _PodSpec = msgspec.field(default_factory=_PodSpec)
    status: _PodStatus = msgspec.field(default_factory=_PodStatus)


class _Pods(msgspec.Struct):
    items: list[_Pod] = []


class _TokenStatus(msgspec.Struct):
    token: str


class _TokenRequest(msgspec.Struct):
    status: _TokenStatus


def find_leader(transport: Transport, wanted: Wanted) -> PodAddress:
    """Return the Pod that leads, or the one that is named.

    Raises
    ------
    LeaderError
        There is none, or it is no Pod of this cluster, or may not be looked for.
    TransportError
        The API server does not answer.
    """
    if wanted.pod:
        pod = _pod(transport, wanted.namespace or NAMESPACE, wanted.pod)
        if pod is None:
            raise LeaderError(f"no Pod {wanted.pod!r} in namespace {wanted.namespace or NAMESPACE}. Write -n NAMESPACE")
        return _address(pod)
    holder = _holder(transport, wanted)
    host = holder.rpartition("_")[0] or holder
    pod = _pod_of(transport, wanted.namespace, host)
    if pod is None:
        where = f"namespace {wanted.namespace}" if wanted.namespace else "this cluster"
        raise LeaderError(
            f"the leader calls itself {host!r}, and no Pod of {where} has that name. Write -n with the namespace of "
            "its Pod; of a Vane that runs outside of the cluster, `vane top --url https://HOST:10259`"
        )
    return _address(pod)


def reader_token(transport: Transport, namespace: str, account: str = READER) -> str:
    """Return a token of a service account that may read the pages, good for ten minutes.

    One's own token is worth far more than a page, and is not for a Pod to see.

    Raises
    ------
    LeaderError
        There is no such account, or one may not ask for its tokens.
    """
    path = f"/api/v1/namespaces/{quote(namespace, safe='')}/serviceaccounts/{quote(account, safe='')}/token"
    body = msgspec.json.encode({"spec": {"expirationSeconds": TOKEN_S}})
    try:
        return _decoded(transport.request("POST", path, body=body), _TokenRequest).status.token
    except ApiError as error:
        why = "there is none" if error.status == _NOT_FOUND else error.message
        raise LeaderError(
            f"Vane requires a token, and service account {namespace}/{account} gives none: {why}. Apply deploy/base, "
            "which has this account, or write --service-account NAME, or --token-file FILE"
        ) from error


def _holder(transport: Transport, wanted: Wanted) -> str:
    namespace, name = wanted.lease_namespace, wanted.lease
    path = f"/apis/coordination.k8s.io/v1/namespaces/{quote(namespace, safe='')}/leases/{quote(name, safe='')}"
    write = "Write --lease NAMESPACE/NAME, as Vane's --leader-elect-resource-... say, or --pod NAME"
    try:
        holder = decode_lease(transport.get(path)).holder
    except ApiError as error:
        why = "there is none; does Vane run here?" if error.status == _NOT_FOUND else f"{error.message}."
        raise LeaderError(f"the leader is named by Lease {namespace}/{name}: {why} {write}") from error
    except InvalidObjectError as error:
        raise LeaderError(f"Lease {namespace}/{name}: {error}. {write}") from error
    if not holder:
        raise LeaderError(f"no replica leads now: Lease {namespace}/{name} names none. Look at the Pods. {write}")
    return holder


def _pod_of(transport: Transport, namespace: str, host: str) -> _Pod | None:
    """Return the Pod that calls itself so: by its own name, in the node's network by that of the node."""
    first = namespace or NAMESPACE
    found = _pod(transport, first, host)
    if found is None:
        in_node_network = (pod for pod in _pods(transport, first, {"fieldSelector": f"spec.nodeName={host}"}))
        found = next((pod for pod in in_node_network if pod.spec.host_network and _port_of(pod)), None)
    if found is None and not namespace:
        found = next(iter(_pods(transport, "", {"fieldSelector": f"metadata.name={host}"})), None)
    return found


def _pod(transport: Transport, namespace: str, name: str) -> _Pod | None:
    path = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(name, safe='')}"
    try:
        return _decoded(transport.get(path), _Pod)
    except ApiError as error:
        if error.status == _NOT_FOUND:
            return None
        raise LeaderError(f"Pod {namespace}/{name} cannot be read: {error.message}") from error


def _pods(transport: Transport, namespace: str, params: dict[str, str]) -> list[_Pod]:
    """Return Pods, of all namespaces where none is named; none where one may not list them."""
    path = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods" if namespace else "/api/v1/pods"
    try:
        return _decoded(transport.get(path, params), _Pods).items
    except ApiError as error:
        if error.status == _FORBIDDEN:
            return []
        raise LeaderError(f"Pods cannot be listed: {error.message}") from error


def _address(pod: _Pod) -> PodAddress:
    name = f"{pod.metadata.namespace}/{pod.metadata.name}"
    if pod.status.phase != "Running":
        raise LeaderError(f"Pod {name} does not run: it is {pod.status.phase or 'not known'}. Look at its events")
    return PodAddress(pod.metadata.namespace, pod.metadata.name, _port_of(pod) or PORT)


def _port_of(pod: _Pod) -> int:
    """Return the port of the pages, 0 where the Pod names none."""
    ports = (port for container in pod.spec.containers for port in container.ports)
    return next((port.container_port for port in ports if port.name == PORT_NAME), 0)


def _decoded(raw: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise LeaderError(f"the API server's answer is not readable: {error}") from error
