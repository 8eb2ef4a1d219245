"""VolumeRestrictions: disks that no two Pods of a node may share, and claims that only one Pod may use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from scheduler.framework.events import Action, ClusterEvent, EventInterest, QueueingHint, Resource
from scheduler.framework.plugin import FilterPlugin, PreFilterPlugin, Tally
from scheduler.framework.status import SKIP, Code, PreFilterResult, Rejection, Status
from scheduler.model.arrays import BoolArray, IntArray, Rows
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from scheduler.model.volumes import PersistentVolumeClaim
from scheduler.plugins.volumes.claims import claim_names, is_named_claim, not_found
from scheduler.plugins.volumes.volumes_in_use import Disk, VolumesInUse, has_disk, pod_disks

REASON_DISK = "node(s) had no available disk"
REASON_ONE_POD = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)

_ONE_POD = "ReadWriteOncePod"


@dataclass(frozen=True, slots=True)
class OnePodClaims:
    """The Pod's claims for one Pod only, by name, and how many uses by others stand against it.

    Where Pods leave all rows at once, `left` is int64 (2, n_rows): on each row the conflicts over disks, and in place
    of `n_uses` the uses once those of that row alone have left. Else None: what the index says.
    """

    names: frozenset[str]
    n_uses: int
    left: IntArray | None = None


class VolumeRestrictions(PreFilterPlugin, FilterPlugin):
    """Refuses nodes where another Pod has the same disk, and all nodes while another Pod uses a claim for one Pod.

    In preemption and for nominated Pods a claim of the same name counts whatever its namespace, as in kube-scheduler.

    Source: kube-scheduler v1.37 volumerestrictions/volume_restrictions.go (behaviour).
    """

    indexes = (VolumesInUse,)

    def prefilter(self, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult | Status:
        names = set()
        for name in claim_names(pod.pod):
            claim = snapshot.catalog.get(PersistentVolumeClaim, name, pod.namespace)
            if claim is None:
                return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (not_found(name),))
            if _ONE_POD in (claim.spec.access_modes or ()):
                names.add(name)
        in_use = [name for name in names if _is_in_use(pod.namespace, name, snapshot)]
        if not in_use and not has_disk(pod.pod):
            return SKIP
        return PreFilterResult(OnePodClaims(frozenset(names), len(in_use)))

    def filter(self, state: OnePodClaims, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[Rejection]:
        if state.left is not None:
            conflicts, in_use = state.left[:, rows] > 0
        else:
            conflicts = _disk_conflicts(pod, snapshot)[rows]
            in_use = np.full(len(conflicts), state.n_uses > 0)
        return (
            Rejection(conflicts, Code.UNSCHEDULABLE, REASON_DISK),
            Rejection(in_use & ~conflicts, Code.UNSCHEDULABLE, REASON_ONE_POD),
        )

    def add_pod(self, state: OnePodClaims, pod: PodInfo, row: int, snapshot: Snapshot) -> OnePodClaims:
        n_uses = _n_uses(state.names, pod)
        return replace(state, n_uses=state.n_uses + n_uses) if n_uses else state

    def remove_pod(self, state: OnePodClaims, pod: PodInfo, row: int, snapshot: Snapshot) -> OnePodClaims:
        n_uses = _n_uses(state.names, pod)
        return replace(state, n_uses=state.n_uses - n_uses) if n_uses else state

    def tally(self, state: OnePodClaims, pod: PodInfo, snapshot: Snapshot, pods: Sequence[PodInfo]) -> Tally:
        """Count conflicts over disks, and uses of the Pod's claims for one Pod."""
        index, n_rows, wanted = snapshot.index(VolumesInUse), snapshot.nodes.n_rows, list(pod_disks(pod.pod))
        each = np.array([(_n_conflicts(wanted, one), _n_uses(state.names, one)) for one in pods], dtype=np.int64)
        below = (index.n_conflicts(wanted, n_rows, pod.priority), index.n_naming(state.names, n_rows, pod.priority))
        held = np.stack((index.n_conflicts(wanted, n_rows), np.full(n_rows, state.n_uses)))
        return Tally(each.reshape(-1, 2).T, np.stack(below), lambda gone: replace(state, left=held - gone))

    def events(self) -> Sequence[EventInterest]:
        return (
            EventInterest(Resource.ASSIGNED_POD, Action.DELETE, _volume_came_free),
            EventInterest(Resource.NODE, Action.ADD),
            EventInterest(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD, is_named_claim),
        )


def _is_in_use(namespace: str, claim: str, snapshot: Snapshot) -> bool:
    """Return whether a Pod on a node names the claim; one whose node is gone does not count."""
    alive = snapshot.nodes.alive
    return any(alive[row] for row in snapshot.index(VolumesInUse).named_by(namespace, claim))


def _n_uses(names: frozenset[str], pod: PodInfo) -> int:
    return sum(name in names for name in claim_names(pod.pod)) if names else 0


def _n_conflicts(wanted: Iterable[tuple[Disk, bool]], pod: PodInfo) -> int:
    """Return what the Pod adds to VolumesInUse.n_conflicts."""
    if not pod.pod.spec.volumes:
        return 0
    held = list(pod_disks(pod.pod))
    return sum(disk == its and not (is_reader and reads) for disk, is_reader in wanted for its, reads in held)


def _disk_conflicts(pod: PodInfo, snapshot: Snapshot) -> BoolArray:
    """Return bool (n_rows,): a Pod there has one of the disks."""
    index = snapshot.index(VolumesInUse)
    conflicts = np.zeros(snapshot.nodes.n_rows, dtype=np.bool_)
    for disk, is_reader in pod_disks(pod.pod):
        conflicts[list(index.conflicting_rows(disk, is_reader))] = True
    return conflicts


def _volume_came_free(pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    gone = event.old
    if not isinstance(gone, PodInfo) or gone.namespace != pod.namespace:
        return QueueingHint.SKIP
    held = dict[object, bool]()
    for disk, is_reader in pod_disks(gone.pod):
        held[disk] = held.get(disk, True) and is_reader
    freed = any(disk in held and not (is_reader and held[disk]) for disk, is_reader in pod_disks(pod.pod))
    shared = set(claim_names(gone.pod)) & set(claim_names(pod.pod))
    return QueueingHint.QUEUE if freed or shared else QueueingHint.SKIP
