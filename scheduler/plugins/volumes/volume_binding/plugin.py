"""VolumeBinding: a Pod goes where its volumes can be used, found or made."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from scheduler.errors import InvalidObjectError
from scheduler.framework.events import Action, EventInterest, Resource
from scheduler.framework.instructions import Preparation, WaitFor
from scheduler.framework.intree_args import VolumeBindingArgs
from scheduler.framework.plugin import (
    ApiView,
    FilterPlugin,
    FreedBy,
    PreBindPlugin,
    PreFilterPlugin,
    ReservePlugin,
    ScorePlugin,
)
from scheduler.framework.status import SKIP, Code, PreFilterResult, Rejection, Reserved, ScoreTerm, Status
from scheduler.model.arrays import IntArray, Rows
from scheduler.model.catalog import Catalog, ObjectKey
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from scheduler.model.volumes import PersistentVolumeClaim
from scheduler.plugins.shared.scores import shape_scores
from scheduler.plugins.volumes.claims import (
    WAIT_FOR_FIRST_CONSUMER,
    ClaimUse,
    claim_uses,
    class_name_of,
    class_of,
    is_bound,
    is_made_for,
    is_used_claim,
    not_found,
    not_made_for,
)
from scheduler.plugins.volumes.csi_nodes import CSINodes
from scheduler.plugins.volumes.volume_binding.binding_plan import plan_binding
from scheduler.plugins.volumes.volume_binding.bound_claims import VolumeState, check_bound
from scheduler.plugins.volumes.volume_binding.capacity_score import capacity_scores
from scheduler.plugins.volumes.volume_binding.free_storage import FreeStorage
from scheduler.plugins.volumes.volume_binding.hints import (
    capacity_grew,
    capacity_no_longer_counts,
    class_reaches_further,
    plugins_migrated,
)
from scheduler.plugins.volumes.volume_binding.reserve_and_prebind import AssumedVolumes, choose, still_awaited, writes

REASON_AFFINITY = "node(s) didn't match PersistentVolume's node affinity"
REASON_NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
REASON_NO_SPACE = "node(s) did not have enough free storage"
REASON_GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
REASON_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"

_TOO_LATE = "binding volumes: context deadline exceeded"

_LOST = "Lost"


class VolumeBinding(PreFilterPlugin, FilterPlugin, ScorePlugin, ReservePlugin, PreBindPlugin):
    """Refuses nodes that bound volumes cannot be used on, or where no volume can be found or made for a claim.

    Scores how much of the storage would be used, the less the better by default. Nothing of this changes within a
    cycle, so PreFilter decides for all rows at once. The score is 0 on every node for Pods without claims: one column
    for all of them.

    Once a node is chosen, Reserve assumes the volumes and claims as they will be; PreBind writes them and waits until
    the cluster's controllers have bound the claims.

    Source: kube-scheduler v1.37 volumebinding/volume_binding.go and binder.go (behaviour).
    """

    freed_by = FreedBy.NOTHING
    Args = VolumeBindingArgs

    def __init__(self, args: VolumeBindingArgs | None = None) -> None:
        given = args or VolumeBindingArgs()
        self._score_by_use = shape_scores([(point.utilization, point.score) for point in given.shape])
        self._bind_timeout_s = float(given.bind_timeout_seconds)

    def follow(self, snapshot: Snapshot) -> None:
        snapshot.catalog.derived(FreeStorage).follow(snapshot)
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
        # All are checked before any is refused: a class without a binding mode is an error in any case.
        if not all([_is_delayed(claim, snapshot.catalog) for claim in waiting]):
            return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (REASON_IMMEDIATE,))
        state = check_bound(bound, snapshot)
        return PreFilterResult(replace(state, plan=plan_binding(waiting, snapshot)) if waiting else state)

    def filter(self, state: VolumeState, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[Rejection]:
        refused = [(state.affinity, REASON_AFFINITY), (state.gone, REASON_GONE)]
        faults = [(found.faulty, found.fault) for found in (state, state.plan) if found is not None and found.fault]
        if state.plan is not None:
            refused[1:1] = [(state.plan.no_volume, REASON_NO_VOLUME), (state.plan.no_space, REASON_NO_SPACE)]
        # An error comes first: it fails the attempt, so no other reason is reported for that node.
        codes = ((Code.ERROR, faults), (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, refused))
        return [Rejection(mask[rows], code, reason) for code, told in codes for mask, reason in told if mask.any()]

    def score(self, state: VolumeState | None, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[ScoreTerm]:
        """Return what `shape` says of the storage that would be used, where claims wait for a node."""
        if state is None or state.plan is None:
            nothing = snapshot.memo.get(("VolumeBinding", n := snapshot.nodes.n_rows), (), lambda: _zeros(n))
            return (ScoreTerm(self.name, nothing, is_column=True),)
        return (ScoreTerm(self.name, capacity_scores(state.plan, self._score_by_use)[rows]),)

    def reserve(self, state: VolumeState | None, pod: PodInfo, node_name: str) -> Reserved | None:
        if state is None or state.plan is None:
            return None
        chosen = choose(state.plan.on(node_name), node_name)
        return Reserved(chosen, chosen.changed)

    def unreserve(self, state: VolumeState | AssumedVolumes | None, pod: PodInfo, node_name: str) -> None:
        """Do nothing: the caller takes back the objects that Reserve returned."""

    def prebind(
        self, state: VolumeState | AssumedVolumes | None, pod: PodInfo, node_name: str
    ) -> Sequence[Preparation] | None:
        if not isinstance(state, AssumedVolumes):
            return None
        return (*writes(state), WaitFor(self._bind_timeout_s, _TOO_LATE))

    def still_awaits(self, state: AssumedVolumes, pod: PodInfo, node_name: str, api: ApiView) -> Collection[ObjectKey]:
        return still_awaited(state, node_name, api)

    def events(self) -> Sequence[EventInterest]:
        changed = Action.ADD | Action.UPDATE
        return (
            EventInterest(Resource.STORAGE_CLASS, changed, class_reaches_further),
            EventInterest(Resource.PERSISTENT_VOLUME_CLAIM, changed, is_used_claim),
            EventInterest(Resource.PERSISTENT_VOLUME, changed),
            EventInterest(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
            EventInterest(Resource.CSI_NODE, changed, plugins_migrated),
            EventInterest(Resource.CSI_DRIVER, Action.UPDATE, capacity_no_longer_counts),
            EventInterest(Resource.CSI_STORAGE_CAPACITY, changed, capacity_grew),
        )


def _zeros(n: int) -> IntArray:
    return np.zeros(n, dtype=np.int64)


def _usable(use: ClaimUse, pod: PodInfo, catalog: Catalog) -> PersistentVolumeClaim | str:
    """Return the claim, or why the Pod cannot use it."""
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
        Its class has no binding mode.
    """
    storage_class = class_of(claim, catalog)
    if storage_class is None:
        return False
    if storage_class.volume_binding_mode is None:
        raise InvalidObjectError(f'VolumeBindingMode not set for StorageClass "{class_name_of(claim)}"')
    return storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER and not claim.spec.volume_name
