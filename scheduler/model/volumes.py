"""Volumes of a Pod, and the storage objects behind them, with only the fields that Vane reads."""

from __future__ import annotations

import msgspec

from scheduler.model.structs import Labels, LabelSelector, ObjectMeta, Requirement, ResourceList, Struct

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
BETA_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
SELECTED_NODE = "volume.kubernetes.io/selected-node"


# -- in a Pod -----------------------------------------------------------------------------------------------


class ImageVolumeSource(Struct, frozen=True):
    reference: str = ""


class ClaimVolumeSource(Struct, frozen=True):
    claim_name: str = ""
    read_only: bool = False


class VolumeResources(Struct, frozen=True):
    requests: ResourceList | None = None


class ClaimSpec(Struct, frozen=True):
    access_modes: list[str] | None = None
    selector: LabelSelector | None = None
    resources: VolumeResources = VolumeResources()
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


class ClaimTemplate(Struct, frozen=True):
    spec: ClaimSpec = ClaimSpec()


class EphemeralVolumeSource(Struct, frozen=True):
    volume_claim_template: ClaimTemplate | None = None


class GcePersistentDisk(Struct, frozen=True):
    pd_name: str = ""
    partition: int = 0
    read_only: bool = False


class AwsElasticBlockStore(Struct, frozen=True):
    volume_id: str = msgspec.field(default="", name="volumeID")
    partition: int = 0
    read_only: bool = False


class AzureDisk(Struct, frozen=True):
    kind: str | None = None
    disk_name: str = ""
    disk_uri: str = msgspec.field(default="", name="diskURI")


class Cinder(Struct, frozen=True):
    volume_id: str = msgspec.field(default="", name="volumeID")


class Portworx(Struct, frozen=True):
    volume_id: str = msgspec.field(default="", name="volumeID")


class Rbd(Struct, frozen=True):
    """`monitors` in a Pod as in a PersistentVolume; the pool defaults to rbd."""

    monitors: list[str] | None = None
    image: str = ""
    pool: str = ""
    read_only: bool = False


class Iscsi(Struct, frozen=True):
    target_portal: str = ""
    iqn: str = ""
    lun: int = 0
    read_only: bool = False


class Csi(Struct, frozen=True):
    driver: str = ""
    volume_handle: str = ""


class InlineCsi(Struct, frozen=True):
    """A volume that lives as long as its Pod; no claim stands behind it."""

    driver: str = ""


class OtherSource(Struct, frozen=True):
    """A source of which only the presence counts."""


class Volume(Struct, frozen=True):
    """A volume; sources that no plugin looks at are left out."""

    name: str = ""
    image: ImageVolumeSource | None = None
    persistent_volume_claim: ClaimVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    gce_persistent_disk: GcePersistentDisk | None = None
    aws_elastic_block_store: AwsElasticBlockStore | None = None
    azure_disk: AzureDisk | None = None
    cinder: Cinder | None = None
    portworx_volume: Portworx | None = None
    azure_file: OtherSource | None = None
    vsphere_volume: OtherSource | None = None
    rbd: Rbd | None = None
    iscsi: Iscsi | None = None
    csi: InlineCsi | None = None


# -- objects of their own -----------------------------------------------------------------------------------


class ClaimStatus(Struct, frozen=True):
    phase: str = ""


class PersistentVolumeClaim(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()


class ObjectReference(Struct, frozen=True):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class VolumeNodeSelectorTerm(Struct, frozen=True):
    match_expressions: list[Requirement] | None = None
    match_fields: list[Requirement] | None = None


class VolumeNodeSelector(Struct, frozen=True):
    node_selector_terms: list[VolumeNodeSelectorTerm] | None = None


class VolumeNodeAffinity(Struct, frozen=True):
    required: VolumeNodeSelector | None = None


class VolumeSpec(Struct, frozen=True):
    capacity: ResourceList | None = None
    access_modes: list[str] | None = None
    claim_ref: ObjectReference | None = None
    storage_class_name: str = ""
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    csi: Csi | None = None
    gce_persistent_disk: GcePersistentDisk | None = None
    aws_elastic_block_store: AwsElasticBlockStore | None = None
    azure_disk: AzureDisk | None = None
    cinder: Cinder | None = None
    portworx_volume: Portworx | None = None


class VolumeStatus(Struct, frozen=True):
    phase: str = ""


class PersistentVolume(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: VolumeSpec = VolumeSpec()
    status: VolumeStatus = VolumeStatus()


class TopologyLabel(Struct, frozen=True):
    key: str = ""
    values: list[str] | None = None


class TopologyTerm(Struct, frozen=True):
    match_label_expressions: list[TopologyLabel] | None = None


class StorageClass(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: list[TopologyTerm] | None = None


class NodeDriverAllocatable(Struct, frozen=True):
    count: int | None = None


class NodeDriver(Struct, frozen=True):
    name: str = ""
    allocatable: NodeDriverAllocatable | None = None


class CSINodeSpec(Struct, frozen=True):
    drivers: list[NodeDriver] | None = None


class CSINode(Struct, frozen=True):
    """Named as its node."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(Struct, frozen=True):
    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    node_topology: LabelSelector | None = None
    storage_class_name: str = ""
    capacity: str | int | float | None = None
    maximum_volume_size: str | int | float | None = None


class AttachmentSource(Struct, frozen=True):
    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(Struct, frozen=True):
    attacher: str = ""
    node_name: str = ""
    source: AttachmentSource = AttachmentSource()


class VolumeAttachment(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()


def storage_class_of(metadata: ObjectMeta, storage_class_name: str | None) -> str:
    """Return the class of a claim or volume: the beta annotation, where there is one, goes before the field.

    Source: k8s.io/component-helpers storage/volume GetPersistentVolumeClaimClass (behaviour).
    """
    annotations: Labels = metadata.annotations or {}
    return annotations.get(BETA_STORAGE_CLASS, storage_class_name or "")
