"""Field and label selectors of lists and watches."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from scheduler.sim.apiserver.failures import bad_request
from scheduler.sim.apiserver.resources import EVENTS, NAMESPACES, NODES, PODS, Json, ServedResource

Selector = Callable[[Json], bool]
"""Whether an object, as it is stored, is selected."""

_ABOUT: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_POD_FIELDS: Final = (
    "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
    "status.phase", "status.podIP", "status.nominatedNodeName",
)  # fmt: skip
_FIELDS: Final[Mapping[str, Mapping[str, str]]] = {
    NAMESPACES.stored_as: {"status.phase": "status.phase", "name": "metadata.name"},
    NODES.stored_as: {"spec.unschedulable": "spec.unschedulable"},
    PODS.stored_as: dict(zip(_POD_FIELDS, _POD_FIELDS, strict=True)),
    EVENTS.stored_as: {
        **{f"involvedObject.{field}": f"involvedObject.{field}" for field in _ABOUT},
        "reason": "reason", "type": "type", "reportingComponent": "reportingComponent", "source": "source.component",
    },
}  # fmt: skip
"""What can be selected by beside metadata, and where it stands in a stored object."""

_EVENT_FIELDS: Final[Mapping[str, str]] = {
    **{f"regarding.{field}": f"involvedObject.{field}" for field in _ABOUT},
    "reason": "reason", "type": "type", "reportingController": "reportingComponent",
}  # fmt: skip

_REQUIREMENT: Final = re.compile(
    r"\s*(?:(?P<absent>!)\s*(?P<no>[\w./-]+)"
    r"|(?P<key>[\w./-]+)\s*(?:(?P<op>==|=|!=|>|<)\s*(?P<value>[\w.-]*)"
    r"|(?P<set>in|notin)\s*\((?P<values>[^()]*)\))?)\s*(?:,|$)"
)


def everything(_: Json) -> bool:
    return True


def field_selector(resource: ServedResource, text: str) -> Selector:
    """Return the selector written as `spec.nodeName=n1,status.phase!=Failed`; raise StatusError 400 for no such."""
    fields = dict(_EVENT_FIELDS if resource.stored_as == EVENTS.stored_as and resource.group else {})
    if not fields:
        fields = dict(_FIELDS.get(resource.stored_as, {}))
    fields["metadata.name"] = "metadata.name"
    if resource.is_namespaced:
        fields["metadata.namespace"] = "metadata.namespace"
    terms: list[tuple[list[str], str, bool]] = []
    for term in filter(None, text.split(",")):
        match = re.fullmatch(r"([^=!]+)(==|=|!=)(.*)", term)
        if match is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
        name, operator, value = match.groups()
        if name not in fields:
            raise bad_request(f"field label not supported: {name}")
        terms.append((fields[name].split("."), value, operator != "!="))
    if not terms:
        return everything
    return lambda obj: all((_text(obj, path) == value) is is_equal for path, value, is_equal in terms)


def label_selector(text: str) -> Selector:
    """Return the selector written as `a=b,c!=d,e in (f,g),!h`; raise StatusError 400 for what is none."""
    requirements: list[Callable[[Mapping[str, str]], bool]] = []
    at = 0
    while at < len(text):
        match = _REQUIREMENT.match(text, at)
        if match is None or match.end() == at:
            raise bad_request(f"unable to parse requirement: {text[at:]!r}")
        requirements.append(_requirement(match))
        at = match.end()
    if not requirements:
        return everything
    return lambda obj: all(holds(obj["metadata"].get("labels") or {}) for holds in requirements)


def both(first: Selector, second: Selector) -> Selector:
    if first is everything:
        return second
    return first if second is everything else lambda obj: first(obj) and second(obj)


def _requirement(match: re.Match[str]) -> Callable[[Mapping[str, str]], bool]:
    if match["absent"]:
        absent = match["no"]
        return lambda labels: absent not in labels
    key, operator, value = match["key"], match["op"] or match["set"], match["value"] or ""
    match operator:
        case None:
            return lambda labels: key in labels
        case "=" | "==":
            return lambda labels: labels.get(key) == value
        case "!=":
            return lambda labels: labels.get(key) != value
        case "in" | "notin":
            values = {one.strip() for one in match["values"].split(",")}
            is_in = operator == "in"
            return lambda labels: (labels[key] in values) is is_in if key in labels else not is_in
        case _:
            return _comparison(key, operator, value)


def _comparison(key: str, operator: str, value: str) -> Callable[[Mapping[str, str]], bool]:
    if re.fullmatch(r"-?\d+", value) is None:
        raise bad_request(
            f"values[0][{key}]: Invalid value: {value!r}: for 'Gt', 'Lt' operators, the value must be an integer"
        )
    limit = int(value)

    def holds(labels: Mapping[str, str]) -> bool:
        text = labels.get(key, "")
        if re.fullmatch(r"-?\d+", text) is None:
            return False
        return int(text) > limit if operator == ">" else int(text) < limit

    return holds


def _text(obj: Json, path: list[str]) -> str:
    value: Any = obj
    for field in path:
        value = value.get(field) if isinstance(value, dict) else None
    if path == ["source", "component"] and not value:
        value = obj.get("reportingComponent")
    if isinstance(value, bool) or path[-1] in ("unschedulable", "hostNetwork"):
        return "true" if value else "false"
    return "" if value is None else str(value)
