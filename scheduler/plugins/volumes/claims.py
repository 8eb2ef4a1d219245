"""The claims behind a Pod's volumes: their names, who owns them, whether they are bound, and hints about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from scheduler.framework.events import ClusterEvent, QueueingHint
from scheduler.model.catalog import Catalog
from scheduler.model.objects import Pod
from scheduler.model.pods import PodInfo
from scheduler.model.volumes import (
    BIND_COMPLETED,
    PersistentVolumeClaim,
    StorageClass,
    Volume,
    storage_class_of,
)

WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"


class ClaimUse(NamedTuple):
    """A volume of a Pod that stands for a claim; that of an ephemeral one is made for the Pod alone."""

    claim: str
    is_ephemeral: bool


def claim_use(pod: Pod, volume: Volume) -> ClaimUse | None:
    """Return the claim behind a volume, None where there is none.

    Source: k8s.io/component-helpers storage/ephemeral VolumeClaimName (behaviour).
    """
    if volume.persistent_volume_claim is not None:
        return ClaimUse(volume.persistent_volume_claim.claim_name, False)
    if volume.ephemeral is not None:
        return ClaimUse(f"{pod.metadata.name}-{volume.name}", True)
    return None


def claim_uses(pod: Pod) -> Iterator[ClaimUse]:
    """Yield the claim of each volume that has one, in order, repeatedly where a Pod names one twice."""
    for volume in pod.spec.volumes or ():
        use = claim_use(pod, volume)
        if use is not None:
            yield use


def claim_names(pod: Pod) -> Iterator[str]:
    """Yield what the volumes name as claims, ephemeral ones left out."""
    return (use.claim for use in claim_uses(pod) if not use.is_ephemeral)


def is_made_for(claim: PersistentVolumeClaim, pod: Pod) -> bool:
    """Return whether the Pod controls the claim, as it must that of an ephemeral volume."""
    owners = claim.metadata.owner_references or ()
    controller = next((owner for owner in owners if owner.controller), None)
    return controller is not None and controller.uid == pod.metadata.uid


def not_made_for(claim: PersistentVolumeClaim, pod: Pod) -> str:
    """Return kube-scheduler's words for a claim that an ephemeral volume may not use."""
    return f"PVC {claim.metadata.namespace}/{claim.metadata.name} was not created for pod {pod.key} (pod is not owner)"


def not_found(claim_name: str) -> str:
    return f'persistentvolumeclaim "{claim_name}" not found'


def is_bound(claim: PersistentVolumeClaim) -> bool:
    """Return whether the binding is completed, not just begun."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in (claim.metadata.annotations or {})


def class_name_of(claim: PersistentVolumeClaim) -> str:
    return storage_class_of(claim.metadata, claim.spec.storage_class_name)


def class_of(claim: PersistentVolumeClaim, catalog: Catalog) -> StorageClass | None:
    name = class_name_of(claim)
    return catalog.get(StorageClass, name) if name else None


def is_used_claim(pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    """Queue where the claim is one that a volume of the Pod uses, an ephemeral volume included."""
    return _queue_if_among((use.claim for use in claim_uses(pod.pod)), pod, event)


def is_named_claim(pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    """Queue where the claim is one that the Pod names; an ephemeral volume names none."""
    return _queue_if_among(claim_names(pod.pod), pod, event)


def _queue_if_among(names: Iterable[str], pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    claim = event.new
    is_ours = (
        isinstance(claim, PersistentVolumeClaim)
        and claim.metadata.namespace == pod.namespace
        and claim.metadata.name in names
    )
    return QueueingHint.QUEUE if is_ours else QueueingHint.SKIP
