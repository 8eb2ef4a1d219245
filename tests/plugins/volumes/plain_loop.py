"""The volume plugins' Filter and VolumeBinding's Score once more, node by node, as the specification says them.

Written for clearness: objects are looked up in plain lists, every verdict is found anew. PreFilter's refusals are not
repeated here; `verdict` is asked for Pods that have passed it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scheduler.model.labels import requirement_holds
from scheduler.model.objects import Node
from scheduler.model.pods import PodInfo
from scheduler.model.quantity import parse_quantity
from scheduler.model.selectors import selector_of
from scheduler.model.volumes import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)

Volume = PersistentVolume
Claim = PersistentVolumeClaim


@dataclass
class World:
    """Nodes and Pods by node name, and all other objects in one list."""

    nodes: Mapping[str, Node]
    pods: Mapping[str, Sequence[PodInfo]]
    objects: Sequence[Any]

    def all(self, kind: type) -> list[Any]:
        return [item for item in self.objects if isinstance(item, kind)]

    def get(self, kind: type, name: str, namespace: str = "") -> Any:
        wanted = (namespace, name)
        return next((one for one in self.all(kind) if (one.metadata.namespace, one.metadata.name) == wanted), None)


def claims_of(pod: PodInfo, world: World) -> list[Claim]:
    names = [v.persistent_volume_claim.claim_name for v in pod.pod.spec.volumes or () if v.persistent_volume_claim]
    found = [world.get(Claim, name, pod.namespace) for name in names]
    return [claim for claim in found if claim is not None]


def restrictions(pod: PodInfo, node: str, world: World) -> str:
    """Return disk, one-pod or nothing."""
    for volume in pod.pod.spec.volumes or ():
        for other in (other for placed in world.pods.get(node, ()) for other in placed.pod.spec.volumes or ()):
            gce, held = volume.gce_persistent_disk, other.gce_persistent_disk
            if gce and held and gce.pd_name == held.pd_name and not (gce.read_only and held.read_only):
                return "disk"
            rbd, image = volume.rbd, other.rbd
            if rbd and image and set(rbd.monitors or ()) & set(image.monitors or ()) and rbd.image == image.image:
                if not (rbd.read_only and image.read_only):
                    return "disk"
    exclusive = {c.metadata.name for c in claims_of(pod, world) if "ReadWriteOncePod" in (c.spec.access_modes or ())}
    for name in world.nodes:
        for placed in world.pods.get(name, ()):
            if placed.namespace == pod.namespace and exclusive & {c.metadata.name for c in claims_of(placed, world)}:
                return "one-pod"
    return ""


def handles(pod: PodInfo, node: str, world: World) -> set[tuple[str, str]]:
    """Return (driver, handle) of what has to be attached for a Pod on a node."""
    found = set()
    has_csi_node = world.get(CSINode, node) is not None
    for volume in pod.pod.spec.volumes or ():
        if volume.cinder is not None and has_csi_node:
            found.add(("cinder.csi.openstack.org", volume.cinder.volume_id))
    for claim in claims_of(pod, world):
        bound = world.get(Volume, claim.spec.volume_name)
        of_class = world.get(StorageClass, claim.spec.storage_class_name or "")
        if bound is not None:
            if bound.spec.csi is not None:
                found.add((bound.spec.csi.driver, bound.spec.csi.volume_handle))
            elif bound.spec.cinder is not None and has_csi_node:
                found.add(("cinder.csi.openstack.org", bound.spec.cinder.volume_id))
        elif of_class is not None and of_class.provisioner:
            found.add((of_class.provisioner, f"to come: {claim.metadata.namespace}/{claim.metadata.name}"))
    return found


def limits(pod: PodInfo, node: str, world: World) -> str:
    """Return missing, full or nothing."""
    new = handles(pod, node, world)
    csi_node = world.get(CSINode, node)
    drivers = {one.name: one for one in (csi_node.spec.drivers or ())} if csi_node else {}
    for driver, _ in new:
        known = world.get(CSIDriver, driver)
        if known and known.spec.prevent_pod_scheduling_if_missing and driver not in drivers:
            return "missing"
    by_pods = {one for placed in world.pods.get(node, ()) for one in handles(placed, node, world)}
    attached = set(by_pods)
    for attachment in world.all(VolumeAttachment):
        volume = world.get(Volume, attachment.spec.source.persistent_volume_name or "")
        if attachment.spec.node_name == node and volume is not None and volume.spec.csi is not None:
            attached.add((attachment.spec.attacher, volume.spec.csi.volume_handle))
    for driver in {driver for driver, _ in new - by_pods}:
        allocatable = drivers[driver].allocatable if driver in drivers else None
        if allocatable is None or allocatable.count is None:
            continue
        n_new = sum(one == driver for one, _ in new - by_pods)
        if sum(one == driver for one, _ in attached) + n_new > allocatable.count:
            return "full"
    return ""


def is_elsewhere(pod: PodInfo, node: Node, world: World) -> bool:
    key = "topology.kubernetes.io/zone"
    zone = (node.metadata.labels or {}).get(key)
    for claim in claims_of(pod, world):
        volume = world.get(Volume, claim.spec.volume_name)
        labels = (volume.metadata.labels or {}) if volume else {}
        if key in labels and zone is not None and zone not in labels[key].split("__"):
            return True
    return False


def is_in_reach(volume: Volume, node: Node) -> bool:
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return True
    labels = node.metadata.labels or {}
    return any(
        bool(term.match_expressions) and all(requirement_holds(one, labels) for one in term.match_expressions or ())
        for term in affinity.required.node_selector_terms or ()
    )


def storage(resources: Mapping[str, Any] | None) -> Any:
    return parse_quantity(str((resources or {}).get("storage", "0")))


@dataclass
class Found:
    """What a node has for the claims: reasons against it, volumes found, pools to make volumes in."""

    reasons: set[str]
    static: list[tuple[Claim, Volume]]
    made: list[tuple[Claim, CSIStorageCapacity | None]]


def binding(pod: PodInfo, node: Node, world: World) -> Found:
    claims = claims_of(pod, world)
    found = Found(set(), [], [])
    for claim in (one for one in claims if one.spec.volume_name):
        volume = world.get(Volume, claim.spec.volume_name)
        if volume is None or not is_in_reach(volume, node):
            found.reasons.add("gone" if volume is None else "affinity")
            break
    waiting = sorted(
        (one for one in claims if not one.spec.volume_name), key=lambda one: storage(one.spec.resources.requests)
    )
    unmatched = []
    for claim in waiting:
        best = best_volume(claim, node, {volume.metadata.name for _, volume in found.static}, world)
        if best is None:
            unmatched.append(claim)
        else:
            found.static.append((claim, best))
    for claim in unmatched:
        of_class = world.get(StorageClass, claim.spec.storage_class_name or "")
        if of_class.provisioner == "kubernetes.io/no-provisioner":
            found.reasons.add("no volume")
            break
        driver, size = world.get(CSIDriver, of_class.provisioner), storage(claim.spec.resources.requests)
        pool = None
        if driver is not None and driver.spec.storage_capacity:
            pool = first_pool(of_class.metadata.name, math.ceil(size), node, world)
            if pool is None:
                found.reasons.add("no space")
                break
        found.made.append((claim, pool))
    return found


def best_volume(claim: Claim, node: Node, taken: Iterable[str], world: World) -> Volume | None:
    def named(volume: Volume) -> bool:
        ref = volume.spec.claim_ref
        return ref is not None and (ref.namespace, ref.name) == (claim.metadata.namespace, claim.metadata.name)

    suiting = [
        volume
        for volume in world.all(Volume)
        if volume.metadata.name not in taken
        and volume.spec.storage_class_name == claim.spec.storage_class_name
        and storage(volume.spec.capacity) >= storage(claim.spec.resources.requests)
    ]
    for volume in suiting:
        if named(volume):
            return volume if is_in_reach(volume, node) else None
    free = [
        volume
        for volume in suiting
        if volume.spec.claim_ref is None
        and volume.status.phase == "Available"
        and set(claim.spec.access_modes or ()) <= set(volume.spec.access_modes or ())
        and is_in_reach(volume, node)
    ]
    return min(free, key=lambda volume: storage(volume.spec.capacity), default=None)


def first_pool(class_name: str, size: int, node: Node, world: World) -> CSIStorageCapacity | None:
    for pool in world.all(CSIStorageCapacity):
        limit = pool.maximum_volume_size if pool.maximum_volume_size is not None else pool.capacity
        is_ours = pool.storage_class_name == class_name and pool.node_topology is not None and limit is not None
        if is_ours and parse_quantity(str(limit)) >= size:
            if selector_of(pool.node_topology).matches(node.metadata.labels or {}):
                return pool  # type: ignore[no-any-return]
    return None


def score(found: Found) -> int:
    classes: dict[str, tuple[int, int | None]] = {}
    for claim, volume in found.static:
        requested, capacity = classes.get(volume.spec.storage_class_name, (0, 0))
        size = math.ceil(storage(volume.spec.capacity))
        asked = math.ceil(storage(claim.spec.resources.requests))
        classes[volume.spec.storage_class_name] = requested + asked, (capacity or 0) + size
    for claim, pool in found.made if not found.static else ():
        if pool is not None:
            name = claim.spec.storage_class_name or ""
            requested = classes.get(name, (0, 0))[0] + math.ceil(storage(claim.spec.resources.requests))
            classes[name] = requested, None if pool.capacity is None else math.ceil(parse_quantity(str(pool.capacity)))
    scores = [
        0 if not capacity or requested > capacity else 100 - 100 * requested // capacity
        for requested, capacity in classes.values()
    ]
    return math.floor(sum(scores) / len(scores) + 0.5) if scores else 0
