"""Which changes may help a Pod that VolumeBinding refused.

Source: kube-scheduler v1.37 volumebinding/volume_binding.go (behaviour).
"""

from __future__ import annotations

from scheduler.framework.events import ClusterEvent, QueueingHint
from scheduler.model.pods import PodInfo
from scheduler.model.volumes import CSIDriver, CSINode, CSIStorageCapacity, StorageClass
from scheduler.plugins.volumes.csi_migration import MIGRATED_PLUGINS
from scheduler.plugins.volumes.volume_binding.storage_table import bytes_of


def class_reaches_further(_pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    old, new = event.old, event.new
    if not isinstance(old, StorageClass) or not isinstance(new, StorageClass):
        return QueueingHint.QUEUE
    is_same = (old.allowed_topologies or []) == (new.allowed_topologies or [])
    return QueueingHint.SKIP if is_same else QueueingHint.QUEUE


def plugins_migrated(_pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    old, new = event.old, event.new
    if not isinstance(old, CSINode) or not isinstance(new, CSINode):
        return QueueingHint.QUEUE
    before, after = ((one.metadata.annotations or {}).get(MIGRATED_PLUGINS, "") for one in (old, new))
    return QueueingHint.SKIP if before == after else QueueingHint.QUEUE


def capacity_no_longer_counts(pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    """Queue where a driver named by a volume within the Pod stops telling its capacity: only those, as upstream."""
    old, new = event.old, event.new
    if not isinstance(old, CSIDriver) or not isinstance(new, CSIDriver):
        return QueueingHint.QUEUE
    stopped = old.spec.storage_capacity and not new.spec.storage_capacity
    is_ours = any(
        volume.csi is not None and volume.csi.driver == new.metadata.name for volume in pod.pod.spec.volumes or ()
    )
    return QueueingHint.QUEUE if stopped and is_ours else QueueingHint.SKIP


def capacity_grew(_pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    old, new = event.old, event.new
    if not isinstance(old, CSIStorageCapacity) or not isinstance(new, CSIStorageCapacity):
        return QueueingHint.QUEUE
    before, after = (
        bytes_of(one.capacity if one.maximum_volume_size is None else one.maximum_volume_size) for one in (old, new)
    )
    return QueueingHint.QUEUE if after > before else QueueingHint.SKIP
