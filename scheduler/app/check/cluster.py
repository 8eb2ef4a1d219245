"""The cluster as it is at one moment, for commands that look at it once: nodes and the Pods on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from scheduler.cluster.cache import Cache
from scheduler.errors import InvalidObjectError, VaneError
from scheduler.kube.api_objects import ListMeta
from scheduler.kube.resources import NODES, PODS, ResourceKind
from scheduler.kube.transport import ApiError, Transport
from scheduler.model.objects import Node, Pod
from scheduler.model.pods import PodInfo
from scheduler.model.state import PodListener

PAGE: Final = 500
_TIMEOUT_S: Final = 10.0
_EXPIRED: Final = 410


class _ListPage(msgspec.Struct, frozen=True):
    items: list[msgspec.Raw] = []
    metadata: ListMeta = ListMeta()


_DECODER: Final = msgspec.json.Decoder(_ListPage)


def read_cluster(transport: Transport, indexes: Sequence[PodListener]) -> Cache:
    """Return all nodes, and the Pods that have one, as the API server lists them; what cannot be read is left out.

    Raises
    ------
    ApiError, TransportError
        The API server does not answer, or not with a list.
    """
    cache = Cache(indexes)
    for raw in _listed(transport, NODES):
        node = _decoded(NODES, raw)
        if isinstance(node, Node):
            cache.set_node(node)
    for raw in _listed(transport, PODS):
        pod = _decoded(PODS, raw)
        if isinstance(pod, Pod) and pod.spec.node_name:
            cache.add_pod(PodInfo(pod))
    return cache


def _listed(transport: Transport, kind: ResourceKind) -> Iterator[msgspec.Raw]:
    """Yield the objects page by page; where the pages have expired under way, all of them again in one."""
    parameters = {**kind.params, "limit": str(PAGE)}
    seen: list[msgspec.Raw] = []
    while True:
        try:
            page = _DECODER.decode(transport.get(kind.path, parameters, _TIMEOUT_S))
        except ApiError as error:
            if error.status != _EXPIRED or "continue" not in parameters:
                raise
            seen, parameters = [], dict(kind.params)
            continue
        except msgspec.DecodeError as error:
            raise VaneError(f"cannot list {kind.name}: {error}") from error
        seen += page.items
        if not page.metadata.continue_:
            yield from seen
            return
        parameters["continue"] = page.metadata.continue_


def _decoded(kind: ResourceKind, raw: msgspec.Raw) -> object:
    try:
        found: object = kind.decode(raw)
    except InvalidObjectError:
        return None
    return found
