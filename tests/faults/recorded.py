"""A run written by hand, as audit log and watch would show it: what seeded violations are sown in."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tests.faults.checker.evidence import Allowance, Evidence
from tests.faults.checker.history import EVENT, NODE, POD, History, change_of
from tests.faults.checker.processes import Sample
from tests.support import manifests
from tests.support.manifests import Json

BEGIN_S = 1_700_000_000.0


class Run:
    """Grows by one revision with each call; `wait` lets time pass between them."""

    def __init__(self) -> None:
        self.history = History()
        self.audit: list[Json] = []
        self.samples: list[Sample] = []
        self.revision = 100
        self.now_s = BEGIN_S
        self._objects: dict[tuple[str, str], Json] = {}

    def wait(self, seconds: float) -> None:
        self.now_s += seconds

    def node(self, name: str, **shape: Any) -> None:
        self._changed(NODE, manifests.node(name, **shape))

    def remove_node(self, name: str) -> None:
        self._removed(NODE, name)

    def pod(self, name: str, ours: bool = True, **shape: Any) -> None:
        self._changed(POD, manifests.pod(name, scheduler_name="vane" if ours else "other", **shape))

    def remove_pod(self, name: str) -> None:
        self._removed(POD, name)

    def change_spec(self, name: str, **fields: Any) -> None:
        pod = self._objects[POD, name]
        self._changed(POD, {**pod, "spec": {**pod["spec"], **fields}})

    def bind(self, name: str, node: str, replica: str = "a", user: str = "vane", code: int = 201) -> None:
        """Let a replica ask for a bind, and the API server do it unless the code says otherwise."""
        self.asked("create", "pods/binding", replica, user, code, {"metadata": {"name": name, "uid": f"uid-{name}"}})
        if code == 201:
            self.change_spec(name, nodeName=node)

    def lease(self, holder: str, seconds: int = 15) -> None:
        spec = {"spec": {"holderIdentity": holder, "leaseDurationSeconds": seconds}}
        self.asked("update", "leases", holder, "vane", 200, spec, name="vane")

    def event(self, reason: str, pod: str, message: str, name: str = "") -> None:
        """Let an Event be written; one that has its name already becomes a series by that."""
        event = {
            "metadata": {"name": name or f"event-{self.revision}", "namespace": "default"},
            "involvedObject": {"kind": "Pod", "name": pod, "uid": f"uid-{pod}"},
            "reason": reason,
            "message": message,
            "reportingComponent": "vane",
        }
        self._changed(EVENT, event)

    def asked(
        self,
        verb: str,
        resource: str,
        replica: str = "a",
        user: str = "vane",
        code: int = 200,
        body: Json | None = None,
        name: str = "",
    ) -> None:
        stamp = datetime.fromtimestamp(self.now_s, UTC).isoformat()
        resource, _, subresource = resource.partition("/")
        event = {
            "stage": "ResponseComplete",
            "verb": verb,
            "user": {"username": user},
            "userAgent": f"vane/0.1.0 (linux/amd64) {replica}/binder",
            "requestURI": f"/{resource}",
            "objectRef": {"resource": resource, "subresource": subresource, "name": name},
            "responseStatus": {"code": code},
            "requestReceivedTimestamp": stamp,
            "stageTimestamp": stamp,
        }
        self.audit.append(event if body is None else {**event, "requestObject": body})

    def take(self, role: str, mib: float, n_descriptors: int) -> None:
        self.samples.append(Sample(self.now_s, 1, role, int(mib * 2**20), n_descriptors))

    def evidence(self, **allowed: Any) -> Evidence:
        return Evidence(self.history, self.audit, self.samples, Allowance(**allowed))

    def _changed(self, kind: str, content: Json) -> None:
        self.revision += 1
        name = content["metadata"]["name"]
        metadata = {**content["metadata"], "uid": f"uid-{name}", "resourceVersion": str(self.revision)}
        self._objects[kind, name] = {**content, "metadata": metadata}
        self.history.add(change_of(kind, {"type": "MODIFIED", "object": self._objects[kind, name]}, self.now_s))

    def _removed(self, kind: str, name: str) -> None:
        self.revision += 1
        content = self._objects.pop((kind, name))
        metadata = {**content["metadata"], "resourceVersion": str(self.revision)}
        gone = {"type": "DELETED", "object": {**content, "metadata": metadata}}
        self.history.add(change_of(kind, gone, self.now_s))
