"""Objects as they are kept: parts that many of them have alike are one object, and what nobody reads is left out.

The Pods of a Deployment differ in their names, times and nodes; labels, owner and nearly all of the spec are the same,
and so are names of nodes, images and namespaces everywhere. A Pod of ordinary shape takes a fifth of the memory.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final, TypeVar

import msgspec

from scheduler.model.objects import (
    Container,
    ContainerStatus,
    Node,
    NodeAddress,
    Pod,
    PodCondition,
    PodSpec,
    PodStatus,
    UnreadableNode,
    UnreadablePod,
)
from scheduler.model.structs import Labels, ObjectMeta
from scheduler.model.volumes import Volume

T = TypeVar("T")

_LIMIT_BYTES: Final = 16 * 2**20
_ENTRY_BYTES: Final = 150
"""About what an entry takes beside the part itself: its key and its place in the table."""
_MANY_ASKED: Final = 50_000
_ASKED_PER_PART: Final = 4
_DIGEST_BYTES: Final = 16
_READ_CONDITIONS: Final = frozenset({"PodScheduled", "PodResizePending", "DisruptionTarget"})

_encode: Final = msgspec.json.Encoder().encode
_replace: Final = msgspec.structs.replace


class SharedParts:
    """Gives the first of equal parts to all who bring one.

    A part is forgotten that was not asked for while others were, 50,000 times and four times for each of them, or while
    `limit_bytes` of others came: who holds it keeps it, who brings its equal later has another. So labels that each Pod
    has for itself do not pile up, and there is never more than two times `limit_bytes`, written as JSON.
    """

    def __init__(self, limit_bytes: int = _LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._new_bytes = 0
        self._n_asked = 0
        self._new: dict[bytes | str, Any] = {}
        self._old: dict[bytes | str, Any] = {}

    def __len__(self) -> int:
        return len(self._new) + len(self._old)

    def text(self, text: str) -> str:
        """Return a text that is equal."""
        return self._first(text, text, len(text)) if text else ""

    def part(self, kind: str, part: T) -> T:
        """Return a part that is equal, down to the order of its keys; `kind` tells those of different types apart."""
        if not part:
            return part
        try:
            written = _encode(part)
        except (OverflowError, ValueError, msgspec.MsgspecError):  # a number beyond all that JSON's readers take
            return part
        key = hashlib.blake2b(written, digest_size=_DIGEST_BYTES, person=kind.encode()).digest()
        return self._first(key, part, len(written))

    def _first(self, key: bytes | str, value: T, n_bytes: int) -> T:
        self._n_asked += 1
        known: T | None = self._new.get(key)
        if known is not None:
            return known
        first: T = self._old.get(key, value)
        self._new[key] = first
        self._new_bytes += n_bytes + _ENTRY_BYTES
        if self._new_bytes > self._limit_bytes or self._n_asked > max(_MANY_ASKED, _ASKED_PER_PART * len(self._new)):
            self._old, self._new, self._new_bytes, self._n_asked = self._new, {}, 0, 0
        return first


_PARTS: Final = SharedParts()


def shared_pod(pod: Pod | UnreadablePod, parts: SharedParts = _PARTS) -> Pod | UnreadablePod:
    """Return a Pod that says what this one says, as far as anybody reads it.

    Left out are volumes without a source that a plugin looks at, mounts without options, conditions that are not read,
    and the annotations of a Pod that has a node.
    """
    if isinstance(pod, UnreadablePod):
        return pod
    metadata = _metadata(pod.metadata, parts, None if pod.spec.node_name else pod.metadata.annotations)
    return Pod(metadata=metadata, spec=_spec(pod.spec, parts), status=_status(pod.status, parts))


def shared_node(node: Node | UnreadableNode, parts: SharedParts = _PARTS) -> Node | UnreadableNode:
    """Return a Node that says what this one says."""
    if isinstance(node, UnreadableNode):
        return node
    status = node.status
    addresses = [
        NodeAddress(type=parts.text(one.type), address=parts.text(one.address)) for one in status.addresses or ()
    ]
    lean = _replace(
        status,
        allocatable=parts.part("amounts", status.allocatable),
        images=[parts.part("image", image) for image in status.images or ()] or None,
        addresses=addresses or None,
        conditions=parts.part("node conditions", status.conditions),
        declared_features=parts.part("features", status.declared_features),
    )
    metadata = node.metadata
    labels = {parts.text(key): parts.text(value) for key, value in (metadata.labels or {}).items()}
    metadata = _replace(metadata, name=parts.text(metadata.name), labels=labels or None)
    return Node(metadata=metadata, spec=node.spec, status=lean)


def _metadata(metadata: ObjectMeta, parts: SharedParts, annotations: Labels | None) -> ObjectMeta:
    return _replace(
        metadata,
        namespace=parts.text(metadata.namespace),
        labels=parts.part("labels", metadata.labels),
        annotations=annotations,
        owner_references=parts.part("owners", metadata.owner_references),
    )


def _spec(spec: PodSpec, parts: SharedParts) -> PodSpec:
    """Return a spec that is all its own only in the node."""
    lean = _replace(
        spec,
        node_name="",
        containers=_containers(spec.containers),
        init_containers=_containers(spec.init_containers),
        ephemeral_containers=_containers(spec.ephemeral_containers),
        volumes=[volume for volume in spec.volumes or () if volume != Volume(name=volume.name)] or None,
    )
    common = parts.part("spec", lean)
    return _replace(common, node_name=parts.text(spec.node_name)) if spec.node_name else common


def _containers(containers: list[Container] | None) -> list[Container] | None:
    """Leave out the mounts that none reads: each Pod has one of its own, of the token of its account."""
    if containers is None:
        return None
    return [
        _replace(one, volume_mounts=[mount for mount in one.volume_mounts if mount.bind_mount_options] or None)
        if one.volume_mounts
        else one
        for one in containers
    ]


def _status(status: PodStatus, parts: SharedParts) -> PodStatus:
    conditions = [_condition(one, parts) for one in status.conditions or () if one.type in _READ_CONDITIONS]
    return _replace(
        status,
        phase=parts.text(status.phase),
        nominated_node_name=parts.text(status.nominated_node_name),
        start_time=None if status.start_time is None else parts.text(status.start_time),
        conditions=conditions or None,
        container_statuses=_container_statuses(status.container_statuses, parts),
        init_container_statuses=_container_statuses(status.init_container_statuses, parts),
        allocated_resources=parts.part("amounts", status.allocated_resources),
        resources=parts.part("resources", status.resources),
    )


def _condition(one: PodCondition, parts: SharedParts) -> PodCondition:
    return PodCondition(
        type=parts.text(one.type),
        status=parts.text(one.status),
        reason=parts.text(one.reason),
        message=one.message,
        last_transition_time=None if one.last_transition_time is None else parts.text(one.last_transition_time),
    )


def _container_statuses(statuses: list[ContainerStatus] | None, parts: SharedParts) -> list[ContainerStatus] | None:
    if statuses is None:
        return None
    return [
        ContainerStatus(
            name=parts.text(one.name),
            restart_count=one.restart_count,
            state=parts.part("state", one.state),
            allocated_resources=parts.part("amounts", one.allocated_resources),
            resources=parts.part("resources", one.resources),
        )
        for one in statuses
    ]
