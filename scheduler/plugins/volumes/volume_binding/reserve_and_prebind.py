"""Reserve and PreBind: how volumes and claims change when a Pod gets its node, and whether they have been bound.

Source: kube-scheduler v1.37 volumebinding/binder.go AssumePodVolumes, bindAPIUpdate and checkBindings, and
k8s.io/component-helpers storage/volume GetBindVolumeToClaim (behaviour).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from scheduler.errors import InvalidObjectError, NotComingError
from scheduler.framework.instructions import PatchObject
from scheduler.framework.plugin import ApiView
from scheduler.model.catalog import ObjectKey, key_of
from scheduler.model.labels import requirement_holds
from scheduler.model.objects import Node
from scheduler.model.volumes import (
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    CSINode,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
)
from scheduler.plugins.volumes.claims import is_bound
from scheduler.plugins.volumes.csi_migration import in_tree_of, migrated_affinity, migrated_plugins
from scheduler.plugins.volumes.volume_binding.binding_plan import PodVolumes
from scheduler.plugins.volumes.volume_binding.reachable_nodes import reach_of_affinity

_CLAIM = "PersistentVolumeClaim"


@dataclass(frozen=True, slots=True)
class AssumedVolumes:
    """Claims with the volumes they get, and claims to make volumes for, all as they will be.

    `changed` are those that the API server does not show like this yet.
    """

    static: tuple[tuple[PersistentVolumeClaim, PersistentVolume], ...]
    provision: tuple[PersistentVolumeClaim, ...]
    changed: tuple[PersistentVolume | PersistentVolumeClaim, ...]


def choose(binding: PodVolumes, node_name: str) -> AssumedVolumes:
    """Return the volumes and claims as they will be once all of it is bound for this node."""
    static = tuple((claim, _bound_to(claim, volume)) for claim, volume in binding.static)
    provision = tuple(_selected(claim, node_name) for claim in binding.provision)
    changed_volumes = (new for (_, new), (_, old) in zip(static, binding.static, strict=True) if new is not old)
    changed_claims = (new for new, old in zip(provision, binding.provision, strict=True) if new is not old)
    return AssumedVolumes(static, provision, (*changed_volumes, *changed_claims))


def writes(chosen: AssumedVolumes) -> Iterator[PatchObject]:
    """Yield what is to be written, volumes first."""
    claims = {volume.metadata.name: claim for claim, volume in chosen.static}
    for item in chosen.changed:
        metadata = item.metadata
        if isinstance(item, PersistentVolume):
            annotations = _only(metadata.annotations, BOUND_BY_CONTROLLER)
            spec = {"claimRef": _reference(claims[metadata.name])}
        else:
            annotations, spec = _only(metadata.annotations, SELECTED_NODE), {}
        yield PatchObject(*key_of(item), metadata.resource_version, annotations, spec)


def still_awaited(chosen: AssumedVolumes, node_name: str, api: ApiView) -> set[ObjectKey]:
    """Return the objects of the first claim that is not bound yet, none where all are.

    Raises
    ------
    NotComingError
        It will not be bound on this node, or the node is gone.
    """
    try:
        node = api.node(node_name)
        if node is None:
            raise NotComingError(f'failed to get node "{node_name}": node "{node_name}" not found')
        for claim, volume in chosen.static:
            if awaited := _awaited_static(claim, volume, node, api):
                return awaited
        for claim in chosen.provision:
            if awaited := _awaited_provision(claim, node, api):
                return awaited
    except NotComingError as error:
        raise NotComingError(f"binding volumes: {error}") from error
    return set()


def _bound_to(claim: PersistentVolumeClaim, volume: PersistentVolume) -> PersistentVolume:
    """Return the volume as it is bound to the claim; the same object if it is already."""
    wanted = ObjectReference(
        kind=_CLAIM, namespace=claim.metadata.namespace, name=claim.metadata.name, uid=claim.metadata.uid
    )
    there, annotations = volume.spec.claim_ref, volume.metadata.annotations or {}
    is_named = there is not None and (there.namespace, there.name) == (wanted.namespace, wanted.name)
    if is_named and there is not None and there.uid == wanted.uid:
        return volume
    metadata = volume.metadata
    is_made_for_it = is_named and there is not None and not there.uid
    if not is_made_for_it and BOUND_BY_CONTROLLER not in annotations:
        metadata = msgspec.structs.replace(metadata, annotations={**annotations, BOUND_BY_CONTROLLER: "yes"})
    spec = msgspec.structs.replace(volume.spec, claim_ref=wanted)
    return msgspec.structs.replace(volume, metadata=metadata, spec=spec)


def _selected(claim: PersistentVolumeClaim, node_name: str) -> PersistentVolumeClaim:
    """Return the claim with its node selected; the same object if it is already."""
    annotations = claim.metadata.annotations or {}
    if annotations.get(SELECTED_NODE) == node_name:
        return claim
    metadata = msgspec.structs.replace(claim.metadata, annotations={**annotations, SELECTED_NODE: node_name})
    return msgspec.structs.replace(claim, metadata=metadata)


def _reference(claim: PersistentVolumeClaim) -> dict[str, str]:
    metadata = claim.metadata
    return {
        "apiVersion": "v1",
        "kind": _CLAIM,
        "namespace": metadata.namespace,
        "name": metadata.name,
        "uid": metadata.uid,
        "resourceVersion": metadata.resource_version,
    }


def _only(annotations: dict[str, str] | None, name: str) -> dict[str, str]:
    return {name: annotations[name]} if annotations and name in annotations else {}


def _awaited_static(claim: PersistentVolumeClaim, volume: PersistentVolume, node: Node, api: ApiView) -> set[ObjectKey]:
    """Return the objects to wait for until a claim is bound to the volume chosen for it."""
    there = api.get(PersistentVolume, volume.metadata.name)
    if there is None:
        raise NotComingError(f'failed to check binding: persistentvolumes "{volume.metadata.name}" not found')
    current = _current(claim, api, "failed to check binding")
    _check_reach(there, node, api, "failed to translate pv to csi: ")
    if there.spec.claim_ref is None or not there.spec.claim_ref.uid:
        raise NotComingError(f'ClaimRef got reset for pv "{there.metadata.name}"')
    return set() if is_bound(current) else {key_of(claim), key_of(volume)}


def _awaited_provision(claim: PersistentVolumeClaim, node: Node, api: ApiView) -> set[ObjectKey]:
    """Return the objects to wait for until a claim is bound to a volume made for it."""
    name = claim.metadata.name
    current = _current(claim, api, "failed to check provisioning pvc")
    if not current.metadata.annotations:
        raise NotComingError(f'selectedNode annotation reset for PVC "{name}"')
    if current.metadata.annotations.get(SELECTED_NODE) != node.metadata.name:
        raise NotComingError(f'provisioning failed for PVC "{name}"')
    awaited = {key_of(claim)}
    if current.spec.volume_name:
        awaited.add((PersistentVolume.__name__, "", current.spec.volume_name))
        volume = api.get(PersistentVolume, current.spec.volume_name)
        if volume is None:
            return awaited
        _check_reach(volume, node, api, "")
    return set() if is_bound(current) else awaited


def _current(claim: PersistentVolumeClaim, api: ApiView, what: str) -> PersistentVolumeClaim:
    namespace, name = claim.metadata.namespace, claim.metadata.name
    found = api.get(PersistentVolumeClaim, name, namespace)
    if found is None:
        raise NotComingError(f'{what}: persistentvolumeclaims "{namespace}/{name}" not found')
    return found


def _check_reach(volume: PersistentVolume, node: Node, api: ApiView, where: str) -> None:
    """Raise NotComingError where a volume cannot be used from a node; by its driver's labels if that is migrated."""
    affinity, plugin = volume.spec.node_affinity, in_tree_of(volume.spec)
    csi_node = api.get(CSINode, node.metadata.name)
    if plugin is not None and csi_node is not None and plugin.name in migrated_plugins(csi_node):
        try:
            plugin.handle_of(volume.spec, volume.metadata.labels)
        except InvalidObjectError as error:
            raise NotComingError(f"{where}could not translate pv: {error}") from error
        affinity = migrated_affinity(volume, plugin)
    reach, labels = reach_of_affinity(affinity), node.metadata.labels or {}
    if reach is None or any(all(requirement_holds(term, labels) for term in terms) for terms in reach):
        return
    what = f'pv "{volume.metadata.name}" node affinity doesn\'t match node "{node.metadata.name}"'
    raise NotComingError(f"{what}: no matching NodeSelectorTerms")
