"""What a Pod's tenant may use of each node: the one place that says it, for the filter, the record and pages.

On a node that publishes what is real, the requests of all Pods there together may reach the tenant's share of it, and
never more than what the node advertises. A share above 100 % holds only where every live signal that bounds it has a
sample within its limits; without one it is 100 %. Pods of no tenant have 100 % of what is real. A node that publishes
nothing is not looked at: there NodeResourcesFit sees to 100 % of what is advertised.
"""

from __future__ import annotations

import numpy as np

from scheduler.model.arrays import INT64_MAX, BoolArray, IntArray, Rows
from scheduler.model.pods import PodInfo
from scheduler.model.requests import Amounts
from scheduler.model.rules import Rule, Tenant
from scheduler.model.snapshot import Snapshot
from scheduler.model.workloads import Namespace
from scheduler.rules.compiled import compiled_rules

WHOLE = 1000
"""100 % in thousandths."""


def tenant_of(pod: PodInfo, snapshot: Snapshot) -> Tenant | None:
    """Return the first tenant that covers the Pod's namespace; one that asks for labels needs to know them."""
    tenants = snapshot.signals.rules.tenants
    if not tenants:
        return None
    namespace = snapshot.catalog.get(Namespace, pod.namespace)
    labels = None if namespace is None else namespace.metadata.labels or {}

    def first() -> Tenant | None:
        return next((tenant for tenant in tenants if tenant.covers(pod.namespace, labels)), None)

    return snapshot.memo.get(("the tenant of", pod.namespace), (tenants, namespace), first)


def bounded_requests(tenant: Tenant | None, pod: PodInfo, snapshot: Snapshot) -> Amounts:
    """Return the Pod's requests of the resources of which some tenant may not use all that is advertised."""
    nodes = snapshot.nodes
    return {
        name: amount
        for name, amount in pod.requests.items()
        if amount > 0 and (nodes.withheld(name) is not None or _per_mille(tenant, name) < WHOLE)
    }


def held(tenant: Tenant | None, pod: PodInfo, snapshot: Snapshot) -> BoolArray | None:
    """Return bool (n_rows,), True where every bound of the tenant lets its share be above 100 %.

    None where it is all the same: no bounds, or no share above 100 %.
    """
    if tenant is None or not tenant.bounds or tenant.per_mille <= WHOLE:
        return None
    holds = np.ones(snapshot.nodes.n_rows, dtype=np.bool_)
    for bound in tenant.bounds:
        holds &= bound_holds(bound, pod, snapshot)
    return holds


def bound_holds(bound: Rule, pod: PodInfo | None, snapshot: Snapshot) -> BoolArray:
    """Return bool (n_rows,), True where a signal has a sample within its limits; nowhere while its data is in doubt."""
    reading = compiled_rules(snapshot).by_name[bound.name].reading
    column, tripped = reading.column(pod, snapshot), reading.tripped(pod, snapshot)
    if column is None or tripped is None or bound.name in snapshot.signals.open_valves:
        return np.zeros(snapshot.nodes.n_rows, dtype=np.bool_)
    holds: BoolArray = column.has_sample & ~tripped
    return holds


def most(tenant: Tenant | None, resource: str, holds: BoolArray | None, snapshot: Snapshot) -> IntArray:
    """Return int64 (n_rows,), how much of a resource all Pods of each node may request if one of the tenant's comes.

    In millicores and whole units; INT64_MAX where the node publishes nothing. `holds` is what `held` has said.
    """
    per_mille = _per_mille(tenant, resource)
    if per_mille <= WHOLE or holds is None:
        return _share(resource, per_mille, snapshot)
    return np.where(holds, _share(resource, per_mille, snapshot), _share(resource, WHOLE, snapshot))


def _per_mille(tenant: Tenant | None, resource: str) -> int:
    return tenant.per_mille if tenant is not None and resource in tenant.resources else WHOLE


def _share(resource: str, per_mille: int, snapshot: Snapshot) -> IntArray:
    """Return int64 (n_rows,), so much of what is real, rounded down, and at most what is advertised."""
    nodes = snapshot.nodes
    index, withheld, publishes = nodes.resources[resource], nodes.withheld(resource), nodes.publishes

    def compute(rows: Rows) -> IntArray:
        advertised = nodes.allocatable[index][rows]
        real = advertised if withheld is None else advertised - withheld[rows]
        # In two parts, since a product with all of it could wrap.
        share = real // WHOLE * per_mille + real % WHOLE * per_mille // WHOLE
        return np.where(publishes[rows], np.minimum(share, advertised), INT64_MAX)

    return snapshot.by_row(("share of what is real", resource, per_mille), compute)
