"""AttachedVolumes: how many volumes each node has attached per CSI driver, and how many it may have.

Kept up to date row by row: what is counted depends on the Pods of a row, the claims, volumes and classes behind theirs,
the CSINode and the VolumeAttachments, and a change to any of these is found by the row that it touches.

Source: kube-scheduler v1.37 nodevolumelimits/csi.go (behaviour).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from scheduler.errors import InvalidObjectError
from scheduler.model.arrays import BoolArray, IntArray
from scheduler.model.catalog import Catalog, CatalogObject, Key
from scheduler.model.objects import Pod
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from scheduler.model.volumes import (
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    Volume,
    VolumeAttachment,
)
from scheduler.plugins.volumes.claims import (
    claim_use,
    class_name_of,
    class_of,
    is_made_for,
    not_found,
    not_made_for,
)
from scheduler.plugins.volumes.csi_migration import (
    PROVISIONERS,
    UNCOUNTED_PROVISIONERS,
    Handle,
    in_tree_of,
)
from scheduler.plugins.volumes.csi_nodes import CSINodes, RowColumns, RowNames
from scheduler.plugins.volumes.volumes_in_use import VolumesInUse

K = TypeVar("K", bound=Hashable)

_NO_PODS: Mapping[str, PodInfo] = {}

_KINDS: tuple[type[CatalogObject], ...] = (
    PersistentVolumeClaim, PersistentVolume, StorageClass, CSINode, VolumeAttachment,
)  # fmt: skip


class Counted(NamedTuple):
    """A volume as it counts on a node: as `handle`; `is_in_tree`: only on nodes that have a CSINode at all.

    Where it cannot be counted, `fault` says why an attempt that needs the count fails; `is_missing`: it has no claim.
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


Needed = tuple[type[CatalogObject], str]
"""A PersistentVolume or StorageClass by name, there or not, that what is counted on a row depends on."""


class _Row(NamedTuple):
    """What is attached to a node: by its Pods, and beyond them by VolumeAttachments."""

    by_pods: frozenset[Handle]
    beyond: frozenset[Handle]
    fault: str
    needs: frozenset[Needed]


_NOTHING = _Row(frozenset(), frozenset(), "", frozenset())


