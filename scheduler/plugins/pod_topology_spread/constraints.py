"""The constraints that hold for a Pod: its own, or else defaults with a selector from its services and owner.

Source: kube-scheduler v1.37 podtopologyspread/{plugin,common}.go, plugins/helper/spread.go (behaviour).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from scheduler.errors import InvalidObjectError
from scheduler.model.catalog import Catalog, CatalogObject
from scheduler.model.objects import TopologySpreadConstraint
from scheduler.model.pods import PodInfo
from scheduler.model.selectors import Selector, selector_of, selector_of_set
from scheduler.model.snapshot import Snapshot
from scheduler.model.structs import Labels, LabelSelector, OwnerReference, Requirement
from scheduler.model.views import NodeView
from scheduler.model.workloads import ReplicaSet, ReplicationController, Service, StatefulSet

HOSTNAME: Final = "kubernetes.io/hostname"
HARD: Final = "DoNotSchedule"
SOFT: Final = "ScheduleAnyway"
SYSTEM_DEFAULTS: Final = (
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable=SOFT),
    TopologySpreadConstraint(max_skew=5, topology_key="topology.kubernetes.io/zone", when_unsatisfiable=SOFT),
)
LOOKED_UP: Final[tuple[type[CatalogObject], ...]] = (Service, ReplicationController, ReplicaSet, StatefulSet)


@dataclass(frozen=True, slots=True)
class Constraint:
    """One constraint as it counts for one Pod; the policies say which nodes count."""

    max_skew: int
    topology_key: str
    selector: Selector
    min_domains: int
    honors_affinity: bool
    honors_taints: bool


def own_constraints(
    constraints: Sequence[TopologySpreadConstraint] | None, labels: Labels, action: str
) -> tuple[Constraint, ...]:
    """Return those with this `whenUnsatisfiable`; InvalidObjectError where one's selector cannot be read."""
    return tuple(_read(one, labels) for one in constraints or () if one.when_unsatisfiable == action)


def default_constraints(
    defaults: Sequence[TopologySpreadConstraint], pod: PodInfo, snapshot: Snapshot, action: str
) -> tuple[Constraint, ...]:
    """Return the defaults with this action; none for a Pod that no service or owner selects."""
    if all(one.when_unsatisfiable != action for one in defaults):
        return ()
    selector = default_selector(pod, snapshot)
    if selector.is_everything:
        return ()
    return tuple(replace(one, selector=selector) for one in own_constraints(defaults, pod.labels, action))


def default_selector(pod: PodInfo, snapshot: Snapshot) -> Selector:
    """Return what all services that select the Pod and its controller ask for; everything where nothing does.

    Pods of one owner with equal labels share the answer for as long as no object of these kinds changes.
    """
    catalog, owner = snapshot.catalog, _controller(pod)
    generations = [catalog.generation(kind) for kind in LOOKED_UP]
    key = ("default selector", pod.namespace, frozenset(pod.labels.items()), owner, *generations)
    return snapshot.memo.get(key, (), lambda: _default_selector(pod, owner, catalog))


def distinguishable(constraints: Sequence[Constraint], nodes: NodeView) -> tuple[Constraint, ...]:
    """Return the constraints, of those whose label no node has the first alone: the others change nothing more."""
    absent = [one for one in constraints if not nodes.has_label_key(one.topology_key)]
    return tuple(one for one in constraints if nodes.has_label_key(one.topology_key) or one is absent[0])


def _read(constraint: TopologySpreadConstraint, labels: Labels) -> Constraint:
    selector = selector_of(constraint.label_selector)
    keys = [key for key in constraint.match_label_keys or () if key in labels]
    return Constraint(
        max_skew=constraint.max_skew,
        topology_key=constraint.topology_key,
        selector=selector.also([Requirement(key=key, operator="In", values=[labels[key]]) for key in keys]),
        min_domains=1 if constraint.min_domains is None else constraint.min_domains,
        honors_affinity=constraint.node_affinity_policy in (None, "Honor"),
        honors_taints=constraint.node_taints_policy == "Honor",
    )


_Owner = tuple[str, str, str]


def _controller(pod: PodInfo) -> _Owner | None:
    """Return (API version, kind, name) of the first owner that is a controller."""
    owners: Sequence[OwnerReference] = pod.pod.metadata.owner_references or ()
    return next(((one.api_version, one.kind, one.name) for one in owners if one.controller), None)


def _default_selector(pod: PodInfo, owner: _Owner | None, catalog: Catalog) -> Selector:
    labels: Labels = {}
    for service in catalog.within(Service, pod.namespace):
        wanted = service.spec.selector
        # No selector matches nothing; an empty one everything, which adds nothing.
        if wanted is not None and all(pod.labels.get(key) == value for key, value in wanted.items()):
            labels |= wanted
    added: LabelSelector | None = None
    match owner:
        case ("v1", "ReplicationController", name):
            controller = catalog.get(ReplicationController, name, pod.namespace)
            labels |= (controller.spec.selector or {}) if controller is not None else {}
        case ("apps/v1", "ReplicaSet", name):
            replicas = catalog.get(ReplicaSet, name, pod.namespace)
            added = replicas.spec.selector if replicas is not None else None
        case ("apps/v1", "StatefulSet", name):
            stateful = catalog.get(StatefulSet, name, pod.namespace)
            added = stateful.spec.selector if stateful is not None else None
    return selector_of_set(labels).also(_requirements(added))


def _requirements(selector: LabelSelector | None) -> list[Requirement]:
    """Return what a selector asks for, nothing where it cannot be read."""
    try:
        terms = selector_of(selector).terms
    except InvalidObjectError:
        return []
    return [Requirement(key=term.key, operator=term.operator, values=list(term.values)) for term in terms]
