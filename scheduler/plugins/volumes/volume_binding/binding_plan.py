"""Which free volumes the claims of a Pod would be bound to on each node, and which would be made there.

For all nodes at once, claim by claim: the smallest claim first, each takes the smallest volume that suits it.

Source: kube-scheduler v1.37 volumebinding/binder.go FindPodVolumes (behaviour).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from scheduler.errors import InvalidObjectError
from scheduler.model.arrays import BoolArray, IntArray
from scheduler.model.selectors import Selector, selector_of
from scheduler.model.snapshot import Snapshot
from scheduler.model.volumes import (
    SELECTED_NODE,
    CSIDriver,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from scheduler.plugins.volumes.claims import class_name_of
from scheduler.plugins.volumes.volume_binding.free_storage import FreeStorage
from scheduler.plugins.volumes.volume_binding.reachable_nodes import matching, reach_of_affinity, reach_of_topologies
from scheduler.plugins.volumes.volume_binding.storage_table import NONE, StorageTable, Wish, bytes_of, storage_of

_NO_PROVISIONER = ("", "kubernetes.io/no-provisioner")


@dataclass(frozen=True, slots=True)
class ClaimMatch:
    """The volume of one claim per node: `slots` of free ones (NONE: none), else one of those made for the claim."""

    claim: PersistentVolumeClaim
    slots: IntArray
    table: StorageTable
    made_for: list[tuple[PersistentVolume, BoolArray]] = field(default_factory=list)

    @property
    def is_matched(self) -> BoolArray:
        found: BoolArray = self.slots != NONE
        for _, where in self.made_for:
            found = found | where
        return found

    def at(self, row: int) -> PersistentVolume | None:
        slot = int(self.slots[row])
        if slot != NONE:
            found = self.table.objects[slot]
            return found if isinstance(found, PersistentVolume) else None
        return next((volume for volume, where in self.made_for if where[row]), None)


@dataclass(frozen=True, slots=True)
class Provision:
    """A claim for which a volume would be made `where`, bool (n_rows,); `pools` are slots, NONE: capacity unknown."""

    claim: PersistentVolumeClaim
    where: BoolArray
    pools: IntArray
    table: StorageTable


class PodVolumes(NamedTuple):
    """What one node would have to have bound for the Pod: claims to volumes, and claims to make volumes for."""

    static: list[tuple[PersistentVolumeClaim, PersistentVolume]]
    provision: list[PersistentVolumeClaim]


@dataclass(slots=True)
class BindingPlan:
    """What is to be done for the claims that wait for a node, on every node, bool (n_rows,) where not said otherwise.

    no_volume, no_space
        The two ways in which a node cannot serve the claims.
    faulty
        Where the attempt fails because `fault`, "" if it does not.
    names
        The node of each row, as it was when this was worked out.
    """

    no_volume: BoolArray
    no_space: BoolArray
    faulty: BoolArray
    fault: str
    names: tuple[str, ...]
    matches: list[ClaimMatch] = field(default_factory=list)
    provisions: list[Provision] = field(default_factory=list)

    def on(self, node_name: str) -> PodVolumes:
        """Return what Reserve and PreBind have to do; to be asked before the next change to any object is taken in."""
        row = self.names.index(node_name)
        static = [(match.claim, volume) for match in self.matches if (volume := match.at(row)) is not None]
        return PodVolumes(static, [one.claim for one in self.provisions if one.where[row]])


def plan_binding(claims: Sequence[PersistentVolumeClaim], snapshot: Snapshot) -> BindingPlan:
    """Return what is to be done for claims without a volume whose class waits for the first consumer."""
    nodes = snapshot.nodes
    free = snapshot.catalog.derived(FreeStorage)
    free.follow(snapshot)
    selected = [claim for claim in claims if _selected_node(claim) is not None]
    looked_at = np.ones(nodes.n_rows, dtype=np.bool_)
    for claim in selected:
        here = np.zeros(nodes.n_rows, dtype=np.bool_)
        row = nodes.row_of(_selected_node(claim) or "")
        if row is not None:
            here[row] = True
        looked_at &= here
    nobody = np.zeros(nodes.n_rows, dtype=np.bool_)
    found = BindingPlan(~looked_at, nobody.copy(), nobody, "", tuple(nodes.names[: nodes.n_rows]))
    to_match = sorted((claim for claim in claims if _selected_node(claim) is None), key=_request)
    for claim in to_match:
        try:
            selector = None if claim.spec.selector is None else selector_of(claim.spec.selector)
        except InvalidObjectError as error:
            where = f"{claim.metadata.namespace}/{claim.metadata.name}"
            found.faulty = looked_at
            found.fault = f"error creating internal label selector for claim: {where}: {error}"
            return found
        found.matches.append(_match(claim, selector, found.matches, free, snapshot))
    to_provision = [(claim, looked_at) for claim in selected]
    to_provision += [(match.claim, looked_at & ~match.is_matched) for match in found.matches]
    _provision(to_provision, found, free, snapshot)
    return found


def _selected_node(claim: PersistentVolumeClaim) -> str | None:
    return (claim.metadata.annotations or {}).get(SELECTED_NODE)


def _request(claim: PersistentVolumeClaim) -> Fraction:
    return storage_of(claim.spec.resources.requests)


def _match(
    claim: PersistentVolumeClaim,
    selector: Selector | None,
    earlier: Sequence[ClaimMatch],
    free: FreeStorage,
    snapshot: Snapshot,
) -> ClaimMatch:
    """Return the best volume for a claim on each node: one made for it, even where it cannot be used, before others."""
    class_name = class_name_of(claim)
    table = free.volumes(class_name)
    wish = Wish.of(claim, selector)
    taken = [match.slots for match in earlier if match.table is table]
    slots = table.best(table.suits(wish), taken, free.reaches, snapshot.nodes.n_rows)
    made_for = []
    open_rows = np.ones(snapshot.nodes.n_rows, dtype=np.bool_)
    for volume in free.made_for(claim, class_name, snapshot.catalog):
        if not wish.is_met_at_all(volume):
            continue
        here = open_rows.copy()
        for match in earlier:
            for other, where in match.made_for:
                here &= ~where if other is volume else True
        made_for.append((volume, here & matching(reach_of_affinity(volume.spec.node_affinity), snapshot.nodes)))
        open_rows &= ~here
    slots[~open_rows] = NONE
    return ClaimMatch(claim, slots, table, made_for)


def _provision(
    wanted: Sequence[tuple[PersistentVolumeClaim, BoolArray]], found: BindingPlan, free: FreeStorage, snapshot: Snapshot
) -> None:
    """Note for each claim where a volume would be made for it; on each node the first claim that fails decides."""
    open_rows = np.ones(snapshot.nodes.n_rows, dtype=np.bool_)
    for claim, where in wanted:
        here = where & open_rows
        if not here.any():
            continue
        storage_class = snapshot.catalog.get(StorageClass, class_name_of(claim))
        if storage_class is None or storage_class.provisioner in _NO_PROVISIONER:
            refused = here
        else:
            reach = reach_of_topologies(storage_class.allowed_topologies)
            refused = here & ~matching(reach, snapshot.nodes)
        found.no_volume |= refused
        open_rows &= ~refused
        here &= ~refused
        table = free.pools("" if storage_class is None else storage_class.metadata.name)
        pools = np.full(snapshot.nodes.n_rows, NONE, dtype=np.int64)
        if storage_class is not None and _is_counted(claim, storage_class, snapshot):
            size = bytes_of(str((claim.spec.resources.requests or {})["storage"]))
            pools = table.best(table.has_room(size), (), free.reaches, snapshot.nodes.n_rows)
            full = here & (pools == NONE)
            found.no_space |= full
            open_rows &= ~full
            here &= ~full
        found.provisions.append(Provision(claim, here, pools, table))


def _is_counted(claim: PersistentVolumeClaim, storage_class: StorageClass, snapshot: Snapshot) -> bool:
    """Return whether the driver publishes its capacity, and the claim asks for a size."""
    driver = snapshot.catalog.get(CSIDriver, storage_class.provisioner)
    is_told = driver is not None and bool(driver.spec.storage_capacity)
    return is_told and "storage" in (claim.spec.resources.requests or {})
