"""What was asked of the API servers, from their audit logs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.e2e.verdict import replica_of, seconds
from tests.support.manifests import Json

USER = "vane"

MAY_WRITE = frozenset(
    {
        ("create", "pods/binding"),
        ("patch", "pods/status"),
        ("delete", "pods"),
        ("create", "events"),
        ("patch", "events"),
        ("create", "leases"),
        ("update", "leases"),
        ("create", "tokenreviews"),
        ("create", "subjectaccessreviews"),
    }
)
"""All that Vane has to write in a cluster without volumes that wait for a node."""

_READS = frozenset({"get", "list", "watch"})


@dataclass(frozen=True)
class Asked:
    """One request, with when it came in and when it was answered, in Unix seconds."""

    at_s: float
    answered_s: float
    replica: str
    user: str
    verb: str
    resource: str
    name: str
    code: int
    is_first_page: bool = True

    @property
    def is_read(self) -> bool:
        return self.verb in _READS


def asked_in(events: Iterable[Json]) -> list[Asked]:
    """Return the requests of the audit logs of all API servers, oldest first."""
    asked = []
    for event in events:
        reference = event.get("objectRef", {})
        resource = "/".join(filter(None, (reference.get("resource", ""), reference.get("subresource", ""))))
        if not resource or (event["stage"] == "ResponseComplete" and event["verb"] == "watch"):
            continue  # its start has been logged
        asked.append(
            Asked(
                at_s=seconds(event["requestReceivedTimestamp"]),
                answered_s=seconds(event["stageTimestamp"]),
                replica=replica_of(event) if event.get("userAgent") else "",
                user=event["user"]["username"],
                verb=event["verb"],
                resource=resource,
                name=reference.get("name", ""),
                code=event.get("responseStatus", {}).get("code", 0),
                is_first_page="continue=" not in event.get("requestURI", ""),
            )
        )
    return sorted(asked, key=lambda one: one.at_s)


def most_lists(asked: Sequence[Asked], window_s: float) -> dict[tuple[str, str], int]:
    """Return the most lists of one resource that one replica began within a window, by replica and resource."""
    begun: dict[tuple[str, str], list[float]] = defaultdict(list)
    for one in asked:
        if one.verb == "list" and one.user == USER and one.is_first_page:
            begun[one.replica, one.resource].append(one.at_s)
    return {
        key: max(sum(at_s <= other < at_s + window_s for other in times) for at_s in times)
        for key, times in begun.items()
    }


def n_binds_asked(events: Iterable[Json]) -> Counter[str]:
    """Return how often a bind was asked for, by the Pod's UID."""
    return Counter(event["requestObject"]["metadata"]["uid"] for event in events)


def rate_per_s(times_s: Iterable[float], begin_s: float, end_s: float) -> float:
    return sum(begin_s <= at_s < end_s for at_s in times_s) / (end_s - begin_s)
