"""FreeStorage: what storage there is for claims: free volumes, and pools to make new ones in, by storage class.

A claim is matched on all nodes at once: the offers that suit it are laid out over the nodes that each can be used from,
and every node gets the best of its own. Only PersistentVolumes and CSIStorageCapacities change what the tables hold.
"""

from __future__ import annotations

from typing import Final

from scheduler.errors import InvalidObjectError
from scheduler.model.catalog import Catalog, CatalogObject, Key
from scheduler.model.snapshot import Snapshot
from scheduler.model.volumes import CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim, storage_class_of
from scheduler.plugins.volumes.volume_binding.reachable_nodes import (
    ReachableRows,
    reach_of_affinity,
    reach_of_selector,
)
from scheduler.plugins.volumes.volume_binding.storage_table import FILESYSTEM, StorageTable, bytes_of, floor_bytes

_AVAILABLE: Final = "Available"


class FreeStorage:
    """The tables of all storage classes, and the volumes that were made for one claim."""

    def __init__(self) -> None:
        self.reaches = ReachableRows()
        self._volumes: dict[str, StorageTable] = {}
        self._pools: dict[str, StorageTable] = {}
        self._class_of: dict[tuple[type, Key], str] = {}
        self._made_for: dict[Key, dict[str, None]] = {}
        self._claim_of: dict[str, Key] = {}
        self._seen: dict[type[CatalogObject], int] = {}

    def volumes(self, class_name: str) -> StorageTable:
        """Return the free volumes of a class."""
        return _table(self._volumes, class_name, is_smallest_best=True)

    def pools(self, class_name: str) -> StorageTable:
        """Return the storage capacities of a class."""
        return _table(self._pools, class_name, is_smallest_best=False)

    def made_for(self, claim: PersistentVolumeClaim, class_name: str, catalog: Catalog) -> list[PersistentVolume]:
        """Return the volumes of the claim's class that name it as theirs, whatever state they are in."""
        names = self._made_for.get((claim.metadata.namespace, claim.metadata.name), ())
        found = [catalog.get(PersistentVolume, name) for name in names]
        return [volume for volume in found if volume is not None and _is_for(volume, claim, class_name)]

    def follow(self, snapshot: Snapshot) -> None:
        """Take in what has changed since the last call, on nodes too."""
        catalog = snapshot.catalog
        for kind in (PersistentVolume, CSIStorageCapacity):
            changed = catalog.changed_since(kind, self._seen.get(kind, 0))
            self._seen[kind] = catalog.generation(kind)
            if changed is None:
                known = [key for known_kind, key in self._class_of if known_kind is kind]
                there = [(item.metadata.namespace, item.metadata.name) for item in catalog.all(kind)]
                named = [("", name) for name in self._claim_of] if kind is PersistentVolume else []
                changed = [*known, *named, *there]
            for key in dict.fromkeys(changed):
                self._forget(kind, key)
                item = catalog.get(kind, key[1], key[0])
                try:
                    self._offer(key, item)
                except InvalidObjectError:
                    continue  # a quantity that no API server accepts: such an offer cannot be relied on
        self.reaches.follow(snapshot.nodes, snapshot.generation)
        for table in (*self._volumes.values(), *self._pools.values()):
            table.follow()

    def _offer(self, key: Key, item: CatalogObject | None) -> None:
        if isinstance(item, PersistentVolume):
            self._offer_volume(key, item)
        elif isinstance(item, CSIStorageCapacity):
            self._offer_pool(key, item)

    def _offer_volume(self, key: Key, volume: PersistentVolume) -> None:
        claim = volume.spec.claim_ref
        if claim is not None:
            self._claim_of[volume.metadata.name] = claim.namespace, claim.name
            self._made_for.setdefault((claim.namespace, claim.name), {})[volume.metadata.name] = None
            return
        if volume.status.phase != _AVAILABLE or volume.metadata.deletion_timestamp is not None:
            return
        size = floor_bytes(volume.spec.capacity)
        class_name = self._class_of[PersistentVolume, key] = _class_name(volume)
        reach = self.reaches.acquire(reach_of_affinity(volume.spec.node_affinity))
        kinds = volume.spec.volume_mode or FILESYSTEM, volume.spec.volume_attributes_class_name or ""
        modes = volume.spec.access_modes or []
        self.volumes(class_name).set(key, volume, (reach, size, bytes_of(size)), kinds, modes)

    def _offer_pool(self, key: Key, pool: CSIStorageCapacity) -> None:
        total = bytes_of(pool.capacity)
        most = total if pool.maximum_volume_size is None else bytes_of(pool.maximum_volume_size)
        self._class_of[CSIStorageCapacity, key] = pool.storage_class_name
        reach = self.reaches.acquire(reach_of_selector(pool.node_topology))
        self.pools(pool.storage_class_name).set(key, pool, (reach, most, total), ("", ""), ())

    def _forget(self, kind: type[CatalogObject], key: Key) -> None:
        class_name = self._class_of.pop((kind, key), None)
        if class_name is not None:
            reach = (self.volumes if kind is PersistentVolume else self.pools)(class_name).remove(key)
            if reach is not None:
                self.reaches.release(reach)
        claim = self._claim_of.pop(key[1], None) if kind is PersistentVolume else None
        if claim is not None:
            del self._made_for[claim][key[1]]
            if not self._made_for[claim]:
                del self._made_for[claim]


def _table(tables: dict[str, StorageTable], class_name: str, *, is_smallest_best: bool) -> StorageTable:
    table = tables.get(class_name)
    if table is None:
        table = tables[class_name] = StorageTable(is_smallest_best=is_smallest_best)
    return table


def _class_name(volume: PersistentVolume) -> str:
    return storage_class_of(volume.metadata, volume.spec.storage_class_name)


def _is_for(volume: PersistentVolume, claim: PersistentVolumeClaim, class_name: str) -> bool:
    named = volume.spec.claim_ref
    return named is not None and named.uid in ("", claim.metadata.uid) and _class_name(volume) == class_name
