"""The kinds of objects that Vane lists and watches, as a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from scheduler.model.objects import decode_node, decode_pod


@dataclass(frozen=True, slots=True)
class ResourceKind:
    """How one kind is listed, and how its objects are read.

    `decode` gives an object that says so where its content cannot be read, and raises InvalidObjectError where not
    even its metadata can. `params` are query parameters of both list and watch.
    """

    name: str
    path: str
    decode: Callable[[bytes | msgspec.Raw], Any]
    params: Mapping[str, str] = field(default_factory=dict)


PODS = ResourceKind(
    name="Pod",
    path="/api/v1/pods",
    decode=decode_pod,
    # As kube-scheduler: a Pod that ends arrives as DELETED, and finished ones cost no memory.
    params={"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"},
)

NODES = ResourceKind(
    name="Node",
    path="/api/v1/nodes",
    decode=decode_node,
)

KINDS: Mapping[str, ResourceKind] = {kind.name: kind for kind in (NODES, PODS)}
"""All kinds by name; a profile says which of them its plugins need."""
