"""The request bodies that are written to the API server: bindings, Events and conditions of Pods.

Pure functions; every field is kube-scheduler 1.37's (client-go tools/events, pkg/scheduler/schedule_one.go).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from scheduler.kube.binder.messages import (
    BindRequest,
    EventRequest,
    EvictRequest,
    FailureReport,
    PatchRequest,
    PodRef,
)

NOTE_LIMIT_BYTES = 1024
REPORTING_INSTANCE_LIMIT = 128

_NAME_LIMIT = 253
_DNS_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")

JsonObject = dict[str, Any]


def binding(request: BindRequest, pod: PodRef) -> JsonObject:
    """Return the body of a POST to pods/binding; the UID keeps a recreated Pod of the same name unbound.

    The API server puts the annotations on the Pod in the same write.
    """
    metadata: JsonObject = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}
    if request.annotations:
        metadata["annotations"] = request.annotations
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": metadata,
        "target": {"apiVersion": "v1", "kind": "Node", "name": request.node_name},
    }


def scheduled_event(request: BindRequest) -> EventRequest:
    pod = request.pod
    there = f" in cluster {request.cluster}" if request.cluster else ""
    return EventRequest(
        pod=pod,
        scheduler_name=request.scheduler_name,
        type="Normal",
        reason="Scheduled",
        action="Binding",
        note=f"Successfully assigned {pod.namespace}/{pod.name} to {request.node_name}{there}",
    )


def failed_scheduling_event(report: FailureReport) -> EventRequest:
    return EventRequest(
        pod=report.pod,
        scheduler_name=report.scheduler_name,
        type="Warning",
        reason="FailedScheduling",
        action="Scheduling",
        note=truncate_note(report.message),
    )


def event(request: EventRequest, hostname: str, now_ns: int, unique: Callable[[], str]) -> JsonObject:
    """Return an events.k8s.io/v1 Event.

    Parameters
    ----------
    now_ns
        Nanoseconds since 1970; the Event's time (cut to microseconds) and the end of its name.
    unique
        Makes a name where Pod name and time are too long for one.
    """
    body: JsonObject = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {
            "name": event_name(request.pod.name, now_ns, unique),
            "namespace": request.pod.namespace,
        },
        "eventTime": micro_time(now_ns),
        "reportingController": request.scheduler_name,
        "reportingInstance": reporting_instance(request.scheduler_name, hostname),
        "action": request.action,
        "reason": request.reason,
        "regarding": reference(request.pod),
        "note": truncate_note(request.note),
        "type": request.type,
    }
    if request.related is not None:
        body["related"] = reference(request.related)
    return body


def series(count: int, last_observed_ns: int) -> JsonObject:
    """Return the patch that makes an Event one of a series."""
    return {"series": {"count": count, "lastObservedTime": micro_time(last_observed_ns)}}


def reference(pod: PodRef) -> JsonObject:
    body = {"kind": "Pod", "namespace": pod.namespace, "name": pod.name, "uid": pod.uid, "apiVersion": "v1"}
    if pod.resource_version:
        body["resourceVersion"] = pod.resource_version
    return body


def condition_patch(report: FailureReport, now_ns: int) -> JsonObject | None:
    """Return the strategic merge patch of pods/status, None if it would change nothing.

    The transition time is sent only where the status changes, as podutil.UpdatePodCondition has it; a changed
    generation alone is no reason to write. The UID makes it fail for a recreated Pod of the same name.
    """
    status: JsonObject = {}
    if (report.current_status, report.current_reason, report.current_message) != (
        "False",
        report.reason,
        report.message,
    ):
        status["conditions"] = [_condition(report, now_ns)]
    if report.nominated_node_name is not None:
        status["nominatedNodeName"] = report.nominated_node_name or None
    if not status:
        return None
    return {"metadata": {"uid": report.pod.uid}, "status": status}


def disruption_patch(request: EvictRequest, now_ns: int) -> JsonObject:
    """Return the strategic merge patch of pods/status that says why a Pod will be deleted; the UID as above."""
    condition: JsonObject = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": f"{request.scheduler_name}: preempting to accommodate a higher priority pod",
        "lastProbeTime": None,
    }
    if request.generation:
        condition["observedGeneration"] = request.generation
    if not request.is_marked:
        condition["lastTransitionTime"] = second_time(now_ns)
    return {"metadata": {"uid": request.pod.uid}, "status": {"conditions": [condition]}}


def deletion(pod: PodRef) -> JsonObject:
    """Return the body of a DELETE that a recreated Pod of the same name survives; its grace period is the Pod's."""
    return {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": pod.uid}}


def preempted_event(request: EvictRequest, suffix: str = "") -> EventRequest:
    return EventRequest(
        pod=request.pod,
        scheduler_name=request.scheduler_name,
        type="Normal",
        reason="Preempted",
        action="Preempting",
        note=f"Preempted by pod {request.preemptor.uid} on node {request.node_name}{suffix}",
        related=request.preemptor,
    )


def pod_patch(request: PatchRequest) -> JsonObject:
    """Return the strategic merge patch of pods/status for a plugin's patch; the UID as in `condition_patch`."""
    body: JsonObject = {"metadata": {"uid": request.pod.uid}}
    if request.annotations:
        body["metadata"]["annotations"] = request.annotations
    if request.nominated_node_name is not None:
        body["status"] = {"nominatedNodeName": request.nominated_node_name or None}
    return body


def _condition(report: FailureReport, now_ns: int) -> JsonObject:
    condition: JsonObject = {
        "type": "PodScheduled",
        "status": "False",
        "reason": report.reason,
        "message": report.message,
        "lastProbeTime": None,
    }
    if report.generation:
        condition["observedGeneration"] = report.generation
    if report.current_status != "False":
        condition["lastTransitionTime"] = second_time(now_ns)
    return condition


def truncate_note(note: str) -> str:
    """Cut a note to the API's 1024 bytes, ending in ` ...`, never within a character."""
    encoded = note.encode()
    if len(encoded) <= NOTE_LIMIT_BYTES:
        return note
    suffix = " ..."
    return encoded[: NOTE_LIMIT_BYTES - len(suffix)].decode(errors="ignore") + suffix


def event_name(pod_name: str, now_ns: int, unique: Callable[[], str]) -> str:
    name = f"{pod_name}.{now_ns:x}"
    return name if len(name) <= _NAME_LIMIT and _DNS_SUBDOMAIN.fullmatch(name) else unique()


def reporting_instance(scheduler_name: str, hostname: str) -> str:
    return f"{scheduler_name}-{hostname}"[:REPORTING_INSTANCE_LIMIT]


def micro_time(ns: int) -> str:
    """Return the API's MicroTime: RFC 3339 in UTC with six decimals."""
    whole, rest = divmod(ns, 1_000_000_000)
    return f"{datetime.fromtimestamp(whole, UTC):%Y-%m-%dT%H:%M:%S}.{rest // 1000:06d}Z"


def second_time(ns: int) -> str:
    """Return the API's Time: RFC 3339 in UTC, whole seconds."""
    return f"{datetime.fromtimestamp(ns // 1_000_000_000, UTC):%Y-%m-%dT%H:%M:%SZ}"
