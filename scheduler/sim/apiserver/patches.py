"""JSON merge patches (RFC 7386) and Kubernetes' strategic merge patches, whose lists merge by key.

Of the strategic directives, `$patch: delete`, `$patch: replace`, `$retainKeys`, `$setElementOrder` (without effect on
the order) and `$deleteFromPrimitiveList` are known; another one is refused.
"""

from __future__ import annotations

import copy
from typing import Any, Final

from scheduler.sim.apiserver.failures import bad_request
from scheduler.sim.apiserver.resources import Json

MERGE_KEYS: Final = {
    "addresses": "type",
    "conditions": "type",
    "containers": "name",
    "env": "name",
    "ephemeralContainers": "name",
    "hostAliases": "ip",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ownerReferences": "uid",
    "podIPs": "ip",
    "ports": "containerPort",
    "resourceClaims": "name",
    "schedulingGates": "name",
    "topologySpreadConstraints": "topologyKey",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
"""Lists of objects that merge, by field, and what their elements are told apart by; other lists are replaced."""

_PRIMITIVE_LISTS: Final = ("finalizers", "podCIDRs", "volumesInUse")
"""Lists of plain values to which a patch adds."""

_DELETE_PRIMITIVES: Final = "$deleteFromPrimitiveList/"
_ORDER: Final = "$setElementOrder/"


def apply_patch(obj: Json, patch: Json, is_strategic: bool) -> Json:
    """Return the object changed by the patch; raise StatusError 400 for a directive that is not known."""
    return _strategic(obj, patch) if is_strategic else _merge(obj, patch)


def _merge(old: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    merged = dict(old) if isinstance(old, dict) else {}
    for field, value in patch.items():
        if value is None:
            merged.pop(field, None)
        else:
            merged[field] = _merge(merged.get(field), value)
    return merged


def _strategic(old: Json, patch: Json) -> Json:
    match patch.get("$patch"):
        case None | "merge":
            merged = dict(old)
        case "replace":
            merged = {}
        case "delete":
            return {}
        case other:
            raise bad_request(f"$patch: {other!r} is not known; write merge, replace or delete")
    if "$retainKeys" in patch:
        merged = {field: value for field, value in merged.items() if field in patch["$retainKeys"]}
    for field, value in patch.items():
        if field.startswith("$"):
            _directive(merged, field, value)
        elif value is None:
            merged.pop(field, None)
        else:
            merged[field] = _field(field, merged.get(field), value)
    return merged


def _directive(merged: Json, field: str, value: Any) -> None:
    if field.startswith(_DELETE_PRIMITIVES):
        name = field.removeprefix(_DELETE_PRIMITIVES)
        merged[name] = [one for one in merged.get(name) or () if one not in value]
    elif field not in ("$patch", "$retainKeys") and not field.startswith(_ORDER):
        raise bad_request(f"the strategic merge patch's directive {field} is not known")


def _field(field: str, old: Any, value: Any) -> Any:
    if isinstance(value, dict):
        return _strategic(old if isinstance(old, dict) else {}, value)
    if not isinstance(value, list):
        return value
    before = old if isinstance(old, list) else []
    if field in MERGE_KEYS:
        return _list(before, value, MERGE_KEYS[field])
    if field in _PRIMITIVE_LISTS:
        return before + [one for one in value if one not in before]
    return copy.deepcopy(value)


def _list(old: list[Any], patch: list[Any], key: str) -> list[Any]:
    merged = [] if any(isinstance(one, dict) and one.get("$patch") == "replace" for one in patch) else list(old)
    for element in patch:
        if not isinstance(element, dict):
            raise bad_request(f"an element of a list that merges by {key} must be an object, got {element!r}")
        if element.get("$patch") == "replace":
            continue
        if key not in element:
            raise bad_request(f"map: {element} does not contain declared merge key: {key}")
        at = next((i for i, one in enumerate(merged) if one.get(key) == element[key]), None)
        if element.get("$patch") == "delete":
            merged = [one for one in merged if one.get(key) != element[key]]
        elif at is None:
            merged.append(_strategic({}, element))
        else:
            merged[at] = _strategic(merged[at], element)
    return merged
