"""Pods, nodes and snapshots for tests: keyword arguments in, objects through the real JSON decoders out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from scheduler.framework.plugin import Plugin
from scheduler.framework.profile import Enabled, Profile
from scheduler.kube.resources import KINDS
from scheduler.model.catalog import CatalogObject, UnreadableObject
from scheduler.model.memo import Memo
from scheduler.model.objects import Node, Pod, decode_node, decode_pod
from scheduler.model.pods import PodInfo
from scheduler.model.rules import Rule
from scheduler.model.signals import SignalTable
from scheduler.model.snapshot import Snapshot
from scheduler.model.state import ClusterState
from scheduler.plugins import default_chain
from scheduler.rules.compiled import compiled_rules
from scheduler.rules.compiled_rule import CompiledRule

NO_SIGNALS = SignalTable()


def pod_of(fields: Mapping[str, Any]) -> PodInfo:
    """Decode a Pod from its JSON fields."""
    pod = decode_pod(msgspec.json.encode(fields))
    assert isinstance(pod, Pod), pod
    return PodInfo(pod)


def node_of(fields: Mapping[str, Any]) -> Node:
    """Decode a Node from its JSON fields."""
    node = decode_node(msgspec.json.encode(fields))
    assert isinstance(node, Node), node
    return node


def make_pod(
    name: str = "pod",
    *,
    namespace: str = "default",
    uid: str = "",
    version: str = "",
    labels: Mapping[str, str] | None = None,
    node: str = "",
    nominated: str = "",
    priority: int | None = None,
    images: Sequence[str] = ("app",),
    ports: Sequence[Mapping[str, Any]] = (),
    status: Mapping[str, Any] | None = None,
    spec: Mapping[str, Any] | None = None,
    extended: Mapping[str, str | int] | None = None,
    **requests: str | int,
) -> PodInfo:
    """Make a Pod of one container per image; what is left (cpu="500m", memory="1Gi") the first one requests.

    `extended` is for resources whose name is no identifier; `spec` is merged over all.
    """
    wanted = {**requests, **(extended or {})}
    containers: list[dict[str, Any]] = [{"name": f"c{i}", "image": image} for i, image in enumerate(images)]
    if containers:
        containers[0] |= {"resources": {"requests": wanted} if wanted else {}, "ports": list(ports)}
    merged: dict[str, Any] = {"containers": containers, "schedulerName": "vane", **(spec or {})}
    if node:
        merged["nodeName"] = node
    if priority is not None:
        merged["priority"] = priority
    return pod_of(
        {
            "metadata": {
                "name": name,
                "namespace": namespace,
                "uid": uid or f"{namespace}/{name}",
                "resourceVersion": version,
                "labels": dict(labels or {}),
            },
            "spec": merged,
            "status": {"nominatedNodeName": nominated, **(status or {})},
        }
    )


def make_node(
    name: str = "node",
    *,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    unschedulable: bool = False,
    images: Mapping[str, int] | None = None,
    pods: str | int = 110,
    extended: Mapping[str, str | int] | None = None,
    features: Sequence[str] = (),
    annotations: Mapping[str, str] | None = None,
    **allocatable: str | int,
) -> Node:
    """Make a Node with 4 cpus and 16Gi unless said otherwise; `images` maps names to bytes."""
    return node_of(
        {
            "metadata": {
                "name": name,
                "labels": {"kubernetes.io/hostname": name, **(labels or {})},
                "annotations": dict(annotations or {}),
            },
            "spec": {"taints": list(taints), "unschedulable": unschedulable},
            "status": {
                "allocatable": {"cpu": "4", "memory": "16Gi", "pods": pods, **allocatable, **(extended or {})},
                "images": [{"names": [image], "sizeBytes": size} for image, size in (images or {}).items()],
                "declaredFeatures": list(features),
            },
        }
    )


def object_of(kind: str, fields: Mapping[str, Any]) -> CatalogObject:
    """Decode an object that is neither Pod nor Node from its JSON fields."""
    found = KINDS[kind].decode(msgspec.json.encode(fields))
    assert not isinstance(found, UnreadableObject), found
    decoded: CatalogObject = found
    return decoded


def cluster_of(
    nodes: Iterable[Node],
    pods: Iterable[PodInfo] = (),
    plugins: Sequence[Plugin] | None = None,
    objects: Iterable[CatalogObject] = (),
) -> ClusterState:
    """Return a ClusterState with the nodes in this order and each Pod placed, or nominated, where it says."""
    enabled = [Enabled(plugin) for plugin in plugins] if plugins is not None else list(default_chain())
    indexes = dict.fromkeys(kind for one in enabled for kind in one.plugin.indexes)
    state = ClusterState(indexes=[kind() for kind in indexes])
    for node in nodes:
        state.set_node(node)
    for item in objects:
        state.set_object(item)
    for pod in pods:
        name, nominated = pod.pod.spec.node_name, pod.pod.status.nominated_node_name
        if name:
            state.place(pod, state.nodes.ensure_row(name))
        elif nominated:
            state.nominated.setdefault(nominated, {})[pod.uid] = pod
    return state


def snapshot_of(
    nodes: Iterable[Node], pods: Iterable[PodInfo] = (), signals: SignalTable = NO_SIGNALS, now_s: float = 0.0
) -> Snapshot:
    """Return a Snapshot of `cluster_of` the same."""
    return Snapshot(cluster_of(nodes, pods), signals, now_s)


def default_profile(scheduler_name: str = "vane") -> Profile:
    return Profile.build(scheduler_name, default_chain())


def compiled(rule: Rule, snapshot: Snapshot) -> CompiledRule:
    """Return a rule as it is in force in a snapshot; one that is not in force is compiled over the signals there."""
    known = compiled_rules(snapshot).by_name.get(rule.name)
    return (
        known
        if known is not None and known.rule is rule
        else CompiledRule(rule, snapshot.signals.rules.signals.get(rule.signal), Memo())
    )
