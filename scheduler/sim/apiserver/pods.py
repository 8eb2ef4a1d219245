"""Pods: what is defaulted, refused and kept.

Defaulted as the real API server does: phase, qosClass, restart, DNS and termination settings, schedulerName, priority,
the tolerations of not-ready and unreachable nodes, requests from limits, containers' image pull and termination message
policies. Not done: service accounts and their volumes, defaults inside volumes and probes, host ports, overhead.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from scheduler.model.quantity import parse_quantity
from scheduler.sim.apiserver.failures import (
    Cause,
    StatusError,
    duplicate,
    forbidden,
    invalid_value,
    not_supported,
    required,
)
from scheduler.sim.apiserver.kind import KindWithStatus
from scheduler.sim.apiserver.metadata import label_problem
from scheduler.sim.apiserver.resources import Json, ServedResource

SYSTEM_PRIORITIES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""The priority classes that every cluster has; others cannot be made here, the resource isn't served."""

_UNREADY_SECONDS: Final = 300
_UNREADY_TAINTS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_SPEC: Final[Json] = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "enableServiceLinks": True,
    "preemptionPolicy": "PreemptLowerPriority",
}
_MAY_CHANGE: Final = ("activeDeadlineSeconds", "tolerations", "schedulingGates")
_MAY_NOT_TEXT: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


class PodKind(KindWithStatus):
    is_returned_when_deleted = True

    def default(self, obj: Json) -> None:
        obj["metadata"]["generation"] = 1
        spec = obj.setdefault("spec", {})
        for container in _containers(spec):
            _default_container(container)
        for field, value in _SPEC.items():
            spec.setdefault(field, value)
        spec.setdefault("securityContext", {})
        _default_tolerations(spec)
        spec["priority"] = _priority(obj["metadata"].get("name", ""), spec)
        obj["status"] = {"phase": "Pending", "qosClass": _qos_class(spec)}
        if spec.get("schedulingGates"):
            gated = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
            gated["message"] = "Scheduling is blocked due to non-empty scheduling gates"
            obj["status"]["conditions"] = [{**gated, "lastProbeTime": None, "lastTransitionTime": None}]

    def problems(self, resource: ServedResource, obj: Json) -> list[Cause]:
        del resource
        spec = obj.get("spec") or {}
        causes = [] if spec.get("containers") else [required("spec.containers")]
        names: set[str] = set()
        for part in ("initContainers", "containers"):
            for i, container in enumerate(spec.get(part) or ()):
                causes += _container_problems(container, f"spec.{part}[{i}]", names)
        if spec.get("restartPolicy", "Always") not in _RESTART_POLICIES:
            causes.append(not_supported("spec.restartPolicy", spec["restartPolicy"], _RESTART_POLICIES))
        return causes

    def update(self, resource: ServedResource, new: Json, old: Json, subresource: str) -> list[Cause]:
        causes = super().update(resource, new, old, subresource)
        for part in ("spec", "status"):
            new.setdefault(part, {})
        for condition in new["status"].get("conditions") or ():
            condition.setdefault("lastProbeTime", None)
            condition.setdefault("lastTransitionTime", None)
        _default_tolerations(new["spec"])
        if subresource == "status":
            return _nomination_problems(new, old)
        if causes:
            return causes
        if _fixed(new.get("spec") or {}) != _fixed(old["spec"]) or _loses_tolerations(new["spec"], old["spec"]):
            return [forbidden("spec", _MAY_NOT_TEXT)]
        gates = old["spec"].get("schedulingGates") or ()
        if any(gate not in gates for gate in new["spec"].get("schedulingGates") or ()):
            return [forbidden("spec.schedulingGates", "only deletion is allowed, but found new scheduling gate")]
        if new["spec"] != old["spec"]:
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        return []

    def graces_s(self, obj: Json, asked_s: int | None) -> list[int]:
        """Return as `Kind`: a Pod that runs has its own grace first, and every Pod ends with one of 0 s."""
        is_running = bool(obj["spec"].get("nodeName")) and obj["status"].get("phase") not in ("Succeeded", "Failed")
        grace_s = int(obj["spec"].get("terminationGracePeriodSeconds") or 0) if asked_s is None else asked_s
        return [grace_s, 0] if is_running and grace_s > 0 else [0]


