"""The rules of Namespaces, Nodes and Leases, and those of each kind by resource."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from scheduler.sim.apiserver.events import EventKind
from scheduler.sim.apiserver.failures import Cause, invalid_value
from scheduler.sim.apiserver.kind import Kind, KindWithStatus
from scheduler.sim.apiserver.pods import PodKind
from scheduler.sim.apiserver.resources import EMPTY, EVENTS, LEASES, NAMESPACES, NODES, PODS, Json, ServedResource


class NamespaceKind(KindWithStatus):
    def default(self, obj: Json) -> None:
        name = obj["metadata"].get("name")
        if name:
            obj["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = name
        obj["spec"] = {"finalizers": ["kubernetes"]}
        obj["status"] = {"phase": "Active"}


class NodeKind(KindWithStatus):
    """A Node's status is taken as it is created, its nodeInfo filled up with empty text."""

    def default(self, obj: Json) -> None:
        obj.setdefault("spec", {})
        status = obj.setdefault("status", {})
        if status.get("capacity") and not status.get("allocatable"):
            status["allocatable"] = dict(status["capacity"])
        _fill_status(status)

    def update(self, resource: ServedResource, new: Json, old: Json, subresource: str) -> list[Cause]:
        causes = super().update(resource, new, old, subresource)
        new.setdefault("spec", {})
        _fill_status(new.setdefault("status", {}))
        return causes


def _fill_status(status: Json) -> None:
    for condition in status.get("conditions") or ():
        condition.setdefault("lastHeartbeatTime", None)
        condition.setdefault("lastTransitionTime", None)
    status.setdefault("daemonEndpoints", {"kubeletEndpoint": {"Port": 0}})
    status["nodeInfo"] = {**dict.fromkeys(_NODE_INFO, ""), **(status.get("nodeInfo") or {})}


_NODE_INFO = (
    "machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion", "kubeletVersion",
    "kubeProxyVersion", "operatingSystem", "architecture",
)  # fmt: skip


class LeaseKind(Kind):
    creates_on_update = True
    needs_version = True

    def default(self, obj: Json) -> None:
        obj.setdefault("spec", {})

    def problems(self, resource: ServedResource, obj: Json) -> list[Cause]:
        del resource
        spec = obj.get("spec") or {}
        duration_s = spec.get("leaseDurationSeconds")
        causes = []
        if duration_s is not None and duration_s <= 0:
            causes.append(invalid_value("spec.leaseDurationSeconds", duration_s, "must be greater than 0"))
        transitions = spec.get("leaseTransitions")
        if transitions is not None and transitions < 0:
            detail = "must be greater than or equal to 0"
            causes.append(invalid_value("spec.leaseTransitions", transitions, detail))
        return causes


_KINDS: Final[Mapping[str, Kind]] = {
    EVENTS.stored_as: EventKind(),
    LEASES.stored_as: LeaseKind(),
    NAMESPACES.stored_as: NamespaceKind(),
    NODES.stored_as: NodeKind(),
    PODS.stored_as: PodKind(),
    **{one.stored_as: Kind() for one in EMPTY},
}


def kind_of(resource: ServedResource) -> Kind:
    return _KINDS[resource.stored_as]
