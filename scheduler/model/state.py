"""ClusterState: the tables, the Pods on each row and the indexes over them, changed only together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from scheduler.model.catalog import Catalog, CatalogObject
from scheduler.model.history import PlacementHistory
from scheduler.model.memo import Memo
from scheduler.model.nodes import NodeTable
from scheduler.model.objects import Node
from scheduler.model.pods import PodInfo
from scheduler.model.row_memo import RowMemo

T = TypeVar("T", bound=CatalogObject)


class PodListener(Protocol):
    """What an index offers to the state that feeds it."""

    def add_pod(self, pod: PodInfo, row: int) -> None: ...

    def remove_pod(self, pod: PodInfo, row: int) -> None: ...

    def renew_pod(self, pod: PodInfo, row: int) -> bool: ...


@dataclass(slots=True)
class ClusterState:
    """Nodes, the Pods on them and what the indexes count. Only the owner thread may change it.

    `catalog` holds the objects that are neither Pods nor Nodes. `nominated` holds pending Pods that preemption has
    promised a node, by node name. `epoch` grows with every change that a Snapshot must not survive. `memo` and
    `row_memo` outlive snapshots. `history` holds Pods that have gone. `unix_ahead_s` is UNIX time less the monotonic
    seconds of snapshots, so that a snapshot can be compared with the times that Pods carry.
    """

    nodes: NodeTable = field(default_factory=NodeTable)
    indexes: Sequence[PodListener] = ()
    pods: dict[int, dict[str, PodInfo]] = field(default_factory=dict)
    nominated: dict[str, dict[str, PodInfo]] = field(default_factory=dict)
    catalog: Catalog = field(default_factory=Catalog)
    epoch: int = 0
    memo: Memo = field(default_factory=Memo)
    row_memo: RowMemo = field(default_factory=RowMemo)
    history: PlacementHistory = field(default_factory=PlacementHistory)
    unix_ahead_s: float = 0.0

    def set_node(self, node: Node) -> int:
        self.epoch += 1
        return self.nodes.set_node(node)

    def remove_node(self, name: str) -> None:
        self.epoch += 1
        self.nodes.remove_node(name)

    def set_object(self, item: T) -> T | None:
        """Add or replace an object of the catalog; return the one before."""
        self.epoch += 1
        return self.catalog.set(item)

    def remove_object(self, kind: type[T], namespace: str, name: str) -> T | None:
        """Remove an object of the catalog; return it if it was known."""
        self.epoch += 1
        return self.catalog.remove(kind, namespace, name)

    def place(self, pod: PodInfo, row: int) -> None:
        """Count `pod` on a row; where an index raises, nothing has changed but perhaps that index."""
        usage = pod.usage
        _ = pod.host_ports
        self.epoch += 1
        self.nodes.add_usage(row, usage.requests, usage.scored, 1)
        self.pods.setdefault(row, {})[pod.uid] = pod
        for n_told, index in enumerate(self.indexes):
            try:
                index.add_pod(pod, row)
            except Exception:
                self._displace(pod, row, self.indexes[:n_told])
                raise

    def displace(self, pod: PodInfo, row: int) -> None:
        """Take back what `place` did, exactly; where an index raises, all others have done so."""
        self.epoch += 1
        self._displace(pod, row, self.indexes)

    def _displace(self, pod: PodInfo, row: int, indexes: Sequence[PodListener]) -> None:
        usage = pod.usage
        self.nodes.add_usage(row, usage.requests, usage.scored, -1)
        pods_here = self.pods[row]
        del pods_here[pod.uid]
        if not pods_here:
            del self.pods[row]
        faults = []
        for index in indexes:
            try:
                index.remove_pod(pod, row)
            except Exception as error:  # noqa: BLE001 - raised below, once every index has been told
                faults.append(error)
        if faults:
            raise faults[0]

    def remember(self, pod: PodInfo, node_name: str, now_s: float) -> None:
        """Keep it in the history that a Pod which has left, or ended, was on a node; `now_s` is monotonic."""
        self.epoch += 1
        self.history.leave(pod, node_name, now_s + self.unix_ahead_s)

    def renew(self, pod: PodInfo, row: int) -> None:
        """Replace a Pod by a version that occupies what it did; the row changes only for an index that says so."""
        self.epoch += 1
        self.pods[row][pod.uid] = pod
        if any([index.renew_pod(pod, row) for index in self.indexes]):
            self.nodes.touch(row)

    def pods_on(self, row: int) -> Iterable[PodInfo]:
        return self.pods.get(row, {}).values()
