"""What the embedded API server serves: six resources over five kinds of objects, and others that are always empty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ServedResource:
    """One resource of one API group; Events have two, which share `storage`.

    `subresources` go by name to their verbs, `verbs` are those of the resource itself, as discovery names them.
    """

    plural: str
    singular: str
    kind: str
    group: str = ""
    version: str = "v1"
    is_namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
    subresources: tuple[tuple[str, tuple[str, ...]], ...] = ()
    storage: str = ""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def prefix(self) -> str:
        """The path of the group's version, such as `/api/v1`."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    @property
    def qualified(self) -> str:
        """The name in messages, such as `leases.coordination.k8s.io`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def stored_as(self) -> str:
        """What its objects are kept under."""
        return self.storage or self.plural

    def allows(self, verb: str, subresource: str = "") -> bool:
        return verb in (dict(self.subresources).get(subresource, ()) if subresource else self.verbs)


_STATUS: Final = ("status", ("get", "patch", "update"))

NAMESPACES: Final = ServedResource(
    "namespaces", "namespace", "Namespace", is_namespaced=False, short_names=("ns",),
    # Nothing here would empty a namespace, so none can be deleted.
    verbs=("create", "get", "list", "patch", "update", "watch"),
)  # fmt: skip
NODES: Final = ServedResource(
    "nodes", "node", "Node", is_namespaced=False, short_names=("no",), subresources=(_STATUS,)
)  # fmt: skip
PODS: Final = ServedResource(
    "pods", "pod", "Pod", short_names=("po",), categories=("all",), subresources=(("binding", ("create",)), _STATUS)
)  # fmt: skip
EVENTS: Final = ServedResource("events", "event", "Event", short_names=("ev",))
LEASES: Final = ServedResource("leases", "lease", "Lease", group="coordination.k8s.io")
EVENTS_K8S_IO: Final = ServedResource(
    "events", "event", "Event", group="events.k8s.io", short_names=("ev",), storage="events"
)
"""The same Events, with the fields' newer names."""

_READ_ONLY: Final = ("get", "list", "watch")
EMPTY: Final[tuple[ServedResource, ...]] = (
    ServedResource("services", "service", "Service", short_names=("svc",), verbs=_READ_ONLY),
    ServedResource("replicationcontrollers", "replicationcontroller", "ReplicationController", verbs=_READ_ONLY),
    ServedResource("persistentvolumeclaims", "persistentvolumeclaim", "PersistentVolumeClaim", verbs=_READ_ONLY),
    ServedResource("persistentvolumes", "persistentvolume", "PersistentVolume", is_namespaced=False, verbs=_READ_ONLY),
    ServedResource("replicasets", "replicaset", "ReplicaSet", group="apps", short_names=("rs",), verbs=_READ_ONLY),
    ServedResource("statefulsets", "statefulset", "StatefulSet", group="apps", short_names=("sts",), verbs=_READ_ONLY),
    ServedResource(
        "poddisruptionbudgets", "poddisruptionbudget", "PodDisruptionBudget", group="policy", short_names=("pdb",),
        verbs=_READ_ONLY,
    ),
    *(
        ServedResource(
            f"{kind.lower()}{ending}", kind.lower(), kind, group="storage.k8s.io", is_namespaced=is_namespaced,
            verbs=_READ_ONLY,
        )
        for kind, ending, is_namespaced in (
            ("StorageClass", "es", False), ("CSINode", "s", False), ("CSIDriver", "s", False),
            ("VolumeAttachment", "s", False),
        )
    ),
    ServedResource(
        "csistoragecapacities", "csistoragecapacity", "CSIStorageCapacity", group="storage.k8s.io", verbs=_READ_ONLY
    ),
)  # fmt: skip
"""What schedulers watch and nobody makes here: a list of them is empty, and creating one is refused."""

RESOURCES: Final[tuple[ServedResource, ...]] = (EVENTS, NAMESPACES, NODES, PODS, LEASES, EVENTS_K8S_IO, *EMPTY)

BY_PREFIX: Final[Mapping[str, Mapping[str, ServedResource]]] = {
    prefix: {one.plural: one for one in RESOURCES if one.prefix == prefix}
    for prefix in dict.fromkeys(one.prefix for one in RESOURCES)
}
"""The resources by the path of their group's version and by plural."""
