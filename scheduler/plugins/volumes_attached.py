"""Attached: how many volumes each node has attached per CSI driver, and how many it may have.

Kept up to date row by row: what is counted depends on the Pods of a row, the claims and volumes behind theirs, the
CSINode and the VolumeAttachments, and a change to any of these is found by the row that it touches.

Source: kube-scheduler v1.37 nodevolumelimits/csi.go (behaviour).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from scheduler.errors import InvalidObjectError
from scheduler.model.arrays import BoolArray, IntArray
from scheduler.model.catalog import Catalog, CatalogObject, Key
from scheduler.model.objects import Pod
from scheduler.model.snapshot import Snapshot
from scheduler.model.volumes import (
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    Volume,
    VolumeAttachment,
)
from scheduler.plugins.volumes_claims import claim_use, class_of, is_made_for, not_found, not_made_for
from scheduler.plugins.volumes_in_use import VolumesInUse
from scheduler.plugins.volumes_migration import (
    PROVISIONERS,
    UNCOUNTED_PROVISIONERS,
    Handle,
    in_tree_of,
)

NO_LIMIT = -1

_KINDS: tuple[type[CatalogObject], ...] = (
    PersistentVolumeClaim, PersistentVolume, StorageClass, CSINode, VolumeAttachment,
)  # fmt: skip


class Counted(NamedTuple):
    """A volume as it counts on a node: as `handle`; `is_in_tree`: only on nodes that have a CSINode at all.

    `fault` says in its stead why an attempt has to fail that comes upon it; `is_missing`: for want of the claim.
    """

    is_in_tree: bool
    handle: Handle | None
    fault: str = ""
    is_missing: bool = False


def counted(pod: Pod, volume: Volume, catalog: Catalog) -> Counted | None:
    """Return what a volume of a Pod counts as, None where nothing has to be attached for it."""
    use = claim_use(pod, volume)
    if use is None:
        return _counted_inline(volume)
    claim = catalog.get(PersistentVolumeClaim, use.claim, pod.metadata.namespace)
    if claim is None:
        where = f"{pod.metadata.namespace}/{use.claim}"
        return Counted(False, None, f"looking up PVC {where}: {not_found(use.claim)}", is_missing=True)
    if use.is_ephemeral and not is_made_for(claim, pod):
        return Counted(False, None, not_made_for(claim, pod))
    return _counted_claim(claim, catalog)


def _counted_inline(volume: Volume) -> Counted | None:
    plugin = in_tree_of(volume)
    if plugin is None:
        return None
    try:
        return Counted(True, plugin.handle_of(volume, None))
    except InvalidObjectError as error:
        return Counted(True, None, f"converting volume({volume.name}) from inline to csi: {error}")


def _counted_claim(claim: PersistentVolumeClaim, catalog: Catalog) -> Counted | None:
    """Return what a claim counts as; without a volume, as one of its class that is yet to come."""
    name = claim.spec.volume_name
    volume = catalog.get(PersistentVolume, name) if name else None
    if volume is None:
        return _counted_by_class(claim, catalog)
    if volume.spec.csi is not None:
        driver, handle = volume.spec.csi.driver, volume.spec.csi.volume_handle
        return Counted(False, Handle(driver, handle)) if driver and handle else None
    plugin = in_tree_of(volume.spec)
    try:
        found = None if plugin is None else plugin.handle_of(volume.spec, volume.metadata.labels)
    except InvalidObjectError:
        return None
    return Counted(True, found) if plugin is not None and found is not None and found.handle else None


def _counted_by_class(claim: PersistentVolumeClaim, catalog: Catalog) -> Counted | None:
    storage_class = class_of(claim, catalog)
    if storage_class is None or not storage_class.provisioner:
        return None
    provisioner = storage_class.provisioner
    if provisioner in UNCOUNTED_PROVISIONERS:
        return None
    # No driver gives a handle with a line feed in it, so that a volume to come equals no other.
    handle = f"\n{claim.metadata.namespace}/{claim.metadata.name}"
    plugin = PROVISIONERS.get(provisioner)
    return (
        Counted(False, Handle(provisioner, handle)) if plugin is None else Counted(True, Handle(plugin.driver, handle))
    )


class _Row(NamedTuple):
    """What is attached to a node: by its Pods, and beyond them by VolumeAttachments."""

    by_pods: frozenset[Handle]
    beyond: frozenset[Handle]
    fault: str


_NOTHING = _Row(frozenset(), frozenset(), "")


class Attached:
    """Counts per driver and row; `follow` brings them up to date, the columns are int64 or bool (n_rows,)."""

    def __init__(self) -> None:
        self._seen: dict[type[CatalogObject], int] = {}
        self._generation = -1
        self._n_rows = 0
        self._rows: dict[int, _Row] = {}
        self._faults: dict[int, str] = {}
        self._counts: dict[str, IntArray] = {}
        self._limits: dict[str, IntArray] = {}
        self._has_csi_node: BoolArray = np.zeros(self._capacity(), dtype=np.bool_)
        self._csi_nodes: dict[int, CSINode] = {}
        self._holders: dict[Handle, set[int]] = {}
        self._rows_of_volume: dict[str, set[int]] = {}
        self._attachments: dict[str, VolumeAttachment] = {}
        self._by_node: dict[str, dict[str, VolumeAttachment]] = {}

    def count(self, driver: str) -> IntArray:
        """Return how many volumes of a driver are attached to each node."""
        return self._counts.get(driver, np.zeros(self._n_rows, dtype=np.int64))[: self._n_rows]

    def limit(self, driver: str) -> IntArray:
        """Return how many may be, NO_LIMIT where nothing is said."""
        return self._limits.get(driver, np.full(self._n_rows, NO_LIMIT, dtype=np.int64))[: self._n_rows]

    def has_limits(self) -> BoolArray:
        """Return where there is a limit for any driver."""
        found = np.zeros(self._n_rows, dtype=np.bool_)
        for limit in self._limits.values():
            found |= limit[: self._n_rows] != NO_LIMIT
        return found

    def installed(self, driver: str) -> BoolArray:
        """Return where the CSINode lists the driver, with a limit or without: a loop over CSINodes, for few drivers."""
        found = np.zeros(self._n_rows, dtype=np.bool_)
        for row, node in self._csi_nodes.items():
            found[row] = any(one.name == driver for one in node.spec.drivers or ())
        return found

    def where(self, *, is_in_tree: bool) -> BoolArray:
        """Return where a volume counts: one built into Kubernetes where there is a CSINode, others everywhere.

        What the CSINode says of migrated plugins does not matter here.
        """
        return self._has_csi_node[: self._n_rows] if is_in_tree else np.ones(self._n_rows, dtype=np.bool_)

    def held(self, handle: Handle) -> list[int]:
        """Return the rows where Pods have the volume already."""
        return list(self._holders.get(handle, ()))

    @property
    def faults(self) -> Mapping[int, str]:
        """Row -> why an attempt fails that has to count the volumes of the Pods there."""
        return self._faults

    def follow(self, snapshot: Snapshot) -> None:
        """Take in what has changed since the last call, at a cost that grows with the rows it touches."""
        nodes, catalog = snapshot.nodes, snapshot.catalog
        self._widen(nodes.n_rows)
        touched = set(nodes.rows_changed_since(self._generation).tolist())
        self._generation = snapshot.generation
        changed = {kind: catalog.changed_since(kind, self._seen.get(kind, 0)) for kind in _KINDS}
        self._seen = {kind: catalog.generation(kind) for kind in _KINDS}
        if any(keys is None for keys in changed.values()):
            self._reload_attachments(catalog)
            touched = set(range(nodes.n_rows))
        else:
            touched |= self._rows_of({kind: keys or () for kind, keys in changed.items()}, snapshot)
        for row in sorted(touched):
            self._set_csi_node(row, catalog.get(CSINode, nodes.names[row]))
            self._set_row(row, self._look(row, snapshot))

    def _rows_of(self, changed: Mapping[type[CatalogObject], Sequence[Key]], snapshot: Snapshot) -> set[int]:
        """Return the rows on which a changed object may count."""
        nodes, index = snapshot.nodes, snapshot.index(VolumesInUse)
        rows: set[int] = set(index.rows()) if changed[StorageClass] else set()
        for namespace, name in changed[PersistentVolumeClaim]:
            rows.update(index.users(namespace, name))
        for _, name in changed[PersistentVolume]:
            rows |= self._rows_of_volume.get(name, set())
        node_names = [name for _, name in changed[CSINode]]
        for _, name in changed[VolumeAttachment]:
            node_names += self._moved_attachment(name, snapshot.catalog)
        return rows | {row for name in node_names if (row := nodes.row_of(name)) is not None}

    def _reload_attachments(self, catalog: Catalog) -> None:
        self._attachments, self._by_node = {}, {}
        for attachment in catalog.all(VolumeAttachment):
            self._moved_attachment(attachment.metadata.name, catalog)

    def _moved_attachment(self, name: str, catalog: Catalog) -> list[str]:
        """Note the VolumeAttachment as it is now; return the nodes that it was and is for."""
        old, new = self._attachments.pop(name, None), catalog.get(VolumeAttachment, name)
        if old is not None:
            del self._by_node[old.spec.node_name][name]
        if new is not None:
            self._attachments[name] = new
            self._by_node.setdefault(new.spec.node_name, {})[name] = new
        return [one.spec.node_name for one in (old, new) if one is not None]

    def _look(self, row: int, snapshot: Snapshot) -> _Row:
        """Count one node anew."""
        catalog, fault = snapshot.catalog, ""
        by_pods = set()
        for pod in snapshot.index(VolumesInUse).pods_on(row):
            for volume in pod.pod.spec.volumes or ():
                self._note_volume(row, pod.pod, volume, catalog)
                found = counted(pod.pod, volume, catalog)
                if found is None or found.is_missing or (found.is_in_tree and row not in self._csi_nodes):
                    continue
                if found.handle is None:
                    fault = fault or found.fault
                else:
                    by_pods.add(found.handle)
        beyond = set(self._attached_to(row, snapshot.nodes.names[row], catalog)) - by_pods
        return _Row(frozenset(by_pods), frozenset(beyond), fault) if by_pods or beyond or fault else _NOTHING

    def _note_volume(self, row: int, pod: Pod, volume: Volume, catalog: Catalog) -> None:
        """Remember that what is counted on the row depends on a PersistentVolume, one that is not there too."""
        use = claim_use(pod, volume)
        claim = None if use is None else catalog.get(PersistentVolumeClaim, use.claim, pod.metadata.namespace)
        if claim is not None and claim.spec.volume_name:
            self._rows_of_volume.setdefault(claim.spec.volume_name, set()).add(row)

    def _attached_to(self, row: int, node_name: str, catalog: Catalog) -> Iterator[Handle]:
        for attachment in self._by_node.get(node_name, {}).values():
            name = attachment.spec.source.persistent_volume_name
            if not attachment.spec.attacher or name is None:
                continue
            self._rows_of_volume.setdefault(name, set()).add(row)
            volume = catalog.get(PersistentVolume, name)
            if volume is not None and volume.spec.csi is not None:
                yield Handle(attachment.spec.attacher, volume.spec.csi.volume_handle)

    def _set_row(self, row: int, new: _Row) -> None:
        old = self._rows.pop(row, _NOTHING)
        if new is not _NOTHING:
            self._rows[row] = new
        self._faults.pop(row, None)
        if new.fault:
            self._faults[row] = new.fault
        for handle in old.by_pods - new.by_pods:
            self._holders[handle].discard(row)
            if not self._holders[handle]:
                del self._holders[handle]
        for handle in new.by_pods - old.by_pods:
            self._holders.setdefault(handle, set()).add(row)
        for sign, found in ((-1, old), (1, new)):
            for handle in (*found.by_pods, *found.beyond):
                self._column(self._counts, handle.driver, 0)[row] += sign

    def _set_csi_node(self, row: int, node: CSINode | None) -> None:
        if self._csi_nodes.get(row) is node:
            return
        for limit in self._limits.values():
            limit[row] = NO_LIMIT
        self._has_csi_node[row] = node is not None
        if node is None:
            del self._csi_nodes[row]
            return
        self._csi_nodes[row] = node
        for driver in node.spec.drivers or ():
            if driver.allocatable is not None and driver.allocatable.count is not None:
                self._column(self._limits, driver.name, NO_LIMIT)[row] = driver.allocatable.count

    def _column(self, columns: dict[str, IntArray], driver: str, empty: int) -> IntArray:
        if driver not in columns:
            columns[driver] = np.full(self._capacity(), empty, dtype=np.int64)
        return columns[driver]

    def _capacity(self) -> int:
        return 64 << max(0, (self._n_rows - 1) // 64).bit_length()

    def _widen(self, n_rows: int) -> None:
        before = self._capacity()
        self._n_rows = n_rows
        more = self._capacity() - before
        if more > 0:
            for columns, empty in ((self._counts, 0), (self._limits, NO_LIMIT)):
                for driver, column in columns.items():
                    columns[driver] = np.concatenate([column, np.full(more, empty, dtype=np.int64)])
            self._has_csi_node = np.concatenate([self._has_csi_node, np.zeros(more, dtype=np.bool_)])
