"""CSI migration: disks of the volume plugins built into Kubernetes, as the CSI drivers that took over know them.

A node's CSINode says which plugins are migrated there. A volume whose names cannot be translated is an
InvalidObjectError.

Source: k8s.io/csi-translation-lib v0.37 (behaviour).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from scheduler.errors import InvalidObjectError
from scheduler.model.structs import Labels, Requirement
from scheduler.model.volumes import (
    AwsElasticBlockStore,
    AzureDisk,
    CSINode,
    PersistentVolume,
    Volume,
    VolumeNodeAffinity,
    VolumeNodeSelector,
    VolumeNodeSelectorTerm,
    VolumeSpec,
)

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"
ZONES_DELIMITER = "__"

MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"

_UNKNOWN = "UNSPECIFIED"
_MANAGED = "managed"
_EBS_URL = re.compile(r"aws://[^/?#]*([^?#]*).*", re.DOTALL)
_EBS_ID = re.compile(r"vol-[^/\n]*")


class Handle(NamedTuple):
    """A volume as its CSI driver knows it."""

    driver: str
    handle: str


@dataclass(frozen=True, slots=True)
class InTree:
    """A plugin built into Kubernetes: who took it over, where, and what the new one calls a volume.

    `zone_key` is the label that its driver knows zones by, "" where topology is left as it is.
    """

    name: str
    driver: str
    zone_key: str
    handle: Callable[[Volume | VolumeSpec, Labels | None], str | None]

    def handle_of(self, source: Volume | VolumeSpec, labels: Labels | None) -> Handle | None:
        """Return the volume as the driver knows it; `labels` are a PersistentVolume's, None within a Pod."""
        found = self.handle(source, labels)
        return None if found is None else Handle(self.driver, found)


def _ebs(source: Volume | VolumeSpec, _labels: Labels | None) -> str | None:
    disk = source.aws_elastic_block_store
    return None if disk is None else _ebs_id(disk)


def _ebs_id(disk: AwsElasticBlockStore) -> str:
    if not disk.volume_id.startswith("aws://"):
        return disk.volume_id
    match = _EBS_URL.fullmatch(disk.volume_id)
    found = "" if match is None else match[1].strip("/")
    if not _EBS_ID.fullmatch(found):
        raise InvalidObjectError(f"volumeID: got {disk.volume_id!r}. Write vol-… or aws://ZONE/vol-…")
    return found


def _gce(source: Volume | VolumeSpec, labels: Labels | None) -> str | None:
    disk = source.gce_persistent_disk
    if disk is None:
        return None
    zones = ((labels or {}).get(BETA_ZONE) or (labels or {}).get(ZONE, "")).split(ZONES_DELIMITER)
    if len(zones) > 1:
        return f"projects/{_UNKNOWN}/regions/{_gce_region(zones)}/disks/{disk.pd_name}"
    return f"projects/{_UNKNOWN}/zones/{zones[0] or _UNKNOWN}/disks/{disk.pd_name}"


def _gce_region(zones: list[str]) -> str:
    regions = {zone.rpartition("-")[0] for zone in zones if zone.count("-") == 2}
    if len(regions) != 1 or any(zone.count("-") != 2 for zone in zones):
        raise InvalidObjectError(f"zones: got {zones}. Write zones of one region, as us-central1-a")
    return regions.pop()


def _azure(source: Volume | VolumeSpec, _labels: Labels | None) -> str | None:
    disk = source.azure_disk
    return None if disk is None else _azure_uri(disk)


def _azure_uri(disk: AzureDisk) -> str:
    if disk.kind is not None and disk.kind.lower() != _MANAGED:
        raise InvalidObjectError(f"azureDisk.kind: got {disk.kind!r}. Only managed disks were taken over by CSI")
    return disk.disk_uri


def _cinder(source: Volume | VolumeSpec, _labels: Labels | None) -> str | None:
    return None if source.cinder is None else source.cinder.volume_id


def _portworx(source: Volume | VolumeSpec, _labels: Labels | None) -> str | None:
    return None if source.portworx_volume is None else source.portworx_volume.volume_id


