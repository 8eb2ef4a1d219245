"""What the API server's audit log says of two replicas: who led when, and who bound what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from tests.support.manifests import Json


@dataclass(frozen=True)
class Held:
    """One successful write of the Lease: from then on its holder may act for `duration_s`, unless another takes it."""

    at_s: float
    holder: str
    duration_s: float


@dataclass(frozen=True)
class BindAsked:
    """One binding request as the API server received it."""

    at_s: float
    replica: str
    uid: str
    code: int


def seconds(stamp: str) -> float:
    """Return the seconds of an audit event's timestamp since 1970."""
    return datetime.fromisoformat(stamp).timestamp()


def replica_of(event: Json) -> str:
    """Return the identity that stands last in the User-Agent, before the part of the replica that asked."""
    return str(event["userAgent"]).rsplit(" ", 1)[-1].partition("/")[0]


def leases_held(events: Sequence[Json]) -> list[Held]:
    """Return the successful writes of the Lease, oldest first."""
    held = []
    for event in events:
        if event["verb"] in ("create", "update") and event["responseStatus"]["code"] in (200, 201):
            spec = event["requestObject"]["spec"]
            # Counted from when the request came in: what the holder may count on is never more.
            at_s = seconds(event["stageTimestamp"])
            held.append(Held(at_s, spec.get("holderIdentity") or "", float(spec["leaseDurationSeconds"])))
    return sorted(held, key=lambda one: one.at_s)


def binds_asked(events: Sequence[Json]) -> list[BindAsked]:
    """Return the binding requests, oldest first."""
    asked = [
        BindAsked(
            seconds(event["requestReceivedTimestamp"]),
            replica_of(event),
            event["requestObject"]["metadata"]["uid"],
            event["responseStatus"]["code"],
        )
        for event in events
    ]
    return sorted(asked, key=lambda one: one.at_s)


def past_their_lease(binds: Sequence[BindAsked], held: Sequence[Held]) -> list[str]:
    """Return what was asked by a replica that no longer held the Lease, or whose time had run out."""
    return [f"{bind} under {lease}" for bind, lease in _under_which(binds, held) if not _covers(lease, bind)]


def _under_which(binds: Sequence[BindAsked], held: Sequence[Held]) -> Iterator[tuple[BindAsked, Held | None]]:
    for bind in binds:
        before = [lease for lease in held if lease.at_s <= bind.at_s]
        yield bind, before[-1] if before else None


def _covers(lease: Held | None, bind: BindAsked) -> bool:
    return lease is not None and lease.holder == bind.replica and bind.at_s <= lease.at_s + lease.duration_s


def bound_by_another(binds: Sequence[BindAsked]) -> list[str]:
    """Return the requests for Pods that the other replica had bound before."""
    owner: dict[str, str] = {}
    found = []
    for bind in binds:
        if owner.get(bind.uid, bind.replica) != bind.replica:
            found.append(f"{bind}, but {owner[bind.uid]} had bound it")
        if bind.code == 201:
            owner.setdefault(bind.uid, bind.replica)
    return found
