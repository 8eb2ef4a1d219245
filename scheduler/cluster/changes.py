"""Which cluster events the difference between two versions of an object makes.

Source: kube-scheduler v1.37 framework/events.go (behaviour).
"""

from __future__ import annotations

import msgspec

from scheduler.framework.events import Action, ClusterEvent, Resource
from scheduler.model.objects import Node
from scheduler.model.pods import PodInfo
from scheduler.model.requests import Amounts


def node_changes(old: Node, new: Node) -> list[ClusterEvent]:
    """Return one event per changed aspect; becoming schedulable counts as a change of taints."""
    freed = old.spec.unschedulable and not new.spec.unschedulable
    conditions_before = {condition.type: condition.status for condition in old.status.conditions or []}
    conditions_after = {condition.type: condition.status for condition in new.status.conditions or []}
    changed = {
        Action.UPDATE_NODE_TAINT: freed or (old.spec.taints or []) != (new.spec.taints or []),
        Action.UPDATE_NODE_ALLOCATABLE: (old.status.allocatable or {}) != (new.status.allocatable or {}),
        Action.UPDATE_NODE_LABEL: (old.metadata.labels or {}) != (new.metadata.labels or {}),
        Action.UPDATE_NODE_CONDITION: conditions_before != conditions_after,
        Action.UPDATE_NODE_ANNOTATION: (old.metadata.annotations or {}) != (new.metadata.annotations or {}),
        Action.UPDATE_NODE_DECLARED_FEATURE: (old.status.declared_features or [])
        != (new.status.declared_features or []),
    }
    return [ClusterEvent.of(Resource.NODE, action, old, new) for action, is_changed in changed.items() if is_changed]


def pod_changes(old: PodInfo, new: PodInfo, resource: Resource) -> list[ClusterEvent]:
    """Return one event per changed aspect, or the general Update if none is known; never none."""
    before, after = old.pod, new.pod
    had, has = old.usage.requests, new.usage.requests
    changed = {
        Action.UPDATE_POD_LABEL: old.labels != new.labels,
        Action.UPDATE_POD_SCALE_DOWN: _grew(has, had),
        Action.UPDATE_POD_SCALE_UP: _grew(had, has),
        Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED: bool(before.spec.scheduling_gates)
        and not after.spec.scheduling_gates,
        Action.UPDATE_POD_TOLERATION: len(before.spec.tolerations or []) != len(after.spec.tolerations or []),
    }
    actions = [action for action, is_changed in changed.items() if is_changed] or [Action.UPDATE_OTHER]
    return [ClusterEvent.of(resource, action, old, new) for action in actions]


def pod_added(pod: PodInfo) -> ClusterEvent:
    """Return the event that a Pod is now bound."""
    return ClusterEvent.of(Resource.ASSIGNED_POD, Action.ADD, None, pod)


def pod_deleted(pod: PodInfo) -> ClusterEvent:
    """Return the event that a Pod gave back its place: bound, assumed or only nominated."""
    return ClusterEvent.of(Resource.ASSIGNED_POD, Action.DELETE, pod, None)


def bound_to(pod: PodInfo, node_name: str) -> PodInfo:
    """Return the Pod as it is, or will be, on its node: events about a place must name it."""
    if pod.pod.spec.node_name == node_name:
        return pod
    spec = msgspec.structs.replace(pod.pod.spec, node_name=node_name)
    return PodInfo(msgspec.structs.replace(pod.pod, spec=spec))


def is_respecified(old: PodInfo, new: PodInfo) -> bool:
    """Return whether more than the status changed: what was refused by name may be acceptable now."""
    before, after = old.pod, new.pod
    return (
        before.spec != after.spec
        or old.labels != new.labels
        or (before.metadata.annotations or {}) != (after.metadata.annotations or {})
    )


def _grew(less: Amounts, more: Amounts) -> bool:
    """Return whether anything in `more` exceeds `less` or is missing there."""
    return any(name not in less or amount > less[name] for name, amount in more.items())
