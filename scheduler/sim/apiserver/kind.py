"""What differs between kinds of objects: defaults, what is refused, what an update may change."""

from __future__ import annotations

from scheduler.sim.apiserver.failures import Cause, invalid_value
from scheduler.sim.apiserver.resources import Json, Resource


class Kind:
    """A kind without any rule of its own; the others are made from it.

    All methods may change the objects they get: those are the store's own.
    """

    creates_on_update = False
    """Whether PUT to a name that isn't there creates it."""
    needs_version = False
    """Whether PUT must name the resourceVersion that it replaces."""
    is_returned_when_deleted = False
    """Whether DELETE answers with the object, and not only with its uid."""

    def default(self, obj: Json) -> None:
        """Fill in what a new object leaves open, and drop what only others may set."""

    def problems(self, resource: Resource, obj: Json) -> list[Cause]:
        """Return what is wrong with a new or updated object, beside its metadata."""
        del resource, obj
        return []

    def update(self, resource: Resource, new: Json, old: Json, subresource: str) -> list[Cause]:
        """Put back what an update of this subresource doesn't touch; return what is wrong with the rest."""
        del old, subresource
        return self.problems(resource, new)

    def graces_s(self, obj: Json, asked_s: int | None) -> list[int]:
        """Return the seconds of grace in each state that the object goes through before it is gone."""
        del obj, asked_s
        return []

    def to_stored(self, resource: Resource, obj: Json) -> Json:
        """Return the object as it is kept, from how this resource shows it."""
        del resource
        return obj

    def from_stored(self, resource: Resource, obj: Json) -> Json:
        """Return the object as this resource shows it."""
        del resource
        return obj


class KindWithStatus(Kind):
    """Spec and status are written by two ways, and each leaves the other's part alone."""

    def update(self, resource: Resource, new: Json, old: Json, subresource: str) -> list[Cause]:
        part = "spec" if subresource == "status" else "status"
        if part in old:
            new[part] = old[part]
        else:
            new.pop(part, None)
        return self.problems(resource, new)


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

    def update(self, resource: Resource, new: Json, old: Json, subresource: str) -> list[Cause]:
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

    def problems(self, resource: Resource, obj: Json) -> list[Cause]:
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
