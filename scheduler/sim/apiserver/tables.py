"""Tables: what kubectl prints, made here as the real API server makes it (pkg/printers/internalversion)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from scheduler.sim.apiserver.cells import age, event_cells, node_cells, pod_cells
from scheduler.sim.apiserver.history import Stored
from scheduler.sim.apiserver.resources import EMPTY, EVENTS, LEASES, NAMESPACES, NODES, PODS, Json, ServedResource


class Column(NamedTuple):
    """`priority` 1 is shown with `-o wide` only."""

    name: str
    description: str
    priority: int = 0


Cells = Callable[[Json, float], list[Any]]

_NAME: Final = Column("Name", "The object's name, unique in its namespace.")
_AGE: Final = Column("Age", "The time since the object was created.")


def _namespace_cells(obj: Json, now: float) -> list[Any]:
    return [obj["metadata"]["name"], obj.get("status", {}).get("phase", ""), age(obj, now)]


def _lease_cells(obj: Json, now: float) -> list[Any]:
    return [obj["metadata"]["name"], (obj.get("spec") or {}).get("holderIdentity") or "", age(obj, now)]


def _plain_cells(obj: Json, now: float) -> list[Any]:
    return [obj["metadata"]["name"], age(obj, now)]


_TABLES: Final[Mapping[str, tuple[tuple[Column, ...], Cells]]] = {
    PODS.stored_as: (
        (
            _NAME,
            Column("Ready", "How many containers are ready, of how many."),
            Column("Status", "The phase of the Pod, or why it isn't running."),
            Column("Restarts", "How often its containers were restarted."),
            _AGE,
            Column("IP", "The Pod's address.", 1),
            Column("Node", "The node it is bound to.", 1),
            Column("Nominated Node", "The node that is kept free for it.", 1),
            Column("Readiness Gates", "How many readiness gates hold, of how many.", 1),
        ),
        pod_cells,
    ),
    NODES.stored_as: (
        (
            _NAME,
            Column("Status", "The status of the node."),
            Column("Roles", "The roles of the node."),
            _AGE,
            Column("Version", "The version that kubelet reports."),
            Column("Internal-IP", "The node's address in the cluster.", 1),
            Column("External-IP", "The node's address outside.", 1),
            Column("OS-Image", "The operating system that the node reports.", 1),
            Column("Kernel-Version", "The kernel that the node reports.", 1),
            Column("Container-Runtime", "The container runtime that the node reports.", 1),
        ),
        node_cells,
    ),
    EVENTS.stored_as: (
        (
            Column("Last Seen", "The time since the Event was last seen."),
            Column("Type", "Normal or Warning."),
            Column("Reason", "Why the object came to its state."),
            Column("Object", "The object that the Event is about."),
            Column("Subobject", "The part of the object.", 1),
            Column("Source", "Who reports it.", 1),
            Column("Message", "What happened."),
            Column("First Seen", "The time since the Event was first seen.", 1),
            Column("Count", "How often it has happened.", 1),
            Column("Name", _NAME.description, 1),
        ),
        event_cells,
    ),
    NAMESPACES.stored_as: ((_NAME, Column("Status", "The status of the namespace."), _AGE), _namespace_cells),
    LEASES.stored_as: ((_NAME, Column("Holder", "Who holds the Lease."), _AGE), _lease_cells),
    **{one.stored_as: ((_NAME, _AGE), _plain_cells) for one in EMPTY},
}


def wants_table(accept: str) -> bool:
    """Return whether the first thing that a client accepts, of what is served here, is a Table."""
    for choice in accept.replace(" ", "").split(","):
        parameters = set(choice.split(";"))
        if {"application/json", "as=Table", "v=v1", "g=meta.k8s.io"} <= parameters:
            return True
        if choice in ("application/json", "*/*", "application/*"):
            return False
    return False


def encode_table(
    resource: ServedResource, page: Sequence[Stored], metadata: Json, now: float, *, has_columns: bool = True
) -> bytes:
    """Return a Table with one row for each object; `now` is in seconds since 1970."""
    columns, cells = _TABLES[resource.stored_as]
    rows = [
        {
            "cells": cells(stored.object, now),
            "object": {
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": stored.object["metadata"],
            },
        }
        for stored in page
    ]
    shown = [
        {
            "name": column.name,
            "type": "string",
            "format": "name" if column.name == "Name" else "",
            "description": column.description,
            "priority": column.priority,
        }
        for column in columns
    ]
    table = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
    return msgspec.json.encode({**table, "columnDefinitions": shown if has_columns else None, "rows": rows})
