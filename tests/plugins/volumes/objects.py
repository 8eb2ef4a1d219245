"""Storage objects and Pods with volumes for tests: keyword arguments in, objects through the real decoders out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scheduler.model.pods import PodInfo
from scheduler.model.volumes import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from tests.builders import make_pod, object_of

ZONE = "topology.kubernetes.io/zone"
MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}


def pod_with(*volumes: Mapping[str, Any], name: str = "pod", node: str = "", namespace: str = "default") -> PodInfo:
    """Make a Pod with volumes named v0, v1, …"""
    named = [{"name": f"v{i}", **volume} for i, volume in enumerate(volumes)]
    return make_pod(name, node=node, namespace=namespace, spec={"volumes": named})


def claim_volume(name: str) -> dict[str, Any]:
    return {"persistentVolumeClaim": {"claimName": name}}


def pod_claiming(*claims: str, name: str = "pod", node: str = "", namespace: str = "default") -> PodInfo:
    return pod_with(*map(claim_volume, claims), name=name, node=node, namespace=namespace)


def claim(
    name: str = "c",
    *,
    volume: str = "",
    storage_class: str | None = "",
    size: str = "5Gi",
    modes: Sequence[str] = ("ReadWriteOnce",),
    annotations: Mapping[str, str] | None = None,
    phase: str = "",
    namespace: str = "default",
    metadata: Mapping[str, Any] | None = None,
    **spec: Any,
) -> PersistentVolumeClaim:
    """Make a claim, bound to its volume if it names one; `spec` is merged over all."""
    made = object_of(
        "PersistentVolumeClaim",
        {
            "metadata": {
                "name": name,
                "namespace": namespace,
                "uid": f"uid-{name}",
                "annotations": {**(BOUND if volume else {}), **(annotations or {})},
                **(metadata or {}),
            },
            "spec": {
                "accessModes": list(modes),
                "resources": {"requests": {"storage": size} if size else {}},
                "storageClassName": storage_class,
                "volumeName": volume,
                **spec,
            },
            "status": {"phase": phase},
        },
    )
    assert isinstance(made, PersistentVolumeClaim)
    return made


def volume(
    name: str = "pv",
    *,
    storage_class: str = "",
    size: str = "10Gi",
    modes: Sequence[str] = ("ReadWriteOnce",),
    labels: Mapping[str, str] | None = None,
    affinity: Sequence[Mapping[str, Any]] | None = None,
    made_for: str = "",
    phase: str = "Available",
    metadata: Mapping[str, Any] | None = None,
    **spec: Any,
) -> PersistentVolume:
    """Make a PersistentVolume; `affinity` are its terms, `made_for` a claim in the namespace default."""
    made = object_of(
        "PersistentVolume",
        {
            "metadata": {"name": name, "labels": dict(labels or {}), **(metadata or {})},
            "spec": {
                "capacity": {"storage": size},
                "accessModes": list(modes),
                "storageClassName": storage_class,
                **({"claimRef": {"namespace": "default", "name": made_for}} if made_for else {}),
                **({} if affinity is None else {"nodeAffinity": {"required": {"nodeSelectorTerms": list(affinity)}}}),
                **spec,
            },
            "status": {"phase": phase},
        },
    )
    assert isinstance(made, PersistentVolume)
    return made


def csi(driver: str = "csi.example.com", handle: str = "h") -> dict[str, Any]:
    return {"driver": driver, "volumeHandle": handle}


def term(key: str, *values: str, operator: str = "In") -> dict[str, Any]:
    """Make a node selector term of one expression."""
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def storage_class(
    name: str = "wait",
    *,
    provisioner: str = "csi.example.com",
    mode: str | None = "WaitForFirstConsumer",
    **fields: Any,
) -> StorageClass:
    made = object_of(
        "StorageClass",
        {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode, **fields},
    )
    assert isinstance(made, StorageClass)
    return made


def csi_node(name: str, *, migrated: str = "", **limits: int | None) -> CSINode:
    """Make a CSINode; `limits` maps drivers to what they can attach, dots in their names as underscores."""
    drivers = [
        {"name": driver.replace("_", "."), **({} if count is None else {"allocatable": {"count": count}})}
        for driver, count in limits.items()
    ]
    annotations = {MIGRATED: migrated} if migrated else {}
    made = object_of("CSINode", {"metadata": {"name": name, "annotations": annotations}, "spec": {"drivers": drivers}})
    assert isinstance(made, CSINode)
    return made


def csi_driver(name: str = "csi.example.com", **spec: bool) -> CSIDriver:
    made = object_of("CSIDriver", {"metadata": {"name": name}, "spec": spec})
    assert isinstance(made, CSIDriver)
    return made


def pool(name: str = "pool", *, storage_class: str = "wait", selector: Any = None, **fields: Any) -> CSIStorageCapacity:
    """Make a CSIStorageCapacity; `selector` is its nodeTopology."""
    made = object_of(
        "CSIStorageCapacity",
        {
            "metadata": {"name": name, "namespace": "storage"},
            "storageClassName": storage_class,
            "nodeTopology": selector,
            **fields,
        },
    )
    assert isinstance(made, CSIStorageCapacity)
    return made


def attachment(name: str, node: str, volume: str | None, attacher: str = "csi.example.com") -> VolumeAttachment:
    source = {} if volume is None else {"persistentVolumeName": volume}
    made = object_of(
        "VolumeAttachment",
        {"metadata": {"name": name}, "spec": {"attacher": attacher, "nodeName": node, "source": source}},
    )
    assert isinstance(made, VolumeAttachment)
    return made
