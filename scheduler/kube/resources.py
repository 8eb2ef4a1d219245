"""The kinds of objects that Vane lists and watches, as a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from scheduler.model.catalog import CATALOG_KINDS, catalog_decoder
from scheduler.model.objects import Node, Pod, UnreadableNode, UnreadablePod, decode_node, decode_pod
from scheduler.model.sharing import shared_node, shared_pod


@dataclass(frozen=True, slots=True)
class ResourceKind:
    """How one kind is listed, and how its objects are read.

    `decode` gives an object that says so where its content cannot be read, and raises InvalidObjectError where not
    even its metadata can. `params` are query parameters of both list and watch.
    """

    name: str
    path: str
    decode: Callable[[bytes | msgspec.Raw], Any]
    params: Mapping[str, str] = field(default_factory=dict)


def _read_pod(raw: bytes | msgspec.Raw) -> Pod | UnreadablePod:
    return shared_pod(decode_pod(raw))


def _read_node(raw: bytes | msgspec.Raw) -> Node | UnreadableNode:
    return shared_node(decode_node(raw))


PODS = ResourceKind(
    name="Pod",
    path="/api/v1/pods",
    decode=_read_pod,
    # As kube-scheduler: a Pod that ends arrives as DELETED, and finished ones cost no memory.
    params={"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"},
)

NODES = ResourceKind(
    name="Node",
    path="/api/v1/nodes",
    decode=_read_node,
)

# Namespaced or not, they are listed over all namespaces.
_PATHS = {
    "Namespace": "/api/v1/namespaces",
    "Service": "/api/v1/services",
    "ReplicationController": "/api/v1/replicationcontrollers",
    "ReplicaSet": "/apis/apps/v1/replicasets",
    "StatefulSet": "/apis/apps/v1/statefulsets",
    "PodDisruptionBudget": "/apis/policy/v1/poddisruptionbudgets",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "PersistentVolumeClaim": "/api/v1/persistentvolumeclaims",
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
    "CSINode": "/apis/storage.k8s.io/v1/csinodes",
    "CSIDriver": "/apis/storage.k8s.io/v1/csidrivers",
    "CSIStorageCapacity": "/apis/storage.k8s.io/v1/csistoragecapacities",
    "VolumeAttachment": "/apis/storage.k8s.io/v1/volumeattachments",
}

KINDS: Mapping[str, ResourceKind] = {
    NODES.name: NODES,
    PODS.name: PODS,
    **{name: ResourceKind(name, _PATHS[name], catalog_decoder(kind)) for name, kind in CATALOG_KINDS.items()},
}
"""All kinds by name; a profile says which of them its plugins need."""


def path_of(kind: str, namespace: str, name: str) -> str:
    """Return the path of one object; `namespace` is "" where its kind has none."""
    folder, _, plural = KINDS[kind].path.rpartition("/")
    return f"{folder}/namespaces/{namespace}/{plural}/{name}" if namespace else f"{folder}/{plural}/{name}"
