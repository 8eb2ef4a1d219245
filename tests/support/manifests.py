from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Json = dict[str, Any]


def node(
    name: str,
    *,
    cpu: str = "8",
    memory: str = "32Gi",
    pods: str = "110",
    extended: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    unschedulable: bool = False,
    ready: bool = True,
    images: Sequence[Json] = (),
) -> Json:
    """Return a Node of this allocatable; `extended` names further resources, as in `{"nvidia.com/gpu": "4"}`."""
    resources = {"cpu": cpu, "memory": memory, "pods": pods, "ephemeral-storage": "100Gi", **(extended or {})}
    well_known = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    spec: Json = {"taints": [dict(taint) for taint in taints]}
    if unschedulable:
        spec["unschedulable"] = True
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**well_known, **(labels or {})}, "annotations": dict(annotations or {})},
        "spec": spec,
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": [{"type": "Ready", "status": "True" if ready else "False", "reason": "KubeletReady"}],
            "images": list(images),
        },
    }


def pod(
    name: str,
    *,
    namespace: str = "default",
    cpu: str | None = "100m",
    memory: str | None = "128Mi",
    requests: Mapping[str, str] | None = None,
    limits: Mapping[str, str] | None = None,
    scheduler_name: str | None = None,
    node_name: str | None = None,
    priority_class: str | None = None,
    grace: int | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    image: str = "pause:3.10",
    ports: Sequence[Json] = (),
    spec: Mapping[str, Any] | None = None,
) -> Json:
    """Return a Pod of one container; `spec` adds to the PodSpec or replaces parts of it."""
    asked = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value is not None}
    container = {
        "name": "app",
        "image": image,
        "ports": list(ports),
        "resources": {"requests": {**asked, **(requests or {})}, "limits": dict(limits or {})},
    }
    optional = {
        "schedulerName": scheduler_name,
        "nodeName": node_name,
        "priorityClassName": priority_class,
        "terminationGracePeriodSeconds": grace,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": dict(labels or {}),
            "annotations": dict(annotations or {}),
        },
        "spec": {
            "containers": [container],
            **{field: value for field, value in optional.items() if value is not None},
            **(spec or {}),
        },
    }
