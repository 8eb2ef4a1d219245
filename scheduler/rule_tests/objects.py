"""Nodes and Pods of a test file, in short forms: their fields in, objects through the real decoders out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from scheduler.errors import InvalidObjectError
from scheduler.model.labels import is_label_key, is_label_value
from scheduler.model.objects import Node, Pod, decode_node, decode_pod
from scheduler.model.pods import PodInfo
from scheduler.model.quantity import parse_quantity
from scheduler.model.structs import ObjectMeta
from scheduler.model.workloads import Namespace
from scheduler.rule_tests.model import PlacedPod
from scheduler.strict_yaml.fields import Fields, Shape, read_fields, read_list, read_mapping
from scheduler.strict_yaml.nodes import YamlNode, YamlScalar
from scheduler.strict_yaml.report import Scope, clip, got
from scheduler.strict_yaml.values import read_any_text, read_duration, read_text

NODE: Final = Shape(fields=("name", "labels", "allocatable", "addresses", "provider_id"), required=("name",))
_POD_FIELDS: Final = ("name", "namespace", "uid", "labels", "annotations", "requests")
POD: Final = Shape(fields=_POD_FIELDS)
PLACED_POD: Final = Shape(
    fields=(*_POD_FIELDS, "node", "placed", "started", "gone"),
    required=("name", "node"),
)
DEFAULT_ALLOCATABLE: Final = {"cpu": "4", "memory": "16Gi", "pods": "110"}
DEFAULT_NAMESPACE: Final = "default"
DEFAULT_NAME: Final = "pod"
LONG_AGO_S: Final = -86_400.0

_HOSTNAME: Final = "kubernetes.io/hostname"
_NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"


def read_node(item: YamlNode, scope: Scope) -> Node | None:
    """Return a node from its name alone or from fields; kubelet's own label and some room come by themselves."""
    if isinstance(item, YamlScalar):
        name = read_text(item, scope)
        return None if name is None else _node(item, scope, name, {})
    fields = read_fields(item, scope, NODE)
    if fields is None:
        return None
    name = read_text(fields.get("name"), scope.inner("name"))
    addresses = [
        {"type": "InternalIP", "address": text}
        for one in read_list(fields.get("addresses"), scope.inner("addresses"), "Write `[10.0.0.1]`") or ()
        if (text := read_text(one, scope.inner("addresses"))) is not None
    ]
    given = {
        "labels": _labels(fields.get("labels"), scope.inner("labels")),
        "allocatable": _amounts(fields.get("allocatable"), scope.inner("allocatable")),
        "addresses": addresses,
        "provider_id": read_text(fields.get("provider_id"), scope.inner("provider_id")) or "",
    }
    return None if name is None else _node(item, scope, name, given)


def read_namespaces(node: YamlNode | None, scope: Scope) -> tuple[Namespace, ...]:
    """Return Namespaces by their names, with their labels; the name is a label, as the API server adds it."""
    found = []
    mapping = read_mapping(node, scope, "Write `{shop: {team: web}}`, or drop the line")
    for key, value in mapping.entries if mapping else ():
        labels = _labels(value, scope.inner(clip(key.value)))
        if read_text(key, scope) is not None and labels is not None:
            labels = {_NAMESPACE_NAME: key.value, **labels}
            found.append(Namespace(metadata=ObjectMeta(name=key.value, labels=labels)))
    return tuple(found)


def no_pod() -> PodInfo:
    """Return the Pod that is looked at where the file says nothing of one: it asks for nothing."""
    return _pod({}, {}, {})


def read_pod(item: YamlNode | None, scope: Scope) -> PodInfo | None:
    fields = read_fields(item, scope, POD)
    return None if fields is None else _checked_pod(fields, {}, {})


def read_placed_pod(item: YamlNode, scope: Scope) -> PlacedPod | None:
    """Return a Pod on a node; without times it was placed, and ran, long before the start."""
    fields = read_fields(item, scope, PLACED_POD)
    if fields is None:
        return None
    node = read_text(fields.get("node"), scope.inner("node"))
    placed_s = read_duration(fields.get("placed"), scope.inner("placed"))
    placed_s = LONG_AGO_S if placed_s is None else placed_s
    gone_s = read_duration(fields.get("gone"), scope.inner("gone"))
    if gone_s is not None and gone_s <= placed_s:
        what = f"must be after it is placed, at {placed_s:g}s"
        scope.inner("gone").problem(fields.at("gone"), f"{what}. Write a later time")
    started_s = _started_s(fields, scope, placed_s)
    bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": _rfc3339(placed_s)}
    status: dict[str, Any] = {"conditions": [bound]}
    if started_s is not None:
        status |= {"phase": "Running", "startTime": _rfc3339(started_s)}
    pod = _checked_pod(fields, {"nodeName": node or ""}, status)
    return None if pod is None else PlacedPod(pod, placed_s, math.inf if gone_s is None else gone_s)


