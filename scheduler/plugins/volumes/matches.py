"""Which free volumes the claims of a Pod would be bound to on each node, and which would be made there.

For all nodes at once, claim by claim: the smallest claim first, each takes the smallest volume that suits it.

Source: kube-scheduler v1.37 volumebinding/binder.go FindPodVolumes (behaviour).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from scheduler.errors import InvalidObjectError
from scheduler.model.arrays import BoolArray, IntArray
from scheduler.model.label_selectors import Selector, selector_of
from scheduler.model.snapshot import Snapshot
from scheduler.model.volumes import (
    SELECTED_NODE,
    CSIDriver,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from scheduler.plugins.volumes.claims import class_name_of
from scheduler.plugins.volumes.offers import NONE, Offers, OfferTable, Wish, bytes_of, storage_of
from scheduler.plugins.volumes.reach import matching, reach_of_affinity, reach_of_topologies

_NO_PROVISIONER = ("", "kubernetes.io/no-provisioner")


@dataclass(frozen=True, slots=True)
class Match:
    """The volume of one claim per node: `slots` of free ones (NONE: none), else one of those made for the claim."""

    claim: PersistentVolumeClaim
    slots: IntArray
    table: OfferTable
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
    """A claim for which a volume would be made `where`, bool (n_rows,); `pools` are slots, NONE where nobody counts."""

    claim: PersistentVolumeClaim
    where: BoolArray
    pools: IntArray
    table: OfferTable


class Binding(NamedTuple):
    """What one node would have to have bound for the Pod: claims to volumes, and claims to make volumes for."""

    static: list[tuple[PersistentVolumeClaim, PersistentVolume]]
    provision: list[PersistentVolumeClaim]


@dataclass(slots=True)
class Plan:
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
    matches: list[Match] = field(default_factory=list)
    provisions: list[Provision] = field(default_factory=list)

    def on(self, node_name: str) -> Binding:
        """Return what Reserve and PreBind have to do; to be asked before the next change to any object is taken in."""
        row = self.names.index(node_name)
        static = [(match.claim, volume) for match in self.matches if (volume := match.at(row)) is not None]
        return Binding(static, [one.claim for one in self.provisions if one.where[row]])


def plan(claims: Sequence[PersistentVolumeClaim], snapshot: Snapshot) -> Plan:
    """Return what is to be done for claims without a volume whose class waits for the first consumer."""
    nodes = snapshot.nodes
    offers = snapshot.catalog.derived(Offers)
    offers.follow(snapshot)
    selected = [claim for claim in claims if _selected_node(claim) is not None]
    looked_at = np.ones(nodes.n_rows, dtype=np.bool_)
    for claim in selected:
        here = np.zeros(nodes.n_rows, dtype=np.bool_)
        row = nodes.row_of(_selected_node(claim) or "")
        if row is not None:
            here[row] = True
        looked_at &= here
    nobody = np.zeros(nodes.n_rows, dtype=np.bool_)
    found = Plan(~looked_at, nobody.copy(), nobody, "", tuple(nodes.names[: nodes.n_rows]))
    to_match = sorted((claim for claim in claims if _selected_node(claim) is None), key=_request)
    for claim in to_match:
        try:
            selector = None if claim.spec.selector is None else selector_of(claim.spec.selector)
        except InvalidObjectError as error:
            where = f"{claim.metadata.namespace}/{claim.metadata.name}"
            found.faulty = looked_at
            found.fault = f"error creating internal label selector for claim: {where}: {error}"
            return found
        found.matches.append(_match(claim, selector, found.matches, offers, snapshot))
    to_provision = [(claim, looked_at) for claim in selected]
    to_provision += [(match.claim, looked_at & ~match.is_matched) for match in found.matches]
    _provision(to_provision, found, offers, snapshot)
    return found


def _selected_node(claim: PersistentVolumeClaim) -> str | None:
    return (claim.metadata.annotations or {}).get(SELECTED_NODE)


def _request(claim: PersistentVolumeClaim) -> Fraction:
    return storage_of(claim.spec.resources.requests)


def _match(
    claim: PersistentVolumeClaim,
    selector: Selector | None,
    earlier: Sequence[Match],
    offers: Offers,
    snapshot: Snapshot,
) -> Match:
    """Return the best volume for a claim on each node: one made for it, even where it cannot be used, before others."""
    class_name = class_name_of(claim)
    table = offers.volumes(class_name)
    wish = Wish.of(claim, selector)
    taken = [match.slots for match in earlier if match.table is table]
    slots = table.best(table.suits(wish), taken, offers.reaches, snapshot.nodes.n_rows)
    made_for = []
    open_rows = np.ones(snapshot.nodes.n_rows, dtype=np.bool_)
    for volume in offers.made_for(claim, class_name, snapshot.catalog):
        if not wish.is_met_at_all(volume):
            continue
        here = open_rows.copy()
        for match in earlier:
            for other, where in match.made_for:
                here &= ~where if other is volume else True
        made_for.append((volume, here & matching(reach_of_affinity(volume.spec.node_affinity), snapshot.nodes)))
        open_rows &= ~here
    slots[~open_rows] = NONE
    return Match(claim, slots, table, made_for)


def _provision(
    wanted: Sequence[tuple[PersistentVolumeClaim, BoolArray]], found: Plan, offers: Offers, snapshot: Snapshot
) -> None:
    """Note for each claim where a volume would be made for it; a node's first claim without a way decides for it."""
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
        table = offers.pools("" if storage_class is None else storage_class.metadata.name)
        pools = np.full(snapshot.nodes.n_rows, NONE, dtype=np.int64)
        if storage_class is not None and _is_counted(claim, storage_class, snapshot):
            size = bytes_of(str((claim.spec.resources.requests or {})["storage"]))
            pools = table.best(table.has_room(size), (), offers.reaches, snapshot.nodes.n_rows)
            full = here & (pools == NONE)
            found.no_space |= full
            open_rows &= ~full
            here &= ~full
        found.provisions.append(Provision(claim, here, pools, table))