_PLUGINS = (
    InTree("kubernetes.io/aws-ebs", "ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone", _ebs),
    InTree("kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "topology.gke.io/zone", _gce),
    InTree("kubernetes.io/azure-disk", "disk.csi.azure.com", "", _azure),
    InTree("kubernetes.io/cinder", "cinder.csi.openstack.org", "topology.cinder.csi.openstack.org/zone", _cinder),
    InTree("kubernetes.io/portworx-volume", "pxd.portworx.com", "", _portworx),
)

PROVISIONERS: Mapping[str, InTree] = {plugin.name: plugin for plugin in _PLUGINS}
"""By the name that a StorageClass may still give as its provisioner."""

UNCOUNTED_PROVISIONERS = ("kubernetes.io/azure-file", "kubernetes.io/vsphere-volume")
"""Taken over by CSI as well, but never counted as migrated on a node."""


def in_tree_of(source: Volume | VolumeSpec) -> InTree | None:
    """Return the plugin whose source a volume has, of those that a node may have migrated."""
    if source.aws_elastic_block_store is not None:
        return PROVISIONERS["kubernetes.io/aws-ebs"]
    if source.gce_persistent_disk is not None:
        return PROVISIONERS["kubernetes.io/gce-pd"]
    if source.azure_disk is not None:
        return PROVISIONERS["kubernetes.io/azure-disk"]
    if source.cinder is not None:
        return PROVISIONERS["kubernetes.io/cinder"]
    return PROVISIONERS["kubernetes.io/portworx-volume"] if source.portworx_volume is not None else None


def is_in_tree(volume: Volume) -> bool:
    """Return whether CSI has taken over the kind of volume, whether or not a node has."""
    return in_tree_of(volume) is not None or volume.azure_file is not None or volume.vsphere_volume is not None


def migrated_plugins(node: CSINode) -> frozenset[str]:
    """Return the plugins that CSI drivers have taken over on a node."""
    return frozenset((node.metadata.annotations or {}).get(MIGRATED_PLUGINS, "").split(",")) & PROVISIONERS.keys()


def migrated_affinity(volume: PersistentVolume, plugin: InTree) -> VolumeNodeAffinity | None:
    """Return the node affinity that a volume has where its plugin is migrated: zones by the driver's own label.

    What the affinity says of zones goes before the zones in the volume's labels.
    """
    affinity, labels = volume.spec.node_affinity, volume.metadata.labels or {}
    if not plugin.zone_key:
        return affinity
    given = affinity.required.node_selector_terms if affinity is not None and affinity.required is not None else None
    terms = given or []
    zone_key, region_key = _topology_keys(terms, labels)
    renamed = {region_key: REGION} if _has_values(terms, region_key) else {}
    added = None
    if _has_values(terms, zone_key):
        renamed[zone_key] = plugin.zone_key
    else:
        added = _zone_requirement(plugin, labels.get(zone_key, ""))
    moved = [_moved(term, renamed, added) for term in terms or ([VolumeNodeSelectorTerm()] if added else [])]
    if not moved:
        return affinity
    return VolumeNodeAffinity(required=VolumeNodeSelector(node_selector_terms=moved))


def _topology_keys(terms: list[VolumeNodeSelectorTerm], labels: Mapping[str, str]) -> tuple[str, str]:
    """Return the keys of zone and region that a volume goes by: of its affinity, else of its labels; GA before beta."""
    named = {one.key for term in terms for one in term.match_expressions or ()}
    for known in (named, labels):
        if ZONE in known:
            return ZONE, REGION
        if BETA_ZONE in known:
            return BETA_ZONE, BETA_REGION
    return ZONE, REGION


def _has_values(terms: list[VolumeNodeSelectorTerm], key: str) -> bool:
    return any(one.values for term in terms for one in term.match_expressions or () if one.key == key)


def _zone_requirement(plugin: InTree, label: str) -> Requirement | None:
    zones = sorted({zone.strip() for zone in label.split(ZONES_DELIMITER)} - {""})
    return Requirement(key=plugin.zone_key, operator="In", values=zones) if zones else None


def _moved(
    term: VolumeNodeSelectorTerm, renamed: Mapping[str, str], added: Requirement | None
) -> VolumeNodeSelectorTerm:
    expressions = [
        msgspec.structs.replace(one, key=renamed.get(one.key, one.key)) for one in term.match_expressions or ()
    ]
    return VolumeNodeSelectorTerm(
        match_expressions=[*expressions, *([added] if added else [])], match_fields=term.match_fields
    )
