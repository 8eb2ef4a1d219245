"""VolumeBinding: a Pod goes where its volumes can be used, found or made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from scheduler.errors import InvalidObjectError, UnsupportedPodError
from scheduler.framework.events import Action, ClusterEvent, EventInterest, QueueingHint, Resource
from scheduler.framework.intree_args import VolumeBindingArgs
from scheduler.framework.plugin import FilterPlugin, FreedBy, PreFilterPlugin, ReservePlugin, ScorePlugin
from scheduler.framework.status import SKIP, Code, PreFilterResult, Rejection, ScoreTerm, Status
from scheduler.model.arrays import BoolArray, IntArray, Rows
from scheduler.model.catalog import Catalog
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from scheduler.model.unsupported import NOT_BUILT
from scheduler.model.volumes import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from scheduler.plugins.resource_scoring import shape_scores
from scheduler.plugins.volumes_claims import (
    WAIT_FOR_FIRST_CONSUMER,
    ClaimUse,
    claim_uses,
    class_name_of,
    class_of,
    is_bound,
    is_made_for,
    not_found,
    not_made_for,
)
from scheduler.plugins.volumes_csi_nodes import CSINodes
from scheduler.plugins.volumes_matching import Plan, capacity_scores, plan
from scheduler.plugins.volumes_migration import MIGRATED_PLUGINS, in_tree_of, migrated_affinity
from scheduler.plugins.volumes_offers import Offers, bytes_of
from scheduler.plugins.volumes_reach import matching, reach_of_affinity

REASON_AFFINITY = "node(s) didn't match PersistentVolume's node affinity"
REASON_NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
REASON_NO_SPACE = "node(s) did not have enough free storage"
REASON_GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
REASON_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"

NEED_TO_BIND = f"spec.volumes.persistentVolumeClaim that is not bound yet: {NOT_BUILT}"

_LOST = "Lost"


@dataclass(frozen=True, slots=True)
class VolumeState:
    """What the Pod's claims mean for every node.

    affinity, gone
        bool (n_rows,): a bound volume cannot be used there, or is no longer there at all.
    faulty
        Where the attempt fails because `fault`, as `Plan` has it for the others.
    plan
        What is to be done for the claims that wait for a node; None if none does.
    """

    affinity: BoolArray
    gone: BoolArray
    faulty: BoolArray
    fault: str = ""
    plan: Plan | None = None


class VolumeBinding(PreFilterPlugin, FilterPlugin, ScorePlugin, ReservePlugin):
    """Refuses nodes that bound volumes cannot be used on, or where no volume can be found or made for a claim.

    Scores how much of the storage would be used, the less the better by default. Nothing of this changes within a
    cycle, so PreFilter decides for all rows at once. The score is 0 on every node for Pods without claims: one column
    for all of them.

    Source: kube-scheduler v1.37 volumebinding/volume_binding.go and binder.go (behaviour).
    """

    freed_by = FreedBy.NOTHING
    Args = VolumeBindingArgs

    def __init__(self, args: VolumeBindingArgs | None = None) -> None:
        given = args or VolumeBindingArgs()
        self._score_by_use = shape_scores([(point.utilization, point.score) for point in given.shape])

    def follow(self, snapshot: Snapshot) -> None:
        snapshot.catalog.derived(Offers).follow(snapshot)
        snapshot.catalog.derived(CSINodes).follow(snapshot)

    def prefilter(self, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult | Status:
        claims: list[PersistentVolumeClaim] = []
        for use in claim_uses(pod.pod):
            found = _usable(use, pod, snapshot.catalog)
            if isinstance(found, str):
                return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (found,))
            claims.append(found)
        if not claims:
            return SKIP
        bound = [claim for claim in claims if is_bound(claim)]
        waiting = [claim for claim in claims if not is_bound(claim)]
        # All are looked at before any is refused: a class without a mode is a fault, whoever else waits.
        if not all([_is_delayed(claim, snapshot.catalog) for claim in waiting]):
            return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (REASON_IMMEDIATE,))
        state = _check_bound(bound, snapshot)
        return PreFilterResult(replace(state, plan=plan(waiting, snapshot)) if waiting else state)

    def filter(self, state: VolumeState, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[Rejection]:
        refused = [(state.affinity, REASON_AFFINITY), (state.gone, REASON_GONE)]
        for found in (state, state.plan):
            if found is not None and found.fault and (found.faulty & snapshot.nodes.alive)[rows].any():
                raise InvalidObjectError(found.fault)
        if state.plan is not None:
            refused[1:1] = [(state.plan.no_volume, REASON_NO_VOLUME), (state.plan.no_space, REASON_NO_SPACE)]
        return [
            Rejection(mask[rows], Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reason) for mask, reason in refused if mask.any()
        ]

    def score(self, state: VolumeState | None, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[ScoreTerm]:
        """Return what `shape` says of the storage that would be used, where claims wait for a node."""
        if state is None or state.plan is None:
            nothing = snapshot.memo.get(("VolumeBinding", n := snapshot.nodes.n_rows), (), lambda: _zeros(n))
            return (ScoreTerm(self.name, nothing, is_column=True),)
        return (ScoreTerm(self.name, capacity_scores(state.plan, self._score_by_use)[rows]),)

    def reserve(self, state: VolumeState | None, pod: PodInfo, node_name: str) -> Status | None:
        """Refuse by name the Pods whose claims would have to be bound now; `state.plan.on(node_name)` says which."""
        if state is not None and state.plan is not None:
            raise UnsupportedPodError((NEED_TO_BIND,))
        return None

    def unreserve(self, state: VolumeState | None, pod: PodInfo, node_name: str) -> None:
        """There is nothing to undo: what needs to be bound is refused."""

    def events(self) -> Sequence[EventInterest]:
        changed = Action.ADD | Action.UPDATE
        return (
            EventInterest(Resource.STORAGE_CLASS, changed, _class_reaches_further),
            EventInterest(Resource.PERSISTENT_VOLUME_CLAIM, changed, _claim_is_ours),
            EventInterest(Resource.PERSISTENT_VOLUME, changed),
            EventInterest(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
            EventInterest(Resource.CSI_NODE, changed, _plugins_migrated),
            EventInterest(Resource.CSI_DRIVER, Action.UPDATE, _capacity_no_longer_counts),
            EventInterest(Resource.CSI_STORAGE_CAPACITY, changed, _capacity_grew),
        )


def _zeros(n: int) -> IntArray:
    return np.zeros(n, dtype=np.int64)


def _usable(use: ClaimUse, pod: PodInfo, catalog: Catalog) -> PersistentVolumeClaim | str:
    """Return the claim, or why the Pod cannot have it."""
    claim = catalog.get(PersistentVolumeClaim, use.claim, pod.namespace)
    if claim is None:
        missing = f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{use.claim}"'
        return missing if use.is_ephemeral else not_found(use.claim)
    if claim.status.phase == _LOST:
        volume = claim.spec.volume_name
        return f'persistentvolumeclaim "{use.claim}" bound to non-existent persistentvolume "{volume}"'
    if claim.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{use.claim}" is being deleted'
    if use.is_ephemeral and not is_made_for(claim, pod.pod):
        return not_made_for(claim, pod.pod)
    return claim


def _is_delayed(claim: PersistentVolumeClaim, catalog: Catalog) -> bool:
    """Return whether a claim that is not bound waits for its Pod to have a node.

    Raises
    ------
    InvalidObjectError
        Its class does not say.
    """
    storage_class = class_of(claim, catalog)
    if storage_class is None:
        return False
    if storage_class.volume_binding_mode is None:
        raise InvalidObjectError(f'VolumeBindingMode not set for StorageClass "{class_name_of(claim)}"')
    return storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER and not claim.spec.volume_name


def _check_bound(claims: Sequence[PersistentVolumeClaim], snapshot: Snapshot) -> VolumeState:
    """Return what bound claims mean for the nodes: on each the first that decides, in order."""
    n_rows = snapshot.nodes.n_rows
    affinity, gone, faulty, open_rows = (
        np.full(n_rows, value, dtype=np.bool_) for value in (False, False, False, True)
    )
    fault = ""
    for claim in claims:
        volume = snapshot.catalog.get(PersistentVolume, claim.spec.volume_name)
        if volume is None:
            gone = open_rows
            break
        migrated, problem = _where_migrated(volume, snapshot)
        if problem and (open_rows & migrated).any():
            fault = fault or problem
            faulty |= open_rows & migrated
        refused = open_rows & ~_within_reach(volume, migrated, snapshot)
        affinity |= refused
        open_rows = open_rows & ~refused
    return VolumeState(affinity, gone, faulty, fault)


def _where_migrated(volume: PersistentVolume, snapshot: Snapshot) -> tuple[BoolArray, str]:
    """Return bool (n_rows,): where a CSI driver has the volume's plugin; and why it cannot tell the volume, if so."""
    plugin = in_tree_of(volume.spec)
    if plugin is None:
        return np.zeros(snapshot.nodes.n_rows, dtype=np.bool_), ""
    csi_nodes = snapshot.catalog.derived(CSINodes)
    csi_nodes.follow(snapshot)
    migrated = csi_nodes.migrated(plugin.name)
    try:
        plugin.handle_of(volume.spec, volume.metadata.labels)
    except InvalidObjectError as error:
        return migrated, f"could not translate pv: {error}"
    return migrated, ""


