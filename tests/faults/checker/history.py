"""What a watch on the API server showed, in the order of revisions."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from tests.support.manifests import Json

POD, NODE, EVENT = "Pod", "Node", "Event"

_SUFFIXES = {
    "": Decimal(1),
    "m": Decimal("0.001"),
    **{unit: Decimal(1000) ** power for power, unit in enumerate(("k", "M", "G", "T", "P", "E"), 1)},
    **{unit: Decimal(1024) ** power for power, unit in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)},
}


@dataclass(frozen=True)
class Change:
    """One object from this revision on; `seen_s` is when the watch brought it, in Unix seconds."""

    revision: int
    kind: str
    is_gone: bool
    content: Json
    seen_s: float

    @property
    def uid(self) -> str:
        return str(self.content["metadata"].get("uid", ""))

    @property
    def name(self) -> str:
        return str(self.content["metadata"]["name"])


def change_of(kind: str, watch_event: Json, seen_s: float | None = None) -> Change:
    """Return what one line of a watch says."""
    content = watch_event["object"]
    revision = int(content["metadata"]["resourceVersion"])
    seen_s = time.time() if seen_s is None else seen_s  # noqa: TID251  # audit logs are by the wall clock
    return Change(revision, kind, watch_event["type"] == "DELETED", content, seen_s)


@dataclass
class History:
    """All changes of Pods, nodes and Events; etcd counts them all with one counter.

    `n_gaps` says how often changes may be missing, because no server had them any more.
    """

    changes: list[Change] = field(default_factory=list)
    n_gaps: int = 0

    def add(self, change: Change) -> None:
        self.changes.append(change)

    def ordered(self) -> list[Change]:
        """Return each change once, by revision: an object that is listed again has the revision it had."""
        unique = {
            (change.revision, change.kind, change.uid, change.is_gone): change for change in reversed(self.changes)
        }
        return sorted(unique.values(), key=lambda change: change.revision)


@functools.lru_cache(4096)
def amount(text: str) -> Decimal:
    """Return what a Kubernetes quantity says, of those that the bench writes."""
    digits = text.rstrip("kmMGTPEi")
    return Decimal(digits) * _SUFFIXES[text[len(digits) :]]


def requested(pod: Json) -> dict[str, Decimal]:
    """Return what a Pod takes: the sum of its containers, or its largest init container, and one of `pods`."""
    total: dict[str, Decimal] = {"pods": Decimal(1)}
    for container in pod["spec"].get("containers", ()):
        for resource, quantity in container.get("resources", {}).get("requests", {}).items():
            total[resource] = total.get(resource, Decimal(0)) + amount(str(quantity))
    for container in pod["spec"].get("initContainers", ()):
        for resource, quantity in container.get("resources", {}).get("requests", {}).items():
            total[resource] = max(total.get(resource, Decimal(0)), amount(str(quantity)))
    return total


def is_ended(pod: Json) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


@dataclass(frozen=True)
class Bound:
    """A Pod got a node: the world as it was one revision before."""

    change: Change
    node_name: str
    world: World

    @property
    def pod(self) -> Json:
        return self.change.content


@dataclass
class World:
    """Nodes by name and Pods by UID at one revision."""

    nodes: dict[str, Change] = field(default_factory=dict)
    pods: dict[str, Change] = field(default_factory=dict)

    def apply(self, change: Change) -> None:
        if change.kind == EVENT:
            return
        objects, key = (self.nodes, change.name) if change.kind == NODE else (self.pods, change.uid)
        if change.is_gone:
            objects.pop(key, None)
        else:
            objects[key] = change

    def copy(self) -> World:
        return World(dict(self.nodes), dict(self.pods))

    def lacking(self, pod: Json, node_name: str) -> Mapping[str, Decimal]:
        """Return of what a node has too little for this Pod, and how much; the Pod itself is not counted."""
        free = {
            name: amount(str(value)) for name, value in self.nodes[node_name].content["status"]["allocatable"].items()
        }
        for other in self.pods.values():
            if other.content["spec"].get("nodeName") != node_name or is_ended(other.content):
                continue
            if other.uid == pod["metadata"]["uid"]:
                continue
            for resource, taken in requested(other.content).items():
                free[resource] = free.get(resource, Decimal(0)) - taken
        wanted = requested(pod)
        return {name: n - free.get(name, Decimal(0)) for name, n in wanted.items() if n > free.get(name, Decimal(0))}


def binds_in(changes: list[Change]) -> Iterator[Bound]:
    """Yield each Pod's first sight with a node, where it was seen without one before."""
    world = World()
    for change in changes:
        before = world.pods.get(change.uid)
        if change.kind == POD and not change.is_gone and before is not None:
            node_name = change.content["spec"].get("nodeName")
            if node_name and not before.content["spec"].get("nodeName"):
                yield Bound(change, node_name, world.copy())
        world.apply(change)