def _is_counted(claim: PersistentVolumeClaim, storage_class: StorageClass, snapshot: Snapshot) -> bool:
    """Return whether the driver tells how much storage there is, and the claim how much it wants."""
    driver = snapshot.catalog.get(CSIDriver, storage_class.provisioner)
    is_told = driver is not None and bool(driver.spec.storage_capacity)
    return is_told and "storage" in (claim.spec.resources.requests or {})


@dataclass(slots=True)
class _ClassSum:
    """Bytes of one storage class per node, int64 (n_rows,), where there are any; `capacity` NONE is not known."""

    requested: IntArray
    capacity: IntArray
    where: BoolArray


def capacity_scores(plan: Plan, by_use: IntArray) -> IntArray:
    """Return int64 (n_rows,), 0..100: the mean over the classes of what the use of their storage scores.

    Where volumes are matched, only these count. A class without a known capacity, and one that a claim names by
    annotation alone, make kube-scheduler 1.37.1 crash; here such a class gives 0.

    Parameters
    ----------
    by_use
        int64 (101,), the score of each whole per cent of use.

    Source: kube-scheduler v1.37 volumebinding/volume_binding.go Score and scorer.go (behaviour).
    """
    n_rows = len(plan.names)
    static = np.zeros(n_rows, dtype=np.bool_)
    for match in plan.matches:
        static |= match.is_matched
    by_match, by_pool = _sums_of_matches(plan, n_rows), _sums_of_provisions(plan, n_rows, ~static)
    total = np.zeros(n_rows, dtype=np.int64)
    n_classes = np.zeros(n_rows, dtype=np.int64)
    for one in (*by_match.values(), *by_pool.values()):
        is_known = one.where & (one.capacity != NONE)
        requested, capacity = one.requested[is_known], one.capacity[is_known]
        has_room = (capacity > 0) & (requested <= capacity)
        total[is_known] += by_use[np.where(has_room, 100 * requested // np.maximum(capacity, 1), 100)]
        n_classes += one.where
    return (2 * total + n_classes) // np.maximum(2 * n_classes, 1)


def _sums_of_matches(plan: Plan, n_rows: int) -> Mapping[str, _ClassSum]:
    """Return per class of the volumes what is asked of them, and how large they are."""
    sums: dict[str, _ClassSum] = {}
    for match in plan.matches:
        size = _size(match.claim)
        for volume, where in match.made_for:
            one = _sum_of(sums, volume.spec.storage_class_name, n_rows)
            one.requested[where] += size
            one.capacity[where] += bytes_of(str((volume.spec.capacity or {}).get("storage", "0")))
            one.where |= where
        rows = np.flatnonzero(match.slots != NONE)
        slots = match.slots[rows]
        for slot_class, chosen in match.table.by_class(slots):
            if not chosen.any():
                continue
            one = _sum_of(sums, slot_class, n_rows)
            one.requested[rows[chosen]] += size
            one.capacity[rows[chosen]] += match.table.total[slots[chosen]]
            one.where[rows[chosen]] = True
    return sums


def _sums_of_provisions(plan: Plan, n_rows: int, where: BoolArray) -> Mapping[str, _ClassSum]:
    """Return per class of the claims what is asked, and how large the pool of the last claim is."""
    sums: dict[str, _ClassSum] = {}
    for one in plan.provisions:
        here = one.where & where & (one.pools != NONE)
        if not here.any():
            continue
        of_class = _sum_of(sums, class_name_of(one.claim), n_rows)
        of_class.requested[here] += _size(one.claim)
        of_class.capacity[here] = (
            NONE if one.claim.spec.storage_class_name is None else one.table.total[one.pools[here]]
        )
        of_class.where |= here
    return sums


def _size(claim: PersistentVolumeClaim) -> int:
    return bytes_of(str((claim.spec.resources.requests or {}).get("storage", "0")))


def _sum_of(sums: dict[str, _ClassSum], name: str, n_rows: int) -> _ClassSum:
    if name not in sums:
        zeros = np.zeros(n_rows, dtype=np.int64)
        sums[name] = _ClassSum(zeros, zeros.copy(), np.zeros(n_rows, dtype=np.bool_))
    return sums[name]
