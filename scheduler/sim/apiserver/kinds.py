"""The rules of each kind, by resource."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from scheduler.sim.apiserver.events import EventKind
from scheduler.sim.apiserver.kind import Kind, LeaseKind, NamespaceKind, NodeKind
from scheduler.sim.apiserver.pods import PodKind
from scheduler.sim.apiserver.resources import EMPTY, EVENTS, LEASES, NAMESPACES, NODES, PODS, Resource

_KINDS: Final[Mapping[str, Kind]] = {
    EVENTS.stored_as: EventKind(),
    LEASES.stored_as: LeaseKind(),
    NAMESPACES.stored_as: NamespaceKind(),
    NODES.stored_as: NodeKind(),
    PODS.stored_as: PodKind(),
    **{one.stored_as: Kind() for one in EMPTY},
}


def kind_of(resource: Resource) -> Kind:
    return _KINDS[resource.stored_as]