def _containers(spec: Json) -> Iterator[Json]:
    for part in ("initContainers", "containers"):
        yield from spec.get(part) or ()


def _default_container(container: Json) -> None:
    resources = container.setdefault("resources", {})
    if resources.get("limits"):
        resources["requests"] = {**resources["limits"], **(resources.get("requests") or {})}
    for part in ("limits", "requests"):
        if part in resources and not resources[part]:
            del resources[part]
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    last = str(container.get("image", "")).rpartition("/")[2]
    is_latest = last.endswith(":latest") or not (":" in last or "@" in last)
    container.setdefault("imagePullPolicy", "Always" if is_latest else "IfNotPresent")
    if not container.get("ports"):
        container.pop("ports", None)
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")


def _default_tolerations(spec: Json) -> None:
    tolerations = spec.setdefault("tolerations", [])
    tolerations += [_toleration(key) for key in _UNREADY_TAINTS if not _tolerates(tolerations, key)]


def _toleration(key: str) -> Json:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _UNREADY_SECONDS}


def _tolerates(tolerations: list[Json], key: str) -> bool:
    return any(
        one.get("key") in (key, None, "") and one.get("effect") in ("NoExecute", None, "") for one in tolerations
    )


def _priority(name: str, spec: Json) -> int:
    class_name = spec.get("priorityClassName") or ""
    computed = SYSTEM_PRIORITIES.get(class_name, 0)
    details = {"name": name, "kind": "pods"}
    if class_name and not computed:
        message = f'pods "{name}" is forbidden: no PriorityClass with name {class_name} was found'
        raise StatusError(403, "Forbidden", message, details)
    if spec.get("priority", computed) != computed:
        message = (
            f'pods "{name}" is forbidden: the integer value of priority ({spec["priority"]}) must not be provided in '
            f"pod spec; priority admission controller computed {computed} from the given PriorityClass name"
        )
        raise StatusError(403, "Forbidden", message, details)
    return computed


def _qos_class(spec: Json) -> str:
    resources = [container["resources"] for container in _containers(spec)]
    named = [
        {name: part[name] for name in ("cpu", "memory") if part.get(name) not in (None, "0")}
        for one in resources
        for part in (one.get("requests") or {}, one.get("limits") or {})
    ]
    if not any(named):
        return "BestEffort"
    pairs = zip(named[::2], named[1::2], strict=True)
    return "Guaranteed" if all(len(limits) == 2 and requests == limits for requests, limits in pairs) else "Burstable"


def _container_problems(container: Json, where: str, names: set[str]) -> list[Cause]:
    name = container.get("name") or ""
    if not name:
        causes = [required(f"{where}.name")]
    elif name in names:
        causes = [duplicate(f"{where}.name", name)]
    else:
        causes = label_problem(f"{where}.name", name)
    names.add(name)
    if not container.get("image"):
        causes.append(required(f"{where}.image"))
    resources = container.get("resources") or {}
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    for part, amounts in (("requests", requests), ("limits", limits)):
        causes += [
            invalid_value(f"{where}.resources.{part}[{key}]", value, "must be greater than or equal to 0")
            for key, value in amounts.items()
            if parse_quantity(str(value)) < 0
        ]
    for key, value in requests.items():
        if key in limits and parse_quantity(str(value)) > parse_quantity(str(limits[key])):
            detail = f"must be less than or equal to {key} limit of {limits[key]}"
            causes.append(invalid_value(f"{where}.resources.requests", str(value), detail))
    return causes


def _fixed(spec: Json) -> dict[str, Any]:
    """Return the part of a Pod's spec that no update changes."""
    fixed = {field: value for field, value in spec.items() if field not in _MAY_CHANGE}
    for part in ("initContainers", "containers"):
        if part in fixed:
            fixed[part] = [{**container, "image": ""} for container in fixed[part]]
    return fixed


def _nomination_problems(new: Json, old: Json) -> list[Cause]:
    nominated = new["status"].get("nominatedNodeName")
    if not nominated or nominated == old["status"].get("nominatedNodeName") or not old["spec"].get("nodeName"):
        return []
    return [forbidden("status.nominatedNodeName", "may not be set on pods that are already bound to a node")]


def _loses_tolerations(new: Json, old: Json) -> bool:
    kept = new.get("tolerations") or ()
    return any(toleration not in kept for toleration in old.get("tolerations") or ())
