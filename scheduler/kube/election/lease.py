"""The Lease as the API server keeps it: read, and written with its resourceVersion as the guard."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from scheduler.errors import InvalidObjectError
from scheduler.kube.binder.events import REPORTING_INSTANCE_LIMIT, event_name, micro_time
from scheduler.kube.resources import ResourceKind
from scheduler.kube.transport import Transport
from scheduler.model.structs import MALFORMED_JSON, ObjectMeta

JsonObject = dict[str, Any]

_encode = msgspec.json.Encoder().encode


class _ElectionRecord(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    lease_transitions: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None


class _LeaseObject(msgspec.Struct):
    metadata: ObjectMeta
    spec: _ElectionRecord = msgspec.field(default_factory=_ElectionRecord)


_leases = msgspec.json.Decoder(_LeaseObject)
_documents = msgspec.json.Decoder(JsonObject)


@dataclass(frozen=True, slots=True)
class Lease:
    """One state of the Lease.

    `holder` is "" where it has been released. `duration_s` is the holder's, 0 where it named none. `document` is the
    whole object: labels and whatever else is not ours is written back as it was.
    """

    metadata: ObjectMeta
    holder: str
    duration_s: int
    transitions: int
    acquired: str
    renewed: str
    document: JsonObject = field(repr=False, compare=False)

    def is_same_as(self, other: Lease | None) -> bool:
        """Whether nothing was renewed, taken or released between the two; a label may have changed."""
        return other is not None and self.record == other.record

    @property
    def record(self) -> tuple[str, int, int, str, str]:
        return self.holder, self.duration_s, self.transitions, self.acquired, self.renewed


def decode_lease(raw: bytes | msgspec.Raw) -> Lease:
    """Read a Lease; raise InvalidObjectError for what is none, such as the page of a proxy."""
    try:
        lease, document = _leases.decode(raw), _documents.decode(raw)
    except MALFORMED_JSON as error:
        raise InvalidObjectError(f"not a Lease: {error}") from error
    spec = lease.spec
    return Lease(
        metadata=lease.metadata,
        holder=spec.holder_identity or "",
        duration_s=spec.lease_duration_seconds or 0,
        transitions=spec.lease_transitions or 0,
        acquired=spec.acquire_time or "",
        renewed=spec.renew_time or "",
        document=document,
    )


class LeaseClient:
    """Reads and writes one Lease; all methods raise ApiError, TransportError and InvalidObjectError.

    `duration_s` is rounded up to the whole seconds that a Lease can name: others may wait too long, never too short.
    `now_ns` is the wall clock, which only fills the two times that people read; nothing is computed from them.
    """

    def __init__(
        self,
        transport: Transport,
        namespace: str,
        name: str,
        identity: str,
        duration_s: float,
        now_ns: Callable[[], int],
    ) -> None:
        self._transport = transport
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._duration_s = math.ceil(duration_s)
        self._now_ns = now_ns
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"

    @property
    def kind(self) -> ResourceKind:
        """What a Reflector needs to watch this one Lease."""
        return ResourceKind("Lease", self._collection, decode_lease, {"fieldSelector": f"metadata.name={self._name}"})

    def get(self, timeout_s: float) -> Lease:
        return decode_lease(self._transport.get(f"{self._collection}/{self._name}", timeout_s=timeout_s))

    def create(self, timeout_s: float, like: Lease | None = None) -> Lease:
        """Make the Lease, ours from the start; one `like` ours, if it was deleted while we held it."""
        now = micro_time(self._now_ns())
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self._name, "namespace": self._namespace},
            "spec": self._spec(
                like.acquired if like is not None else now, now, like.transitions if like is not None else 0
            ),
        }
        return decode_lease(self._transport.request("POST", self._collection, body=_encode(body), timeout_s=timeout_s))

    def take(self, lease: Lease, timeout_s: float) -> Lease:
        """Make the Lease ours. If it already names us, the answer to an earlier try was lost."""
        if lease.holder == self._identity:
            return self.renew(lease, timeout_s)
        now = micro_time(self._now_ns())
        return self._update(lease, self._spec(now, now, lease.transitions + 1), timeout_s)

    def renew(self, lease: Lease, timeout_s: float) -> Lease:
        now = micro_time(self._now_ns())
        return self._update(lease, self._spec(lease.acquired or now, now, lease.transitions), timeout_s)

    def release(self, lease: Lease, timeout_s: float) -> Lease:
        """Name no holder; one second, for clients that look at nothing else."""
        now = micro_time(self._now_ns())
        spec = {**self._spec(now, now, lease.transitions), "holderIdentity": "", "leaseDurationSeconds": 1}
        return self._update(lease, spec, timeout_s)

    def write_event(self, lease: Lease, what: str, timeout_s: float) -> None:
        """Write the Event LeaderElection about the Lease: `IDENTITY became leader`."""
        now = self._now_ns()
        metadata = lease.metadata
        body = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {
                "name": event_name(self._name, now, lambda: str(uuid.uuid4())),
                "namespace": self._namespace,
            },
            "eventTime": micro_time(now),
            "reportingController": "vane",
            "reportingInstance": self._identity[:REPORTING_INSTANCE_LIMIT],
            "action": "LeaderElection",
            "reason": "LeaderElection",
            "regarding": {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "namespace": self._namespace,
                "name": self._name,
                "uid": metadata.uid,
                "resourceVersion": metadata.resource_version,
            },
            "note": f"{self._identity} {what}",
            "type": "Normal",
        }
        path = f"/apis/events.k8s.io/v1/namespaces/{self._namespace}/events"
        self._transport.request("POST", path, body=_encode(body), timeout_s=timeout_s)

    def _spec(self, acquired: str, renewed: str, transitions: int) -> JsonObject:
        return {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": self._duration_s,
            "acquireTime": acquired,
            "renewTime": renewed,
            "leaseTransitions": transitions,
        }

    def _update(self, lease: Lease, spec: JsonObject, timeout_s: float) -> Lease:
        """Replace the Lease as it was in `lease`; the API server answers 409 if it has changed since."""
        old = lease.document.get("spec")
        body = {**lease.document, "spec": {**(old if isinstance(old, dict) else {}), **spec}}
        path = f"{self._collection}/{self._name}"
        return decode_lease(self._transport.request("PUT", path, body=_encode(body), timeout_s=timeout_s))
