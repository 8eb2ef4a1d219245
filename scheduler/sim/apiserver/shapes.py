"""Whether a body has the types of its kind, before anything looks inside it.

What this server reads is always checked. With `fieldValidation=Strict`, which kubectl asks for, the models of the
`kubernetes` package check every field, so that a misspelt one is refused as the real API server refuses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from scheduler.errors import InvalidObjectError
from scheduler.model.quantity import parse_quantity
from scheduler.sim.apiserver.failures import bad_request
from scheduler.sim.apiserver.resources import EVENTS, LEASES, NAMESPACES, NODES, PODS, Json, ServedResource

Quantity = str | int | float


class _Struct(msgspec.Struct, rename="camel"):
    pass


class _MetadataShape(_Struct):
    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None
    owner_references: list[Json] | None = None


class _ResourcesShape(_Struct):
    requests: dict[str, Quantity] | None = None
    limits: dict[str, Quantity] | None = None


class _PortShape(_Struct):
    container_port: int | None = None
    protocol: str | None = None


class _ContainerShape(_Struct):
    name: str | None = None
    image: str | None = None
    resources: _ResourcesShape | None = None
    ports: list[_PortShape] | None = None


class _TolerationShape(_Struct):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    toleration_seconds: int | None = None


class _PodSpecShape(_Struct):
    containers: list[_ContainerShape] | None = None
    init_containers: list[_ContainerShape] | None = None
    node_name: str | None = None
    node_selector: dict[str, str] | None = None
    scheduler_name: str | None = None
    restart_policy: str | None = None
    priority_class_name: str | None = None
    priority: int | None = None
    termination_grace_period_seconds: int | None = None
    tolerations: list[_TolerationShape] | None = None
    scheduling_gates: list[dict[str, str]] | None = None
    readiness_gates: list[dict[str, str]] | None = None
    security_context: Json | None = None


class _ConditionShape(_Struct):
    type: str
    status: str


class _ReasonShape(_Struct):
    reason: str | None = None
    exit_code: int | None = None


class _ContainerStateShape(_Struct):
    running: Json | None = None
    waiting: _ReasonShape | None = None
    terminated: _ReasonShape | None = None


class _ContainerStatusShape(_Struct):
    name: str | None = None
    ready: bool | None = None
    restart_count: int | None = None
    state: _ContainerStateShape | None = None


class _IpShape(_Struct):
    ip: str


class _PodStatusShape(_Struct):
    phase: str | None = None
    reason: str | None = None
    nominated_node_name: str | None = None
    pod_ip: str | None = msgspec.field(default=None, name="podIP")
    pod_ips: list[_IpShape] | None = msgspec.field(default=None, name="podIPs")
    conditions: list[_ConditionShape] | None = None
    container_statuses: list[_ContainerStatusShape] | None = None


class _ObjectShape(_Struct):
    metadata: _MetadataShape | None = None


class _PodShape(_ObjectShape):
    spec: _PodSpecShape | None = None
    status: _PodStatusShape | None = None


class _NodeSpecShape(_Struct):
    unschedulable: bool | None = None
    taints: list[dict[str, str]] | None = None


class _NodeStatusShape(_Struct):
    capacity: dict[str, Quantity] | None = None
    allocatable: dict[str, Quantity] | None = None
    conditions: list[_ConditionShape] | None = None
    addresses: list[dict[str, str]] | None = None
    node_info: dict[str, str | Json] | None = None


class _NodeShape(_ObjectShape):
    spec: _NodeSpecShape | None = None
    status: _NodeStatusShape | None = None


class _LeaseSpecShape(_Struct):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    lease_transitions: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None


class _LeaseShape(_ObjectShape):
    spec: _LeaseSpecShape | None = None


class _ReferenceShape(_Struct):
    kind: str | None = None
    namespace: str | None = None
    name: str | None = None
    uid: str | None = None
    field_path: str | None = None


class _SeriesShape(_Struct):
    count: int | None = None
    last_observed_time: str | None = None


class _EventShape(_ObjectShape):
    involved_object: _ReferenceShape | None = None
    regarding: _ReferenceShape | None = None
    reason: str | None = None
    message: str | None = None
    note: str | None = None
    type: str | None = None
    action: str | None = None
    event_time: str | None = None
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    deprecated_first_timestamp: str | None = None
    deprecated_last_timestamp: str | None = None
    reporting_component: str | None = None
    reporting_controller: str | None = None
    reporting_instance: str | None = None
    source: dict[str, str] | None = None
    deprecated_source: dict[str, str] | None = None
    count: int | None = None
    deprecated_count: int | None = None
    series: _SeriesShape | None = None


_SHAPES: Final[Mapping[str, type[_ObjectShape]]] = {
    EVENTS.stored_as: _EventShape,
    LEASES.stored_as: _LeaseShape,
    NAMESPACES.stored_as: _ObjectShape,
    NODES.stored_as: _NodeShape,
    PODS.stored_as: _PodShape,
}


def check_shape(resource: ServedResource, obj: Json) -> None:
    """Raise StatusError 400 for an object that is none of this kind."""
    try:
        shaped = msgspec.convert(obj, _SHAPES[resource.stored_as])
        if isinstance(shaped, _PodShape):
            _check_quantities(shaped)
    except (msgspec.ValidationError, InvalidObjectError) as error:
        raise bad_request(
            f'{resource.kind} in version "{resource.api_version}" cannot be handled as a {resource.kind}: {error}'
        ) from error


def _check_quantities(pod: _PodShape) -> None:
    spec = pod.spec or _PodSpecShape()
    for container in [*(spec.containers or ()), *(spec.init_containers or ())]:
        resources = container.resources or _ResourcesShape()
        for amounts in (resources.requests, resources.limits):
            for quantity in (amounts or {}).values():
                parse_quantity(str(quantity))
