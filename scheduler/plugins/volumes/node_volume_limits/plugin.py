"""NodeVolumeLimits: a CSI driver attaches only so many volumes to a node."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler.framework.events import Action, ClusterEvent, EventInterest, QueueingHint, Resource
from scheduler.framework.plugin import FilterPlugin, FreedBy, PreFilterPlugin
from scheduler.framework.status import SKIP, Code, PreFilterResult, Rejection, Status
from scheduler.model.arrays import BoolArray, Rows
from scheduler.model.catalog import Catalog
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from scheduler.model.volumes import CSIDriver, CSINode, VolumeAttachment
from scheduler.plugins.volumes.claims import is_used_claim
from scheduler.plugins.volumes.csi_migration import Handle, in_tree_of
from scheduler.plugins.volumes.csi_nodes import NO_LIMIT
from scheduler.plugins.volumes.node_volume_limits.attached_volumes import AttachedVolumes, Counted, counted
from scheduler.plugins.volumes.volumes_in_use import VolumesInUse, has_attachable

REASON = "node(s) exceed max volume count"


def reason_not_installed(driver: str) -> str:
    return f"{driver} CSI driver is not installed on the node"


class NodeVolumeLimits(PreFilterPlugin, FilterPlugin):
    """Refuses nodes whose CSI drivers would have more volumes attached than they can, or that lack a driver.

    Where a driver asks for it (`preventPodSchedulingIfMissing`), a node must have it. Of several that a node lacks, the
    first by name is the reason. A volume whose driver or handle cannot be worked out fails an attempt that gets as far
    as the node.

    Source: kube-scheduler v1.37 nodevolumelimits/csi.go (behaviour).
    """

    freed_by = FreedBy.ITS_ROW
    indexes = (VolumesInUse,)
    kinds = ("PersistentVolume", "StorageClass", "CSIDriver")

    def follow(self, snapshot: Snapshot) -> None:
        snapshot.catalog.derived(AttachedVolumes).follow(snapshot)

    def prefilter(self, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult | Status:
        return PreFilterResult() if has_attachable(pod.pod) else SKIP

    def filter(self, state: object, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[Rejection]:
        wanted = [
            found for volume in pod.pod.spec.volumes or () if (found := counted(pod.pod, volume, snapshot.catalog))
        ]
        missing = next((one for one in wanted if one.is_missing), None)
        if missing is not None:
            everywhere = np.ones(len(snapshot.nodes.alive[rows]), dtype=np.bool_)
            return (Rejection(everywhere, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, missing.fault),)
        attached = snapshot.catalog.derived(AttachedVolumes)
        attached.follow(snapshot)
        verdicts: list[tuple[Code, str, BoolArray]] = []
        decided = np.zeros(snapshot.nodes.n_rows, dtype=np.bool_)
        new = _where_new(wanted, attached)
        in_order: list[tuple[Code, list[tuple[str, BoolArray]]]] = [
            (Code.ERROR, _faults(wanted, attached)),
            (Code.UNSCHEDULABLE, _not_installed(new, attached, snapshot.catalog)),
            (Code.ERROR, _faults_of_others(new, attached)),
            (Code.UNSCHEDULABLE, [(REASON, _exceeded(new, attached))]),
        ]
        for code, told in in_order:
            for reason, where in told:
                verdicts.append((code, reason, where & ~decided))
                decided |= where
        return [Rejection(mask[rows], code, reason) for code, reason, mask in verdicts if mask.any()]

    def events(self) -> Sequence[EventInterest]:
        return (
            EventInterest(Resource.CSI_NODE, Action.ADD),
            EventInterest(Resource.CSI_NODE, Action.UPDATE, _limit_grew),
            EventInterest(Resource.ASSIGNED_POD, Action.DELETE, _volumes_go),
            EventInterest(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD, is_used_claim),
            EventInterest(Resource.VOLUME_ATTACHMENT, Action.DELETE, _attachment_may_matter),
        )


def _where_new(wanted: Sequence[Counted], attached: AttachedVolumes) -> dict[Handle, BoolArray]:
    """Return per volume bool (n_rows,): where it would have to be attached, were it not there already."""
    found: dict[Handle, BoolArray] = {}
    for one in wanted:
        if one.handle is not None:
            where = attached.where(is_in_tree=one.is_in_tree)
            found[one.handle] = found[one.handle] | where if one.handle in found else where
    return found


def _faults(wanted: Sequence[Counted], attached: AttachedVolumes) -> list[tuple[str, BoolArray]]:
    """Return why volumes of the Pod cannot be counted, and on which nodes they have to be."""
    return [(one.fault, attached.where(is_in_tree=one.is_in_tree)) for one in wanted if one.fault]


def _not_installed(
    new: dict[Handle, BoolArray], attached: AttachedVolumes, catalog: Catalog
) -> list[tuple[str, BoolArray]]:
    """Return per driver that must be installed where it is wanted and is not."""
    refused: list[tuple[str, BoolArray]] = []
    for driver in sorted({handle.driver for handle in new}):
        known = catalog.get(CSIDriver, driver)
        if known is None or not known.spec.prevent_pod_scheduling_if_missing:
            continue
        mask = ~attached.csi_nodes.installed(driver)
        mask &= np.logical_or.reduce([where for handle, where in new.items() if handle.driver == driver])
        refused.append((reason_not_installed(driver), mask))
    return refused


def _faults_of_others(new: dict[Handle, BoolArray], attached: AttachedVolumes) -> list[tuple[str, BoolArray]]:
    """Return the nodes on which volumes have to be counted and one of another Pod cannot be."""
    found: list[tuple[str, BoolArray]] = []
    has_limits = attached.csi_nodes.has_limits()
    for row, fault in attached.faults.items():
        if has_limits[row] and any(where[row] for where in new.values()):
            here = np.zeros_like(has_limits)
            here[row] = True
            found.append((fault, here))
    return found


def _exceeded(new: dict[Handle, BoolArray], attached: AttachedVolumes) -> BoolArray:
    """Return bool (n_rows,): a driver would have more volumes than its limit."""
    exceeded = np.zeros(len(attached.count("")), dtype=np.bool_)
    for driver in {handle.driver for handle in new}:
        limit = attached.csi_nodes.limit(driver)
        n_new = np.zeros(len(limit), dtype=np.int64)
        for handle, where in new.items():
            if handle.driver == driver:
                to_attach = where.copy()
                to_attach[attached.held(handle)] = False
                n_new += to_attach
        exceeded |= (limit != NO_LIMIT) & (n_new > 0) & (attached.count(driver) + n_new > limit)
    return exceeded


def _limit_grew(_pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    if not isinstance(event.old, CSINode) or not isinstance(event.new, CSINode):
        return QueueingHint.QUEUE
    before = _limits(event.old)
    grew = any(limit > before.get(driver, 0) for driver, limit in _limits(event.new).items())
    return QueueingHint.QUEUE if grew else QueueingHint.SKIP


def _limits(node: CSINode) -> dict[str, int]:
    """Return driver -> limit; a driver without one counts as 0 here."""
    return {
        driver.name: (driver.allocatable.count or 0) if driver.allocatable is not None else 0
        for driver in node.spec.drivers or ()
    }


def _volumes_go(_pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    gone = event.old
    if not isinstance(gone, PodInfo):
        return QueueingHint.QUEUE
    is_placed = bool(gone.pod.spec.node_name or gone.pod.status.nominated_node_name)
    return QueueingHint.QUEUE if is_placed and has_attachable(gone.pod) else QueueingHint.SKIP


def _attachment_may_matter(pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    """Queue for any claim, and for a disk within the Pod whose driver attached what has gone."""
    gone = event.old
    for volume in pod.pod.spec.volumes or ():
        plugin = in_tree_of(volume)
        if volume.persistent_volume_claim is not None:
            return QueueingHint.QUEUE
        if plugin is not None and isinstance(gone, VolumeAttachment) and gone.spec.attacher == plugin.driver:
            return QueueingHint.QUEUE
    return QueueingHint.SKIP
