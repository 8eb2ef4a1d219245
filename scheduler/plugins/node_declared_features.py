"""NodeDeclaredFeatures: nodes whose kubelet declares what the Pod relies on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from scheduler.framework.events import Action, ClusterEvent, EventInterest, QueueingHint, Resource
from scheduler.framework.plugin import FilterPlugin, FreedBy, PreFilterPlugin
from scheduler.framework.status import SKIP, Code, PreFilterResult, Rejection, Status
from scheduler.model.arrays import BoolArray, Rows
from scheduler.model.objects import Node, PodSpec
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot

REASON = "node(s) didn't match Pod's required features"


class NodeDeclaredFeatures(PreFilterPlugin, FilterPlugin):
    """Refuses nodes that do not declare, in `status.declaredFeatures`, every feature the Pod's spec needs.

    The features are those that kube-scheduler infers for placing a Pod; a node may declare others, which count
    only when a running Pod is resized.

    Source: kube-scheduler v1.37 nodedeclaredfeatures/nodedeclaredfeatures.go and k8s.io/component-helpers
    nodedeclaredfeatures/features (behaviour).
    """

    freed_by = FreedBy.NOTHING

    def prefilter(self, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult | Status:
        """Return bool (n_rows,), True where a feature is missing, as the state."""
        needed = needed_features(pod.pod.spec)
        if not needed:
            return SKIP
        lacking = np.zeros(snapshot.nodes.n_rows, dtype=np.bool_)
        for feature in needed:
            lacking |= ~snapshot.nodes.declares(feature)
        return PreFilterResult(lacking)

    def filter(self, state: BoolArray, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[Rejection]:
        return (Rejection(state[rows], Code.UNSCHEDULABLE_AND_UNRESOLVABLE, REASON),)

    def events(self) -> Sequence[EventInterest]:
        return (
            EventInterest(Resource.NODE, Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE, _declares_otherwise),
            EventInterest(Resource.TARGET_POD, Action.UPDATE, _needs_otherwise),
        )


def needed_features(spec: PodSpec) -> frozenset[str]:
    """Return the features that a node must declare for a Pod of this spec, none for most Pods."""
    return frozenset(feature for feature, is_needed in _NEEDS.items() if is_needed(spec))


def _restarts_all_containers(spec: PodSpec) -> bool:
    containers = [*(spec.containers or ()), *(spec.init_containers or ())]
    rules = (rule for container in containers for rule in container.restart_policy_rules or ())
    return any(rule.action == "RestartAllContainers" for rule in rules)


def _maps_users_on_host_network(spec: PodSpec) -> bool:
    return spec.host_network and spec.host_users is False


def _has_bind_mount_options(spec: PodSpec) -> bool:
    containers = [*(spec.containers or ()), *(spec.init_containers or ()), *(spec.ephemeral_containers or ())]
    mounts = (mount for container in containers for mount in container.volume_mounts or ())
    return any(mount.bind_mount_options for mount in mounts)


_NEEDS: dict[str, Callable[[PodSpec], bool]] = {
    "RestartAllContainersOnContainerExits": _restarts_all_containers,
    "UserNamespacesHostNetworkSupport": _maps_users_on_host_network,
    "VolumeBindMountOptions": _has_bind_mount_options,
}


def _declares_otherwise(_pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    if isinstance(event.old, Node) and isinstance(event.new, Node):
        same = (event.old.status.declared_features or []) == (event.new.status.declared_features or [])
        return QueueingHint.SKIP if same else QueueingHint.QUEUE
    return QueueingHint.QUEUE


def _needs_otherwise(_pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    if isinstance(event.old, PodInfo) and isinstance(event.new, PodInfo):
        same = needed_features(event.old.pod.spec) == needed_features(event.new.pod.spec)
        return QueueingHint.SKIP if same else QueueingHint.QUEUE
    return QueueingHint.QUEUE
