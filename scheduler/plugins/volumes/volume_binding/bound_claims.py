"""What a Pod's claims mean for the nodes; of those that are bound, where their volumes can be used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scheduler.errors import InvalidObjectError
from scheduler.model.arrays import BoolArray
from scheduler.model.snapshot import Snapshot
from scheduler.model.volumes import PersistentVolume, PersistentVolumeClaim
from scheduler.plugins.volumes.csi_migration import in_tree_of, migrated_affinity
from scheduler.plugins.volumes.csi_nodes import CSINodes
from scheduler.plugins.volumes.volume_binding.binding_plan import BindingPlan
from scheduler.plugins.volumes.volume_binding.reachable_nodes import matching, reach_of_affinity


@dataclass(frozen=True, slots=True)
class VolumeState:
    """What the Pod's claims mean for every node.

    affinity, gone
        bool (n_rows,): a bound volume cannot be used there, or is no longer there at all.
    faulty
        Where the attempt fails because `fault`, as `BindingPlan` has it for the others.
    plan
        What is to be done for the claims that wait for a node; None if none does.
    """

    affinity: BoolArray
    gone: BoolArray
    faulty: BoolArray
    fault: str = ""
    plan: BindingPlan | None = None


def check_bound(claims: Sequence[PersistentVolumeClaim], snapshot: Snapshot) -> VolumeState:
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
    """Return bool (n_rows,): where a CSI driver has taken over the volume's plugin; and why it has no handle, if so."""
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