def _started_s(fields: Fields, scope: Scope, placed_s: float) -> float | None:
    """Return when its containers run, None for never."""
    node = fields.get("started")
    if isinstance(node, YamlScalar) and node.value == "never":
        return None
    started_s = read_duration(node, scope.inner("started"))
    if started_s is None:
        return placed_s
    if started_s < placed_s:
        what = f"must not be before it is placed, at {placed_s:g}s"
        scope.inner("started").problem(fields.at("started"), f"{what}. Write a later time, or `never`")
    return started_s


def _rfc3339(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).isoformat().replace("+00:00", "Z")


def _node(item: YamlNode, scope: Scope, name: str, given: Mapping[str, Any]) -> Node | None:
    raw = {
        "metadata": {"name": name, "labels": {_HOSTNAME: name, **(given.get("labels") or {})}},
        "spec": {"providerID": given.get("provider_id", "")},
        "status": {
            "allocatable": {**DEFAULT_ALLOCATABLE, **(given.get("allocatable") or {})},
            "addresses": given.get("addresses", []),
        },
    }
    node = decode_node(msgspec.json.encode(raw))
    if not isinstance(node, Node):
        scope.problem(item, f"not a node: {node.problem}. Write its fields as Kubernetes has them")
        return None
    return node


def _checked_pod(fields: Fields, spec: Mapping[str, Any], status: Mapping[str, Any]) -> PodInfo | None:
    scope = fields.scope
    found: dict[str, Any] = {
        name: read_text(fields.get(name), scope.inner(name)) for name in ("name", "namespace", "uid")
    }
    found["labels"] = _labels(fields.get("labels"), scope.inner("labels"))
    found["annotations"] = _texts(fields.get("annotations"), scope.inner("annotations"))
    found["requests"] = _amounts(fields.get("requests"), scope.inner("requests"))
    pod = _pod(found, spec, status)
    try:
        _ = pod.requests
    except InvalidObjectError as error:
        problem = str(error)
    else:
        problem = pod.usage.problem
    if problem:
        scope.problem(fields.node, f"not a Pod: {problem}")
        return None
    return pod


def _pod(found: Mapping[str, Any], spec: Mapping[str, Any], status: Mapping[str, Any]) -> PodInfo:
    name, namespace = found.get("name") or DEFAULT_NAME, found.get("namespace") or DEFAULT_NAMESPACE
    container = {"name": "main", "resources": {"requests": found.get("requests") or {}}}
    raw = {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": found.get("uid") or f"{namespace}/{name}",
            "labels": found.get("labels") or {},
            "annotations": found.get("annotations") or {},
        },
        "spec": {"containers": [container], "schedulerName": "vane", **spec},
        "status": dict(status),
    }
    pod = decode_pod(msgspec.json.encode(raw))
    if not isinstance(pod, Pod):
        raise InvalidObjectError(pod.problem)
    return PodInfo(pod)


def _labels(node: YamlNode | None, scope: Scope) -> dict[str, str]:
    labels: dict[str, str] = {}
    mapping = read_mapping(node, scope, "Write `{tier: web}`, or drop the line")
    for key, value in mapping.entries if mapping else ():
        text = read_any_text(value, scope.inner(clip(key.value)))
        if not is_label_key(key.value):
            scope.problem(key, f"not a label's key, {got(key)}. Write a name as Kubernetes allows it")
        elif text is not None and not is_label_value(text):
            scope.problem(value, f"not a label's value, {got(value)}. Write at most 63 letters, digits, `-`, `_`, `.`")
        elif text is not None:
            labels[key.value] = text
    return labels


def _texts(node: YamlNode | None, scope: Scope) -> dict[str, str]:
    mapping = read_mapping(node, scope, "Write `{key: value}`, or drop the line")
    entries = mapping.entries if mapping else ()
    found = {key.value: read_any_text(value, scope.inner(clip(key.value))) for key, value in entries}
    return {key: text for key, text in found.items() if text is not None}


def _amounts(node: YamlNode | None, scope: Scope) -> dict[str, str]:
    """Return resource quantities as written; a number without quotes is one too."""
    found: dict[str, str] = {}
    mapping = read_mapping(node, scope, "Write `{cpu: 500m, memory: 1Gi}`, or drop the line")
    for key, value in mapping.entries if mapping else ():
        text = value.value if isinstance(value, YamlScalar) else ""
        try:
            parse_quantity(text)
        except InvalidObjectError as error:
            scope.inner(clip(key.value)).problem(value, f"not a {error}")
            continue
        found[key.value] = text
    return found
