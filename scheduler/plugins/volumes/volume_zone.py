"""VolumeZone: a bound volume can be used in its zone and region only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from scheduler.framework.events import Action, ClusterEvent, EventInterest, QueueingHint, Resource
from scheduler.framework.plugin import FilterPlugin, FreedBy, PreFilterPlugin
from scheduler.framework.status import SKIP, Code, PreFilterResult, Rejection, Status
from scheduler.model.arrays import BoolArray, Rows
from scheduler.model.catalog import Catalog
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from scheduler.model.structs import Labels, Requirement
from scheduler.model.views import NodeView
from scheduler.model.volumes import PersistentVolume, PersistentVolumeClaim, StorageClass
from scheduler.plugins.volumes.claims import (
    WAIT_FOR_FIRST_CONSUMER,
    claim_names,
    class_name_of,
    is_named_claim,
    not_found,
)
from scheduler.plugins.volumes.csi_migration import BETA_REGION, BETA_ZONE, REGION, ZONE, ZONES_DELIMITER

REASON = "node(s) had no available volume zone"

_NODE_KEY_TOO: Mapping[str, str] = {BETA_ZONE: ZONE, BETA_REGION: REGION}
"""A label key of a volume, and the key that a node may have instead; not the other way round."""

_KEYS = (BETA_ZONE, BETA_REGION, ZONE, REGION)

Topology = tuple[str, frozenset[str]]
"""A label key of a volume and the values of which the node must have one."""


class VolumeZone(PreFilterPlugin, FilterPlugin):
    """Refuses nodes that lie in another zone or region than the labels of a bound volume say.

    A node with none of these labels lies in a cluster of a single zone, and passes.

    Source: kube-scheduler v1.37 volumezone/volume_zone.go (behaviour).
    """

    freed_by = FreedBy.NOTHING

    def prefilter(self, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult | Status:
        """Return bool (n_rows,), True where the node lies elsewhere, as the state."""
        topologies: list[Topology] = []
        for name in claim_names(pod.pod):
            found = _topologies_of_claim(pod.namespace, name, snapshot.catalog)
            if isinstance(found, str):
                return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (found,))
            topologies += found
        return PreFilterResult(_elsewhere(topologies, snapshot.nodes)) if topologies else SKIP

    def filter(self, state: BoolArray, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[Rejection]:
        return (Rejection(state[rows], Code.UNSCHEDULABLE_AND_UNRESOLVABLE, REASON),)

    def events(self) -> Sequence[EventInterest]:
        return (
            EventInterest(Resource.STORAGE_CLASS, Action.ADD, _class_delays_binding),
            EventInterest(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
            EventInterest(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD | Action.UPDATE, is_named_claim),
            EventInterest(Resource.PERSISTENT_VOLUME, Action.ADD | Action.UPDATE, _topology_changed),
        )


def _topologies_of_claim(namespace: str, name: str, catalog: Catalog) -> list[Topology] | str:
    """Return what the volume bound to a claim asks of nodes, or why the Pod cannot go anywhere."""
    if not name:
        return "PersistentVolumeClaim had no name"
    claim = catalog.get(PersistentVolumeClaim, name, namespace)
    if claim is None:
        return not_found(name)
    volume_name = claim.spec.volume_name
    if not volume_name:
        return _wait_or_refusal(claim, catalog)
    volume = catalog.get(PersistentVolume, volume_name)
    return f'persistentvolume "{volume_name}" not found' if volume is None else _topologies(volume.metadata.labels)


def _wait_or_refusal(claim: PersistentVolumeClaim, catalog: Catalog) -> list[Topology] | str:
    class_name = class_name_of(claim)
    if not class_name:
        return "PersistentVolumeClaim had no pv name and storageClass name"
    storage_class = catalog.get(StorageClass, class_name)
    if storage_class is None:
        return f'storageclass.storage.k8s.io "{class_name}" not found'
    if storage_class.volume_binding_mode is None:
        return f'VolumeBindingMode not set for StorageClass "{class_name}"'
    return [] if storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER else "PersistentVolume had no name"


def _topologies(labels: Labels | None) -> list[Topology]:
    """Return zone and region of a volume's labels; a list of zones with an empty one in it does not count."""
    found = []
    for key in _KEYS:
        if labels is not None and key in labels:
            values = [value.strip() for value in labels[key].split(ZONES_DELIMITER)]
            if all(values):
                found.append((key, frozenset(values)))
    return found


def _elsewhere(topologies: Sequence[Topology], nodes: NodeView) -> BoolArray:
    """Return bool (n_rows,): a node with any topology label, but not with one that each volume asks for."""
    labelled = np.zeros(nodes.n_rows, dtype=np.bool_)
    for key in _KEYS:
        labelled |= nodes.label_matches(Requirement(key=key, operator="Exists"))
    here = np.ones(nodes.n_rows, dtype=np.bool_)
    for key, values in dict.fromkeys(topologies):
        wanted = sorted(values)
        matches = nodes.label_matches(Requirement(key=key, operator="In", values=wanted))
        other = _NODE_KEY_TOO.get(key)
        if other is not None:
            lacking = nodes.label_matches(Requirement(key=key, operator="DoesNotExist"))
            matches = matches | (lacking & nodes.label_matches(Requirement(key=other, operator="In", values=wanted)))
        here &= matches
    return labelled & ~here


def _class_delays_binding(_pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    added = event.new
    if isinstance(added, StorageClass) and added.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER:
        return QueueingHint.QUEUE
    return QueueingHint.SKIP


def _topology_changed(_pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    old, new = event.old, event.new
    if not isinstance(old, PersistentVolume) or not isinstance(new, PersistentVolume):
        return QueueingHint.QUEUE
    is_same = _topologies(old.metadata.labels) == _topologies(new.metadata.labels)
    return QueueingHint.SKIP if is_same else QueueingHint.QUEUE
