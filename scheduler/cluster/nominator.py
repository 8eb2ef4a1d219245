"""Nominator: pending Pods that preemption has promised a node."""

from __future__ import annotations

from scheduler.model.pods import PodInfo
from scheduler.model.state import ClusterState


class Nominator:
    """Keeps `ClusterState.nominated`. A nomination counts against Pods of lower or equal priority.

    Source: kube-scheduler v1.37 backend/queue/nominator.go (behaviour).
    """

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._node_of: dict[str, str] = {}

    def node_of(self, uid: str) -> str:
        """Return the node promised to this Pod, empty if none is."""
        return self._node_of.get(uid, "")

    def add(self, pod: PodInfo, node_name: str) -> None:
        """Promise a node in place of any other; an empty name takes the promise back."""
        self.remove(pod.uid)
        if node_name:
            self._node_of[pod.uid] = node_name
            self._state.nominated.setdefault(node_name, {})[pod.uid] = pod
            self._changed(node_name)

    def update(self, old: PodInfo, new: PodInfo) -> None:
        """Follow the Pod's status; a promise that the status does not show yet is kept."""
        node_name = new.pod.status.nominated_node_name
        if not node_name and not old.pod.status.nominated_node_name:
            node_name = self.node_of(new.uid)
        self.add(new, node_name)

    def remove(self, uid: str) -> None:
        node_name = self._node_of.pop(uid, None)
        if node_name is not None:
            pods = self._state.nominated[node_name]
            del pods[uid]
            if not pods:
                del self._state.nominated[node_name]
            self._changed(node_name)

    def _changed(self, node_name: str) -> None:
        self._state.epoch += 1
        row = self._state.nodes.row_of(node_name)
        if row is not None:
            self._state.nodes.touch(row)
