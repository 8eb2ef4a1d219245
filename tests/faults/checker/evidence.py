"""All that is judged of a run, and what its fault excuses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.faults.checker.history import Bound, Change, History, binds_in
from tests.faults.checker.processes import Flat, Sample
from tests.faults.checker.requests import asked_in
from tests.support.manifests import Json

STRICT_S = 0.1

UNPLACEABLE = "bench/unplaceable"
"""Label of Pods that fit nowhere, on purpose."""


@dataclass(frozen=True)
class Allowance:
    """What a row's fault excuses; seconds.

    stale_s: how old what Vane knows may be, so that its bind crosses somebody else's change. network_s: how long a
    request may be under way. late_s: how long after a Pod's bind an Event may still say that it was refused. With
    `has_many_leaders` replicas bind side by side, and each is another to the other.
    """

    stale_s: float = STRICT_S
    has_many_leaders: bool = False
    network_s: float = 0.0
    late_s: float = 5.0
    flat: Flat = field(default_factory=Flat)


@dataclass
class Evidence:
    """The changes by revision, the audit events of all API servers, samples of processes."""

    history: History
    audit: Sequence[Json] = ()
    samples: Sequence[Sample] = ()
    allowance: Allowance = Allowance()
    strict_from_s: float = math.inf
    """From then on, in Unix seconds, what Vane knows must be as fresh as ever."""
    told_apart: list[str] = field(default_factory=list)
    """What broke nothing, as somebody else's change came just before."""

    def __post_init__(self) -> None:
        self.changes: list[Change] = self.history.ordered()
        self.binds: list[Bound] = list(binds_in(self.changes))
        self.asked = asked_in(self.audit)
        self.bindings: list[Json] = [
            event
            for event in self.audit
            if event["verb"] == "create"
            and event.get("objectRef", {}).get("resource") == "pods"
            and event["objectRef"].get("subresource") == "binding"
            and "requestObject" in event
        ]
        done = (event for event in self.bindings if event["responseStatus"]["code"] == 201)
        self.binding_of = {uid_bound(event): event for event in done}
        """The request that bound a Pod, by UID."""

    def stale_s(self, at_s: float) -> float:
        """Return how old what Vane knew at a moment may have been."""
        return STRICT_S if at_s >= self.strict_from_s else self.allowance.stale_s


def uid_bound(binding: Json) -> str:
    """Return the UID that a binding names; its Pod's name if it names none."""
    return str(binding["requestObject"]["metadata"].get("uid") or binding["objectRef"]["name"])


def is_ours(pod: Json) -> bool:
    return bool(pod["spec"].get("schedulerName") == "vane")


def called(change: Change) -> str:
    return f"{change.content['metadata'].get('namespace', '')}/{change.name}".lstrip("/")
