"""VolumeBinding's score: how much of the storage would be used.

Source: kube-scheduler v1.37 volumebinding/volume_binding.go Score and scorer.go (behaviour).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from scheduler.model.arrays import BoolArray, IntArray
from scheduler.model.volumes import PersistentVolumeClaim
from scheduler.plugins.volumes.claims import class_name_of
from scheduler.plugins.volumes.volume_binding.binding_plan import BindingPlan
from scheduler.plugins.volumes.volume_binding.storage_table import NONE, bytes_of


@dataclass(slots=True)
class _ClassSum:
    """Bytes of one storage class per node, int64 (n_rows,), where there are any; `capacity` NONE is not known."""

    requested: IntArray
    capacity: IntArray
    where: BoolArray


def capacity_scores(plan: BindingPlan, by_use: IntArray) -> IntArray:
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


def _sums_of_matches(plan: BindingPlan, n_rows: int) -> Mapping[str, _ClassSum]:
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


def _sums_of_provisions(plan: BindingPlan, n_rows: int, where: BoolArray) -> Mapping[str, _ClassSum]:
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
