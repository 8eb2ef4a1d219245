"""StorageTable: the free volumes of one storage class, or the pools to make volumes in, as columns.

Source: k8s.io/component-helpers storage/volume FindMatchingVolume and kube-scheduler v1.37 volumebinding/binder.go
hasEnoughCapacity (behaviour). Among equals kube-scheduler takes any; here a hash of the name decides, on every replica
alike. A fraction of a byte rounds against the offer.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from scheduler.errors import InvalidObjectError
from scheduler.model.arrays import INT64_MAX, BoolArray, IntArray
from scheduler.model.catalog import CatalogObject, Key
from scheduler.model.hashes import hash64
from scheduler.model.labels import LabelColumns
from scheduler.model.quantity import parse_quantity
from scheduler.model.selectors import Selector
from scheduler.model.structs import Requirement, ResourceList
from scheduler.model.volumes import PersistentVolume, PersistentVolumeClaim
from scheduler.plugins.volumes.volume_binding.reachable_nodes import ReachableRows

NONE = -1

MAX_BYTES = INT64_MAX // 100
"""What is beyond counts as this, 92 PB, so that a hundred times as much does not wrap."""

_FIRST_CAPACITY = 64
_MOST_MODES = 62
FILESYSTEM = "Filesystem"
_WORST = np.iinfo(np.int64).max
_MOST_SINGLY = 32
"""Slots that are put in their places one by one; more are sorted in with all others."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What a claim asks of a volume; `selector` None where it has none."""

    size_bytes: int
    volume_mode: str
    attributes_class: str
    access_modes: frozenset[str]
    selector: Selector | None

    @classmethod
    def of(cls, claim: PersistentVolumeClaim, selector: Selector | None) -> Wish:
        spec = claim.spec
        size = storage_of(spec.resources.requests)
        return cls(
            size_bytes=min(math.ceil(size), MAX_BYTES),
            volume_mode=spec.volume_mode or FILESYSTEM,
            attributes_class=spec.volume_attributes_class_name or "",
            access_modes=frozenset(spec.access_modes or ()),
            selector=selector,
        )

    def is_met_at_all(self, volume: PersistentVolume) -> bool:
        """Return whether a volume that was made for the claim can be it: how it is used and where does not matter."""
        return (
            floor_bytes(volume.spec.capacity) >= self.size_bytes
            and (volume.spec.volume_mode or FILESYSTEM) == self.volume_mode
            and (volume.spec.volume_attributes_class_name or "") == self.attributes_class
            and volume.metadata.deletion_timestamp is None
        )


def storage_of(resources: ResourceList | None) -> Fraction:
    """Return the exact amount of `storage`, 0 where none is named; InvalidObjectError where it is no quantity."""
    return parse_quantity(str((resources or {}).get("storage", "0")))


def bytes_of(quantity: str | int | float | None) -> int:
    """Return whole bytes, rounded up as Quantity.Value does, at most MAX_BYTES; NONE for no quantity."""
    return NONE if quantity is None else min(math.ceil(parse_quantity(str(quantity))), MAX_BYTES)


def floor_bytes(resources: ResourceList | None) -> int:
    """Return the `storage` in whole bytes, rounded down, at most MAX_BYTES."""
    return min(math.floor(storage_of(resources)), MAX_BYTES)


