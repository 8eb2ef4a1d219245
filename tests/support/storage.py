"""Manifests of storage: classes, local volumes, claims, and the volumes of a Pod that uses them."""

from __future__ import annotations

from typing import Any

from tests.support.manifests import Json

CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
VOLUMES = "/api/v1/persistentvolumes"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"

NO_PROVISIONER = "kubernetes.io/no-provisioner"
SELECTED_NODE = "volume.kubernetes.io/selected-node"


def storage_class(name: str, provisioner: str, **fields: Any) -> Json:
    """Return a class whose claims wait for their first Pod."""
    metadata = {"name": name}
    return {"metadata": metadata, "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer", **fields}


def local_volume(name: str, storage_class_name: str, node: str, size: str = "10Gi", **spec: Any) -> Json:
    """Return a volume that is on one node."""
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    return {
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class_name,
            "persistentVolumeReclaimPolicy": "Retain",
            "local": {"path": f"/mnt/{name}"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
            **spec,
        },
    }


def claim(name: str, storage_class_name: str, size: str = "5Gi") -> Json:
    resources = {"requests": {"storage": size}}
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": storage_class_name, "resources": resources}
    return {"metadata": {"name": name}, "spec": spec}


def with_claims(*names: str) -> Json:
    """Return the part of a Pod's spec that has it use claims."""
    sources = ({"persistentVolumeClaim": {"claimName": name}} for name in names)
    return {"volumes": [{"name": f"v{i}", **source} for i, source in enumerate(sources)]}