def _within_reach(volume: PersistentVolume, migrated: BoolArray, snapshot: Snapshot) -> BoolArray:
    """Return bool (n_rows,): where a volume can be used; by its driver's labels where its plugin is migrated."""
    nodes, plugin = snapshot.nodes, in_tree_of(volume.spec)
    found = matching(reach_of_affinity(volume.spec.node_affinity), nodes)
    if plugin is None or not migrated.any():
        return found
    return np.where(migrated, matching(reach_of_affinity(migrated_affinity(volume, plugin)), nodes), found)


def _class_reaches_further(_pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    old, new = event.old, event.new
    if not isinstance(old, StorageClass) or not isinstance(new, StorageClass):
        return QueueingHint.QUEUE
    is_same = (old.allowed_topologies or []) == (new.allowed_topologies or [])
    return QueueingHint.SKIP if is_same else QueueingHint.QUEUE


def _claim_is_ours(pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    claim = event.new
    if not isinstance(claim, PersistentVolumeClaim) or claim.metadata.namespace != pod.namespace:
        return QueueingHint.SKIP
    is_ours = any(use.claim == claim.metadata.name for use in claim_uses(pod.pod))
    return QueueingHint.QUEUE if is_ours else QueueingHint.SKIP


def _plugins_migrated(_pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    old, new = event.old, event.new
    if not isinstance(old, CSINode) or not isinstance(new, CSINode):
        return QueueingHint.QUEUE
    before, after = ((one.metadata.annotations or {}).get(MIGRATED_PLUGINS, "") for one in (old, new))
    return QueueingHint.SKIP if before == after else QueueingHint.QUEUE


def _capacity_no_longer_counts(pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    """Queue where a driver named by a volume within the Pod stops telling its capacity: only those, as upstream."""
    old, new = event.old, event.new
    if not isinstance(old, CSIDriver) or not isinstance(new, CSIDriver):
        return QueueingHint.QUEUE
    stopped = old.spec.storage_capacity and not new.spec.storage_capacity
    is_ours = any(
        volume.csi is not None and volume.csi.driver == new.metadata.name for volume in pod.pod.spec.volumes or ()
    )
    return QueueingHint.QUEUE if stopped and is_ours else QueueingHint.SKIP


def _capacity_grew(_pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    old, new = event.old, event.new
    if not isinstance(old, CSIStorageCapacity) or not isinstance(new, CSIStorageCapacity):
        return QueueingHint.QUEUE
    before, after = (
        bytes_of(one.capacity if one.maximum_volume_size is None else one.maximum_volume_size) for one in (old, new)
    )
    return QueueingHint.QUEUE if after > before else QueueingHint.SKIP