class StorageTable:
    """The offers of one storage class: a slot each, int64 (capacity,) columns.

    `amount` is the most that one claim can get of an offer and `total` all of it, in bytes (NONE: not known). The best
    offer is the smallest one, or any: then a hash of its name decides, as among equals.
    """

    def __init__(self, *, is_smallest_best: bool) -> None:
        self.objects: list[CatalogObject | None] = [None] * _FIRST_CAPACITY
        self.labels = LabelColumns(_FIRST_CAPACITY)
        self.columns: IntArray = np.zeros((8, _FIRST_CAPACITY), dtype=np.int64)
        self._slots: dict[Key, int] = {}
        self._free = list(range(_FIRST_CAPACITY - 1, -1, -1))
        self._kinds: dict[tuple[str, str], int] = {}
        self._modes: dict[str, int] = {}
        self._class_codes: dict[str, int] = {}
        self._is_smallest_best = is_smallest_best
        self._by_rank, self._by_reach = SlotOrder(), SlotOrder()
        self._rank: IntArray = np.zeros(_FIRST_CAPACITY, dtype=np.int64)
        self._changed: set[int] = set()

    @property
    def is_there(self) -> BoolArray:
        column: BoolArray = self.columns[0] != 0
        return column

    @property
    def reach(self) -> IntArray:
        column: IntArray = self.columns[1]
        return column

    @property
    def amount(self) -> IntArray:
        column: IntArray = self.columns[2]
        return column

    @property
    def total(self) -> IntArray:
        column: IntArray = self.columns[3]
        return column

    def set(
        self, key: Key, item: CatalogObject, values: Sequence[int], kinds: tuple[str, str], modes: Sequence[str]
    ) -> None:
        """Add an offer: `values` are reach, amount and total; `kinds` volume mode and attributes class."""
        named = item.spec.storage_class_name if isinstance(item, PersistentVolume) else ""
        class_code = self._class_codes.setdefault(named, len(self._class_codes))
        bits, kind = self._bits(modes), self._kinds.setdefault(kinds, len(self._kinds))
        if not self._free:
            self._grow()
        slot = self._slots[key] = self._free.pop()
        self.objects[slot] = item
        self.labels.set_row(slot, item.metadata.labels or {})
        tie = hash64("/".join(key)) >> 1
        self.columns[:, slot] = (1, *values, kind, bits, tie, class_code)
        self._changed.add(slot)

    def remove(self, key: Key) -> int | None:
        """Take an offer out; return its reach, to be given back, None where there is none."""
        slot = self._slots.pop(key, None)
        if slot is None:
            return None
        self.objects[slot] = None
        self.labels.set_row(slot, {})
        self.columns[0, slot] = 0
        self._free.append(slot)
        self._changed.add(slot)
        return int(self.columns[1, slot])

    def suits(self, wish: Wish) -> BoolArray:
        """Return bool (capacity,): the free volumes that a claim could have, wherever they are."""
        kind = self._kinds.get((wish.volume_mode, wish.attributes_class), NONE)
        found = self.has_room(wish.size_bytes)
        found &= self.columns[4] == kind
        if not wish.access_modes <= self._modes.keys() or (wish.selector is not None and wish.selector.is_nothing):
            return np.zeros_like(found)
        wanted = self._bits(wish.access_modes)
        found &= self.columns[5] & wanted == wanted
        for term in wish.selector.terms if wish.selector is not None else ():
            requirement = Requirement(key=term.key, operator=term.operator, values=list(term.values))
            found &= self.labels.matches(requirement, len(found))
        return found

    def by_class(self, slots: IntArray) -> list[tuple[str, BoolArray]]:
        """Return bool (len(slots),) per `spec.storageClassName`, which an annotation may have overruled."""
        codes = self.columns[7, slots]
        return [(name, codes == code) for name, code in self._class_codes.items()]

    def has_room(self, size_bytes: int) -> BoolArray:
        """Return bool (capacity,): the offers of which one claim can get this much."""
        found: BoolArray = self.is_there & (self.amount >= size_bytes)
        return found

    def best(self, suits: BoolArray, taken: Sequence[IntArray], reaches: ReachableRows, n_rows: int) -> IntArray:
        """Return int64 (n_rows,): the best slot for each node, NONE where there is none.

        Of offers with the same reach only the first few can be the best anywhere: one more than `taken` columns of
        slots that are not free any more on a node.
        """
        order = self._by_reach.slots
        order = order[suits[order]]
        same = self.reach[order]
        starts = np.flatnonzero(np.diff(same, prepend=-1))
        within = np.arange(len(order)) - np.repeat(starts, np.diff(starts, append=len(order)))
        order = order[within <= len(taken)]
        rows, lengths = reaches.expand(self.reach[order])
        slots = np.repeat(order, lengths)
        for earlier in taken:
            is_free = earlier[rows] != slots
            rows, slots = rows[is_free], slots[is_free]
        ranks = np.full(n_rows, _WORST, dtype=np.int64)
        np.minimum.at(ranks, rows, self._rank[slots])
        found = np.full(n_rows, NONE, dtype=np.int64)
        is_found = ranks != _WORST
        found[is_found] = self._by_rank.slots[ranks[is_found]]
        return found

    def follow(self) -> None:
        """Bring the orders and ranks up to date with the offers."""
        if not self._changed:
            return
        size, tie = (self.amount if self._is_smallest_best else np.zeros_like(self.amount)), self.columns[6]
        self._by_rank.update((size, tie), self.is_there, self._changed)
        self._by_reach.update((self.reach, size, tie), self.is_there, self._changed)
        self._changed.clear()
        self._rank = np.zeros(len(self.objects), dtype=np.int64)
        self._rank[self._by_rank.slots] = np.arange(len(self._by_rank.slots))

    def _bits(self, modes: Iterable[str]) -> int:
        """Return a set of access modes as bits; an API server knows four modes, there is room for 62."""
        bits = {self._modes.setdefault(mode, len(self._modes)) for mode in modes}
        if len(self._modes) > _MOST_MODES:
            raise InvalidObjectError(f"accessModes: more than {_MOST_MODES} different ones in a storage class")
        return sum(1 << bit for bit in bits)

    def _grow(self) -> None:
        before = len(self.objects)
        self.objects += [None] * before
        self.labels.grow(2 * before)
        self.columns = np.concatenate([self.columns, np.zeros_like(self.columns)], axis=1)
        self._free = list(range(2 * before - 1, before - 1, -1))


class SlotOrder:
    """Slots in ascending order of some columns: one that changes costs a look-up and a copy, no sort."""

    def __init__(self) -> None:
        self.slots: IntArray = np.zeros(0, dtype=np.int64)

    def update(self, columns: Sequence[IntArray], is_there: BoolArray, changed: Collection[int]) -> None:
        """Take in which slots are there and have changed; the first column is what counts first.

        Columns are int64, `is_there` bool (capacity,); of slots that are not named nothing may have changed.
        """
        if len(changed) > _MOST_SINGLY:
            slots = np.flatnonzero(is_there)
            self.slots = slots[np.lexsort([column[slots] for column in reversed(columns)])]
            return

        def place(slot: int) -> tuple[int, ...]:
            return tuple(int(column[slot]) for column in columns)

        is_changed = np.zeros(len(is_there), dtype=np.bool_)
        is_changed[list(changed)] = True
        self.slots = self.slots[~is_changed[self.slots]]
        for slot in changed:
            if is_there[slot]:
                at = bisect_left(self.slots, place(slot), key=place)
                self.slots = np.insert(self.slots, at, slot)
