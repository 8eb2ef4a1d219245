"""What a record keeps of a Pod's tenant: its share, whether its bounds held, and the figures of one node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scheduler.decision.decision import Decision
from scheduler.model.arrays import BoolArray
from scheduler.model.pods import PodInfo
from scheduler.model.rules import Rule, Tenant
from scheduler.model.snapshot import Snapshot
from scheduler.model.tenants import key_of
from scheduler.rules.compiled import compiled_rules
from scheduler.rules.tenants import bound_holds, bounded_requests, held, most, tenant_of


@dataclass(frozen=True, slots=True)
class BoundUse:
    """A live signal that bounds the tenant: on how many of the publishing nodes it held, and the node's value."""

    signal: str
    freshness: str
    age_s: float
    n_holding: int
    value: float


@dataclass(frozen=True, slots=True)
class TenantFigure:
    """One resource on the node: what all Pods there requested before, this Pod's request and the most of both.

    In millicores and whole units.
    """

    resource: str
    requested: int
    request: int
    most: int


@dataclass(frozen=True, slots=True)
class TenantUse:
    """What the Pod's tenant could use; `tenant` is "" for a Pod of none.

    overcommit
        Its share of what is real, 1.0 for a Pod of none, wherever its bounds held.
    n_publishing
        How many nodes say what is real: the others are not looked at.
    node
        The chosen node, else that of the refused which had the most room for the resource named first, else "";
        `figures` are its, none where it publishes nothing.
    """

    tenant: str
    overcommit: float
    n_publishing: int
    bounds: tuple[BoundUse, ...]
    node: str
    figures: tuple[TenantFigure, ...]


def tenant_use(pod: PodInfo, snapshot: Snapshot, decision: Decision) -> TenantUse | None:
    """Return what to keep; None without tenants, or if no node publishes what is real."""
    nodes = snapshot.nodes
    if not snapshot.signals.rules.tenants or not nodes.publishes.any():
        return None
    tenant = tenant_of(pod, snapshot)
    row = decision.row if decision.row >= 0 else _nearest(tenant, pod, snapshot, decision)
    return TenantUse(
        tenant="" if tenant is None else tenant.name,
        overcommit=1.0 if tenant is None else tenant.per_mille / 1000,
        n_publishing=int(np.count_nonzero(nodes.publishes)),
        bounds=tuple(_bound_use(bound, pod, snapshot, row) for bound in tenant.bounds) if tenant else (),
        node=nodes.names[row] if row >= 0 else "",
        figures=tuple(_figures(tenant, pod, snapshot, row)) if row >= 0 and nodes.publishes[row] else (),
    )


def _nearest(tenant: Tenant | None, pod: PodInfo, snapshot: Snapshot, decision: Decision) -> int:
    """Return the row of those refused for the tenant's sake that lacked the least, -1 where none was.

    Of equal ones the first by name, so that it does not depend on the order in which nodes have come.
    """
    nodes, key = snapshot.nodes, key_of(tenant)
    refused: BoolArray = np.zeros(nodes.n_rows, dtype=np.bool_)
    for refusal in decision.diagnosis.refusals:
        if refusal.rule == key:
            refused |= refusal.mask
    rows = np.flatnonzero(refused)
    resource = next((name for name in bounded_requests(tenant, pod, snapshot) if name in nodes.resources), "")
    if not len(rows) or not resource:
        return -1
    room = most(tenant, resource, held(tenant, pod, snapshot), snapshot) - nodes.requested[nodes.resources[resource]]
    most_room = rows[room[rows] == room[rows].max()]
    nearest: int = min(most_room.tolist(), key=lambda row: nodes.names[row])
    return nearest


def _bound_use(bound: Rule, pod: PodInfo, snapshot: Snapshot, row: int) -> BoundUse:
    column = compiled_rules(snapshot).by_name[bound.name].reading.column(pod, snapshot)
    n_holding = int(np.count_nonzero(bound_holds(bound, pod, snapshot) & snapshot.nodes.publishes))
    if column is None:
        return BoundUse(bound.signal, "absent", float("inf"), n_holding, float("nan"))
    value = float(column.values[row]) if row >= 0 else float("nan")
    return BoundUse(bound.signal, column.freshness.value, column.age_s, n_holding, value)


def _figures(tenant: Tenant | None, pod: PodInfo, snapshot: Snapshot, row: int) -> Sequence[TenantFigure]:
    nodes, holds = snapshot.nodes, held(tenant, pod, snapshot)
    found = []
    for name, amount in bounded_requests(tenant, pod, snapshot).items():
        index = nodes.resources.get(name)
        if index is not None:
            limit = int(most(tenant, name, holds, snapshot)[row])
            found.append(TenantFigure(name, int(nodes.requested[index, row]), amount, limit))
    return found