class AttachedVolumes:
    """Counts per driver and row; `follow` brings them up to date, the columns are int64 or bool (n_rows,)."""

    def __init__(self) -> None:
        self.csi_nodes = CSINodes()
        self._seen: dict[type[CatalogObject], int] = {}
        self._generation = -1
        self._names = RowNames()
        self._pods: dict[int, dict[str, PodInfo]] = {}
        self._rows: dict[int, _Row] = {}
        self._faults: dict[int, str] = {}
        self._counts = RowColumns(0)
        self._holders: dict[Handle, set[int]] = {}
        self._needing: dict[Needed, set[int]] = {}
        self._attachments: dict[str, VolumeAttachment] = {}
        self._by_node: dict[str, dict[str, VolumeAttachment]] = {}

    def count(self, driver: str) -> IntArray:
        """Return how many volumes of a driver are attached to each node."""
        return self._counts.of(driver)

    def where(self, *, is_in_tree: bool) -> BoolArray:
        """Return where a volume counts: one built into Kubernetes where there is a CSINode, others everywhere.

        What the CSINode says of migrated plugins does not matter here.
        """
        is_there = self.csi_nodes.is_there()
        return is_there if is_in_tree else np.ones_like(is_there)

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
        self.csi_nodes = catalog.derived(CSINodes)
        self.csi_nodes.follow(snapshot)
        self._counts.widen(nodes.n_rows)
        touched = set(self._names.changed(nodes))
        touched |= self._rows_with_other_pods(nodes.rows_changed_since(self._generation).tolist(), snapshot)
        self._generation = snapshot.generation
        changed = {kind: catalog.changed_since(kind, self._seen.get(kind, 0)) for kind in _KINDS}
        self._seen = {kind: catalog.generation(kind) for kind in _KINDS}
        if any(keys is None for keys in changed.values()):
            self._reload_attachments(catalog)
            touched = set(range(nodes.n_rows))
        else:
            touched |= self._rows_of({kind: keys or () for kind, keys in changed.items()}, snapshot)
        has_csi_node = self.csi_nodes.is_there()
        for row in sorted(touched):
            self._set_row(row, self._look(row, snapshot, has_csi_node=bool(has_csi_node[row])))

    def _rows_with_other_pods(self, rows: Sequence[int], snapshot: Snapshot) -> set[int]:
        """Return those of the rows whose Pods with volumes are others than at the last call."""
        index, found = snapshot.index(VolumesInUse), set()
        for row in rows:
            pods = index.by_uid(row)
            if pods != self._pods.get(row, _NO_PODS):
                self._pods[row] = dict(pods)
                if not pods:
                    del self._pods[row]
                found.add(row)
        return found

    def _rows_of(self, changed: Mapping[type[CatalogObject], Sequence[Key]], snapshot: Snapshot) -> set[int]:
        """Return the rows on which a changed object may count."""
        nodes, index = snapshot.nodes, snapshot.index(VolumesInUse)
        rows: set[int] = set()
        for namespace, name in changed[PersistentVolumeClaim]:
            rows.update(index.users(namespace, name))
        for kind in (PersistentVolume, StorageClass):
            for _, name in changed[kind]:
                rows |= self._needing.get((kind, name), set())
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
            here = self._by_node[old.spec.node_name]
            del here[name]
            if not here:
                del self._by_node[old.spec.node_name]
        if new is not None:
            self._attachments[name] = new
            self._by_node.setdefault(new.spec.node_name, {})[name] = new
        return [one.spec.node_name for one in (old, new) if one is not None]

    def _look(self, row: int, snapshot: Snapshot, *, has_csi_node: bool) -> _Row:
        """Count one node anew."""
        catalog, fault = snapshot.catalog, ""
        by_pods, beyond, needs = set[Handle](), set[Handle](), set[Needed]()
        here = snapshot.index(VolumesInUse).by_uid(row)
        # In the order of the node's Pods, which the index doesn't keep: the first fault is the one reported.
        for pod in snapshot.pods_on(row) if here else ():
            for volume in (pod.pod.spec.volumes or ()) if pod.uid in here else ():
                needs.update(_needs(pod.pod, volume, catalog))
                found = counted(pod.pod, volume, catalog)
                if found is None or found.is_missing or (found.is_in_tree and not has_csi_node):
                    continue
                if found.handle is None:
                    fault = fault or found.fault
                else:
                    by_pods.add(found.handle)
        for attachment in self._by_node.get(snapshot.nodes.names[row], {}).values():
            name = attachment.spec.source.persistent_volume_name
            if not attachment.spec.attacher or name is None:
                continue
            needs.add((PersistentVolume, name))
            known = catalog.get(PersistentVolume, name)
            if known is not None and known.spec.csi is not None:
                beyond.add(Handle(attachment.spec.attacher, known.spec.csi.volume_handle))
        if not (by_pods or beyond or fault or needs):
            return _NOTHING
        return _Row(frozenset(by_pods), frozenset(beyond - by_pods), fault, frozenset(needs))

    def _set_row(self, row: int, new: _Row) -> None:
        old = self._rows.pop(row, _NOTHING)
        if new is not _NOTHING:
            self._rows[row] = new
        self._faults.pop(row, None)
        if new.fault:
            self._faults[row] = new.fault
        _move(self._holders, row, old.by_pods, new.by_pods)
        _move(self._needing, row, old.needs, new.needs)
        for sign, found in ((-1, old), (1, new)):
            for handle in (*found.by_pods, *found.beyond):
                self._counts.add(handle.driver, row, sign)


def _needs(pod: Pod, volume: Volume, catalog: Catalog) -> Iterator[Needed]:
    """Yield what, besides the claim, decides what a volume of a Pod counts as."""
    use = claim_use(pod, volume)
    claim = None if use is None else catalog.get(PersistentVolumeClaim, use.claim, pod.metadata.namespace)
    if claim is None:
        return
    if claim.spec.volume_name:
        yield PersistentVolume, claim.spec.volume_name
    if not claim.spec.volume_name or catalog.get(PersistentVolume, claim.spec.volume_name) is None:
        yield StorageClass, class_name_of(claim)


def _move(rows_of: dict[K, set[int]], row: int, old: frozenset[K], new: frozenset[K]) -> None:
    """Take a row from what it had and give it to what it has."""
    for key in old - new:
        rows_of[key].discard(row)
        if not rows_of[key]:
            del rows_of[key]
    for key in new - old:
        rows_of.setdefault(key, set()).add(row)
