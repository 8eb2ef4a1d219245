"""Pods and Nodes with only the fields that Vane reads, decoded straight from JSON bytes; see `model.structs`."""

from __future__ import annotations

import msgspec

from scheduler.model.structs import (
    MALFORMED_JSON,
    Labels,
    LabelSelector,
    ObjectMeta,
    Requirement,
    ResourceList,
    Struct,
    fitting,
    what_can_be_read,
)
from scheduler.model.volumes import Volume


class ResourceRequirements(Struct, frozen=True):
    requests: ResourceList | None = None
    limits: ResourceList | None = None
    claims: list[msgspec.Raw] | None = None


class ContainerPort(Struct, frozen=True):
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = "TCP"


class RestartPolicyRule(Struct, frozen=True):
    action: str = ""


class VolumeMount(Struct, frozen=True):
    name: str = ""
    bind_mount_options: list[str] | None = None


class Container(Struct, frozen=True):
    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: list[ContainerPort] | None = None
    restart_policy: str | None = None
    restart_policy_rules: list[RestartPolicyRule] | None = None
    volume_mounts: list[VolumeMount] | None = None


class Toleration(Struct, frozen=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class NodeSelectorTerm(Struct, frozen=True):
    match_expressions: list[Requirement] | None = None
    match_fields: list[Requirement] | None = None


class NodeSelector(Struct, frozen=True):
    node_selector_terms: list[NodeSelectorTerm] | None = None


class PreferredSchedulingTerm(Struct, frozen=True):
    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinitySpec(Struct, frozen=True):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: list[PreferredSchedulingTerm] | None = None

    @property
    def required(self) -> NodeSelector | None:
        return self.required_during_scheduling_ignored_during_execution

    @property
    def preferred(self) -> list[PreferredSchedulingTerm] | None:
        return self.preferred_during_scheduling_ignored_during_execution


class PodAffinityTerm(Struct, frozen=True):
    """`namespace_selector`: None for none, an empty one for all namespaces."""

    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: list[str] | None = None
    namespace_selector: LabelSelector | None = None


class WeightedPodAffinityTerm(Struct, frozen=True):
    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Struct, frozen=True):
    """Terms between Pods; the same for affinity and anti-affinity."""

    required_during_scheduling_ignored_during_execution: list[PodAffinityTerm] | None = None
    preferred_during_scheduling_ignored_during_execution: list[WeightedPodAffinityTerm] | None = None

    @property
    def required(self) -> list[PodAffinityTerm]:
        return self.required_during_scheduling_ignored_during_execution or []

    @property
    def preferred(self) -> list[WeightedPodAffinityTerm]:
        return self.preferred_during_scheduling_ignored_during_execution or []


class Affinity(Struct, frozen=True):
    node_affinity: NodeAffinitySpec | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class SchedulingGate(Struct, frozen=True):
    name: str = ""


class TopologySpreadConstraint(Struct, frozen=True):
    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] | None = None


class SchedulingGroup(Struct, frozen=True):
    pod_group_name: str | None = None


class PodSpec(Struct, frozen=True):
    node_name: str = ""
    scheduler_name: str = "default-scheduler"
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    ephemeral_containers: list[Container] | None = None
    node_selector: Labels | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None
    priority: int | None = None
    preemption_policy: str | None = None
    overhead: ResourceList | None = None
    resources: ResourceRequirements | None = None
    scheduling_gates: list[SchedulingGate] | None = None
    topology_spread_constraints: list[TopologySpreadConstraint] | None = None
    resource_claims: list[msgspec.Raw] | None = None
    scheduling_group: SchedulingGroup | None = None
    volumes: list[Volume] | None = None
    host_network: bool = False
    host_users: bool | None = None


class PodCondition(Struct, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class ContainerRun(Struct, frozen=True):
    """A container that runs, or that has ended."""

    started_at: str | None = None


class ContainerState(Struct, frozen=True):
    running: ContainerRun | None = None
    terminated: ContainerRun | None = None


class ContainerStatus(Struct, frozen=True):
    name: str = ""
    restart_count: int = 0
    state: ContainerState | None = None
    allocated_resources: ResourceList | None = None
    resources: ResourceRequirements | None = None


class PodStatus(Struct, frozen=True):
    phase: str = ""
    nominated_node_name: str = ""
    start_time: str | None = None
    conditions: list[PodCondition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    allocated_resources: ResourceList | None = None
    resources: ResourceRequirements | None = None


class Pod(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def key(self) -> str:
        """`namespace/name`, as kubectl and events write it."""
        return f"{self.metadata.namespace}/{self.metadata.name}"


class Taint(Struct, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Struct, frozen=True):
    unschedulable: bool = False
    taints: list[Taint] | None = None
    provider_id: str = msgspec.field(default="", name="providerID")


class ContainerImage(Struct, frozen=True):
    names: list[str] | None = None
    size_bytes: int = 0


class NodeAddress(Struct, frozen=True):
    type: str = ""
    address: str = ""


class NodeCondition(Struct, frozen=True):
    type: str = ""
    status: str = ""


class NodeStatus(Struct, frozen=True):
    allocatable: ResourceList | None = None
    images: list[ContainerImage] | None = None
    addresses: list[NodeAddress] | None = None
    conditions: list[NodeCondition] | None = None
    declared_features: list[str] | None = None


class Node(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class UnreadablePod(Struct, frozen=True):
    """A Pod that does not decode; `rest` is what of it could be read, None for nothing but these."""

    metadata: ObjectMeta
    node_name: str
    scheduler_name: str
    problem: str
    rest: Pod | None = None


class UnreadableNode(Struct, frozen=True):
    """What could be read of a Node that does not decode: enough to know which one takes no Pods."""

    metadata: ObjectMeta
    problem: str


_pods: msgspec.json.Decoder[Pod] = msgspec.json.Decoder(Pod)
_nodes: msgspec.json.Decoder[Node] = msgspec.json.Decoder(Node)


def decode_pod(raw: bytes | msgspec.Raw) -> Pod | UnreadablePod:
    """Decode one Pod from JSON; one that does not fit the schema comes back as UnreadablePod.

    Raises
    ------
    InvalidObjectError
        Not even its metadata can be read.
    """
    try:
        return _pods.decode(raw)
    except MALFORMED_JSON as error:
        metadata, spec = what_can_be_read(raw)
        return UnreadablePod(
            metadata=metadata,
            node_name=str(spec.get("nodeName") or ""),
            scheduler_name=str(spec.get("schedulerName") or "default-scheduler"),
            problem=str(error),
            rest=fitting(raw, Pod),
        )


def decode_node(raw: bytes | msgspec.Raw) -> Node | UnreadableNode:
    """Decode one Node from JSON; one that does not fit the schema comes back as UnreadableNode.

    Raises
    ------
    InvalidObjectError
        Not even its metadata can be read.
    """
    try:
        return _nodes.decode(raw)
    except MALFORMED_JSON as error:
        return UnreadableNode(metadata=what_can_be_read(raw)[0], problem=str(error))
