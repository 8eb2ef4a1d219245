"""TenantOvercommit: nodes that publish what is real take no more than the Pod's tenant may use of that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from scheduler.framework.events import Action, ClusterEvent, EventInterest, QueueingHint, Resource
from scheduler.framework.plugin import FilterPlugin, FreedBy, PreFilterPlugin
from scheduler.framework.status import SKIP, Code, PreFilterResult, Rejection, Status
from scheduler.model.arrays import BoolArray, Rows
from scheduler.model.objects import Node
from scheduler.model.pods import PodInfo
from scheduler.model.real_allocatable import ANNOTATION
from scheduler.model.requests import Amounts
from scheduler.model.rules import Tenant
from scheduler.model.snapshot import Snapshot
from scheduler.model.tenants import key_of
from scheduler.plugins.shared.own_namespace import OWN_NAMESPACE
from scheduler.rules.tenants import bounded_requests, held, most, tenant_of


@dataclass(frozen=True, slots=True)
class _State:
    """The Pod's tenant, what of its requests is looked at, and where the tenant's bounds hold (None: all the same)."""

    tenant: Tenant | None
    wanted: Amounts
    holds: BoolArray | None


class TenantOvercommit(PreFilterPlugin, FilterPlugin):
    """Refuses nodes where the requests of all Pods and this one are more than its tenant may use of what is real.

    The code says whether removing Pods could help: not where the request alone is more. Preemption can't change what a
    live signal says, so where the bounds hold is settled once for each attempt.
    """

    freed_by = FreedBy.ROOM

    kinds = ("Namespace",)

    def prefilter(self, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult | Status:
        if not snapshot.signals.rules.tenants or not snapshot.nodes.publishes.any():
            return SKIP
        tenant = tenant_of(pod, snapshot)
        wanted = bounded_requests(tenant, pod, snapshot)
        return PreFilterResult(_State(tenant, wanted, held(tenant, pod, snapshot))) if wanted else SKIP

    def filter(self, state: _State, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[Rejection]:
        nodes = snapshot.nodes
        rejections: list[Rejection] = []
        for name, amount in state.wanted.items():
            index = nodes.resources.get(name)
            if index is None:
                continue  # nobody has it, which NodeResourcesFit tells
            now = most(state.tenant, name, state.holds, snapshot)[rows]
            requested = nodes.requested[index][rows]
            short = now - requested < amount
            if not short.any():
                continue
            at_best = now if state.holds is None else most(state.tenant, name, None, snapshot)[rows]
            rejections += _refused(state, name, short, now < amount, at_best - requested >= amount)
        return rejections

    def events(self) -> Sequence[EventInterest]:
        node = Action.ADD | Action.UPDATE_NODE_ALLOCATABLE | Action.UPDATE_NODE_ANNOTATION | Action.UPDATE_NODE_LABEL
        return (
            EventInterest(Resource.ASSIGNED_POD, Action.DELETE, _placed_pod_left),
            EventInterest(Resource.ASSIGNED_POD, Action.UPDATE_POD_SCALE_DOWN),
            EventInterest(Resource.TARGET_POD, Action.UPDATE_POD_SCALE_DOWN),
            EventInterest(Resource.NODE, node, _node_changed),
            OWN_NAMESPACE,
            EventInterest(Resource.SIGNALS, Action.REFRESHED, _a_verdict_changed),
            EventInterest(Resource.RULES, Action.REFRESHED, _a_verdict_changed),
        )


def _refused(
    state: _State, resource: str, short: BoolArray, hopeless: BoolArray, fits_at_best: BoolArray
) -> Iterator[Rejection]:
    """Yield refusals with disjoint masks: by whether the tenant's bounds are why, and whether eviction may help."""
    whose = "pods without a tenant" if state.tenant is None else f'tenant "{state.tenant.name}"'
    reason = f"node(s) had too little real {resource} for {whose}"
    for mask, text in (
        (short & ~fits_at_best, reason),
        (short & fits_at_best, f"{reason} without overcommit, whose bounds did not hold"),
    ):
        for code, part in (
            (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, mask & hopeless),
            (Code.UNSCHEDULABLE, mask & ~hopeless),
        ):
            if part.any():
                yield Rejection(part, code, text, key_of(state.tenant))


def _placed_pod_left(_pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    gone = event.old
    held_room = isinstance(gone, PodInfo) and (gone.pod.spec.node_name or gone.pod.status.nominated_node_name)
    return QueueingHint.QUEUE if held_room else QueueingHint.SKIP


def _node_changed(_pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    """Labels count as well, since a bound may be measured by one."""
    old, new = event.old, event.new
    is_annotation = event.action is Action.UPDATE_NODE_ANNOTATION
    if is_annotation and isinstance(old, Node) and isinstance(new, Node) and _published(old) == _published(new):
        return QueueingHint.SKIP
    return QueueingHint.QUEUE


def _published(node: Node) -> str | None:
    return (node.metadata.annotations or {}).get(ANNOTATION)


def _a_verdict_changed(_pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    return QueueingHint.QUEUE if event.rules else QueueingHint.SKIP
