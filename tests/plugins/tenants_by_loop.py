"""What a tenant may use of a node, worked out node by node from the JSON and in fractions: the proof of the columns."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import floor
from typing import Any

from scheduler.errors import InvalidObjectError
from scheduler.model.objects import Node
from scheduler.model.pods import PodInfo
from scheduler.model.quantity import parse_quantity
from scheduler.model.requests import is_counted
from scheduler.model.rules import Tenant
from scheduler.model.workloads import Namespace

ANNOTATION = "vane.dev/real-allocatable"


def amount_of(resource: str, quantity: object) -> Fraction:
    """Return millicores of cpu, whole units of all else."""
    return parse_quantity(str(quantity)) * (1000 if resource == "cpu" else 1)


def advertised(node: Node, resource: str) -> int:
    return floor(amount_of(resource, (node.status.allocatable or {}).get(resource, 0)))


def published(node: Node) -> Mapping[str, Any] | None:
    """Return what the owner says, nothing of it where it cannot be read as a whole, None where nothing is said."""
    text = (node.metadata.annotations or {}).get(ANNOTATION)
    if text is None:
        return None
    try:
        said = json.loads(text)
        whole = isinstance(said, dict) and all(
            is_counted(name) and not isinstance(value, bool | list | dict) and amount_of(name, value) >= 0
            for name, value in said.items()
        )
    except (ValueError, InvalidObjectError):
        return {}
    return said if whole else {}


def tenant_by_loop(namespace: str, known: Namespace | None, tenants: Iterable[Tenant]) -> Tenant | None:
    for tenant in tenants:
        named = not tenant.namespaces or any(fnmatch.fnmatchcase(namespace, glob) for glob in tenant.namespaces)
        labels = {} if known is None else known.metadata.labels or {}
        is_labelled = all(labels.get(key) in values for key, values in tenant.namespace_labels.items())
        if named and is_labelled and not (known is None and tenant.namespace_labels):
            return tenant
    return None


def most_by_loop(tenant: Tenant | None, resource: str, node: Node, holds: bool) -> int | None:
    """Return how much of a resource all Pods of a node may request, None where the node publishes nothing."""
    said = published(node)
    if said is None:
        return None
    offered = advertised(node, resource)
    real = min(floor(amount_of(resource, said[resource])), offered) if resource in said else offered
    share = Fraction(1)
    if tenant is not None and resource in tenant.resources:
        share = Fraction(tenant.per_mille, 1000)
    if share > 1 and tenant is not None and tenant.bounds and not holds:
        share = Fraction(1)
    return min(floor(real * share), offered)


def is_beyond(tenant: Tenant | None, pod: PodInfo, node: Node, placed: Iterable[PodInfo], holds: bool) -> bool:
    """Whether the node must not take the Pod, for the tenant's sake."""
    others = list(placed)
    for resource, amount in pod.requests.items():
        most = most_by_loop(tenant, resource, node, holds)
        used = sum(other.usage.requests.get(resource, 0) for other in others)
        if most is not None and amount > 0 and used + amount > most:
            return True
    return False


def is_full(pod: PodInfo, node: Node, placed: Iterable[PodInfo]) -> bool:
    """Whether the node must not take the Pod for what it advertises, which is NodeResourcesFit's to say."""
    others = list(placed)
    return any(
        amount > 0 and sum(one.usage.requests.get(name, 0) for one in others) + amount > advertised(node, name)
        for name, amount in pod.requests.items()
    )
