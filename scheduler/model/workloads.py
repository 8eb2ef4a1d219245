"""Objects about groups of Pods, with only the fields that Vane reads."""

from __future__ import annotations

from scheduler.model.structs import Labels, LabelSelector, ObjectMeta, Struct


class Namespace(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


class ServiceSpec(Struct, frozen=True):
    selector: Labels | None = None


class Service(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ServiceSpec = ServiceSpec()


class ReplicationControllerSpec(Struct, frozen=True):
    selector: Labels | None = None


class ReplicationController(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ReplicationControllerSpec = ReplicationControllerSpec()


class SelectingSpec(Struct, frozen=True):
    selector: LabelSelector | None = None


class ReplicaSet(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: SelectingSpec = SelectingSpec()


class StatefulSet(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: SelectingSpec = SelectingSpec()


class DisruptionStatus(Struct, frozen=True):
    disruptions_allowed: int = 0
    disrupted_pods: dict[str, str | None] | None = None


class PodDisruptionBudget(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: SelectingSpec = SelectingSpec()
    status: DisruptionStatus = DisruptionStatus()
