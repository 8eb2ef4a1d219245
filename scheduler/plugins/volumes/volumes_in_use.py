"""VolumesInUse: which claims and disks the Pods on each row use, counted as Pods come and go."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np

from scheduler.framework.index import Index
from scheduler.model.arrays import IntArray
from scheduler.model.objects import Pod
from scheduler.model.pods import PodInfo
from scheduler.model.volumes import Volume
from scheduler.plugins.volumes.claims import claim_names, claim_uses
from scheduler.plugins.volumes.csi_migration import is_in_tree

K = TypeVar("K", bound=Hashable)

Disk = tuple[str, ...]
"""What makes two volumes within Pods the same disk: the kind of source and its names."""
ByPriority = dict[K, dict[int, dict[int, int]]]
"""What is used -> priority of the Pods that use it -> row -> how many of their volumes do; nothing in it is empty."""


def disks(volume: Volume) -> Iterator[tuple[Disk, bool]]:
    """Yield the disks that no two Pods of a node may share, and whether the volume only reads.

    An RBD image is one disk for each of its monitors: one in common is enough. An EBS volume is never shared, not even
    by readers.

    Source: kube-scheduler v1.37 volumerestrictions/volume_restrictions.go isVolumeConflict (behaviour).
    """
    if volume.gce_persistent_disk is not None:
        yield ("gce", volume.gce_persistent_disk.pd_name), volume.gce_persistent_disk.read_only
    if volume.aws_elastic_block_store is not None:
        yield ("ebs", volume.aws_elastic_block_store.volume_id), False
    if volume.iscsi is not None:
        yield ("iscsi", volume.iscsi.iqn), volume.iscsi.read_only
    if volume.rbd is not None:
        for monitor in volume.rbd.monitors or ():
            yield ("rbd", monitor, volume.rbd.pool, volume.rbd.image), volume.rbd.read_only


def pod_disks(pod: Pod) -> Iterator[tuple[Disk, bool]]:
    for volume in pod.spec.volumes or ():
        yield from disks(volume)


def has_disk(pod: Pod) -> bool:
    """Return whether a volume is of a kind whose disks are looked at, even if it names none."""
    return any(
        source is not None
        for volume in pod.spec.volumes or ()
        for source in (volume.gce_persistent_disk, volume.aws_elastic_block_store, volume.iscsi, volume.rbd)
    )


def has_attachable(pod: Pod) -> bool:
    """Return whether a volume may have to be attached to the node: one with a claim, or of a kind CSI took over."""
    return any(
        volume.persistent_volume_claim is not None or volume.ephemeral is not None or is_in_tree(volume)
        for volume in pod.spec.volumes or ()
    )


class VolumesInUse(Index):
    """Pods with volumes by row; how many volumes on a row use a claim or a disk.

    Most Pods have none of these volumes and cost one look at the volumes they have.
    """

    def __init__(self) -> None:
        self._pods: dict[int, dict[str, PodInfo]] = {}
        self._claims: dict[tuple[str, str], dict[int, int]] = {}
        self._named: ByPriority[str] = {}
        self._readers: ByPriority[Disk] = {}
        self._writers: ByPriority[Disk] = {}

    def add_pod(self, pod: PodInfo, row: int) -> None:
        if pod.pod.spec.volumes:
            self._count(pod, row, 1)
            if has_attachable(pod.pod):
                self._pods.setdefault(row, {})[pod.uid] = pod

    def remove_pod(self, pod: PodInfo, row: int) -> None:
        if pod.pod.spec.volumes:
            self._count(pod, row, -1)
            if has_attachable(pod.pod):
                del self._pods[row][pod.uid]
                if not self._pods[row]:
                    del self._pods[row]

    def by_uid(self, row: int) -> Mapping[str, PodInfo]:
        """Return the Pods on a row with volumes that may have to be attached there, by UID and in no order."""
        return self._pods.get(row, {})

    def users(self, namespace: str, claim: str) -> Collection[int]:
        """Return the rows on which a volume uses the claim, that of an ephemeral volume included."""
        return self._claims.get((namespace, claim), {}).keys()

    def named_by(self, namespace: str, claim: str) -> Iterator[int]:
        """Yield the rows on which a Pod names the claim; an ephemeral volume does not."""
        for row in self.users(namespace, claim):
            if any(claim in claim_names(pod.pod) for pod in self.by_uid(row).values() if pod.namespace == namespace):
                yield row

    def conflicting_rows(self, disk: Disk, is_reader: bool) -> Iterator[int]:
        """Yield the rows where the disk is taken: readers share it with each other only."""
        for uses in self._against(is_reader):
            for rows in uses.get(disk, {}).values():
                yield from rows

    def n_conflicts(self, wanted: Iterable[tuple[Disk, bool]], n_rows: int, below: float = math.inf) -> IntArray:
        """Return int64 (n_rows,): the volumes on each row that conflict with the wanted disks, each with each.

        Only of Pods whose priority is lower than `below`.
        """
        found = np.zeros(n_rows, dtype=np.int64)
        for disk, is_reader in wanted:
            for uses in self._against(is_reader):
                _sum(found, uses.get(disk, {}), below)
        return found

    def n_naming(self, claims: Iterable[str], n_rows: int, below: float) -> IntArray:
        """Return int64 (n_rows,): the volumes on each row that name one of the claims, in any namespace.

        Only of Pods whose priority is lower than `below`.
        """
        found = np.zeros(n_rows, dtype=np.int64)
        for claim in claims:
            _sum(found, self._named.get(claim, {}), below)
        return found

    def _against(self, is_reader: bool) -> Sequence[ByPriority[Disk]]:
        return (self._writers,) if is_reader else (self._writers, self._readers)

    def _count(self, pod: PodInfo, row: int, sign: int) -> None:
        for use in claim_uses(pod.pod):
            _add(self._claims, (pod.namespace, use.claim), row, sign)
            if not use.is_ephemeral:
                _add_of(self._named, use.claim, pod.priority, row, sign)
        for disk, is_reader in pod_disks(pod.pod):
            _add_of(self._readers if is_reader else self._writers, disk, pod.priority, row, sign)


def _sum(total: IntArray, counts: Mapping[int, Mapping[int, int]], below: float) -> None:
    """Add to (n_rows,) in place what the Pods of priorities lower than `below` count."""
    for priority, uses in counts.items():
        if priority < below:
            rows = np.fromiter(uses.keys(), dtype=np.int64, count=len(uses))
            total[rows] += np.fromiter(uses.values(), dtype=np.int64, count=len(uses))


def _add_of(counts: ByPriority[K], key: K, priority: int, row: int, sign: int) -> None:
    here = counts.setdefault(key, {})
    _add(here, priority, row, sign)
    if not here:
        del counts[key]


def _add(counts: dict[K, dict[int, int]], key: K, row: int, sign: int) -> None:
    here = counts.setdefault(key, {})
    here[row] = here.get(row, 0) + sign
    if here[row] == 0:
        del here[row]
    if not here:
        del counts[key]
