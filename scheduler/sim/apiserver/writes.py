"""Creates, updates, patches, deletes and bindings, from bodies as they come over HTTP."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import yaml

from scheduler.sim.apiserver.failures import StatusError, bad_request
from scheduler.sim.apiserver.kinds import kind_of
from scheduler.sim.apiserver.resources import PODS, Json, ServedResource
from scheduler.sim.apiserver.store import ObjectStore
from scheduler.sim.apiserver.strict import check_fields
from scheduler.sim.apiserver.target import RequestQuery, Target

MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"
_YAML: Final = "application/yaml"
_JSON: Final = ("application/json", "application/octet-stream", "text/json")
"""aiohttp says octet-stream where a request has no Content-Type."""


def write(
    store: ObjectStore, verb: str, target: Target, query: RequestQuery, body: bytes, content_type: str
) -> tuple[int, Json]:
    """Carry a writing request out, and return the status code and the answer.

    Raises
    ------
    StatusError
        It cannot be, or is not served: dry runs are refused.
    """
    if query.text("dryRun"):
        raise bad_request(f"dryRun={query.text('dryRun')} is not supported by the embedded API server; leave it out")
    match verb:
        case "create" if target.subresource == "binding":
            return 201, _bind(store, target, _read_body(body, content_type))
        case "create":
            obj = _read_object(target.resource, body, content_type, query)
            return 201, store.create(target.resource, obj, target.namespace)
        case "update":
            return _update(store, target, _read_object(target.resource, body, content_type, query))
        case "patch":
            return 200, _patch(store, target, body, content_type)
        case "delete":
            return 200, _delete(store, target, _options(query, body, content_type))
        case _:
            return 200, _delete_all(store, target, query, _options(query, body, content_type))


def _update(store: ObjectStore, target: Target, obj: Json) -> tuple[int, Json]:
    resource, metadata = target.resource, obj.setdefault("metadata", {})
    name = metadata.setdefault("name", target.name)
    if name != target.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({target.name})")
    if resource.is_namespaced and metadata.setdefault("namespace", target.namespace) != target.namespace:
        raise bad_request(
            f"the namespace of the object ({metadata['namespace']}) does not match the namespace on the URL "
            f"({target.namespace})"
        )
    key = (target.namespace, target.name)
    if kind_of(resource).creates_on_update and key not in store.history(resource).objects:
        return 201, store.create(resource, obj, target.namespace)
    return 200, store.update(resource, obj, target.subresource)


def _patch(store: ObjectStore, target: Target, body: bytes, content_type: str) -> Json:
    if content_type not in (MERGE_PATCH, STRATEGIC_MERGE_PATCH):
        message = (
            f"415: Unsupported Media Type: the embedded API server takes patches as {MERGE_PATCH} and "
            f"{STRATEGIC_MERGE_PATCH}, got {content_type}"
        )
        raise StatusError(415, "UnsupportedMediaType", message, {})
    patch = _read_body(body, "application/json")

    return store.patch(
        target.resource,
        target.namespace,
        target.name,
        patch,
        subresource=target.subresource,
        is_strategic=content_type == STRATEGIC_MERGE_PATCH,
    )


def _bind(store: ObjectStore, target: Target, body: Json) -> Json:
    metadata, node = body.get("metadata") or {}, (body.get("target") or {}).get("name") or ""
    store.stored(PODS, target.namespace, target.name)
    if metadata.get("name", target.name) not in ("", target.name):
        raise bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL ({target.name})"
        )
    if not node:
        raise StatusError(500, "", "target.name: Required value")
    store.bind(target.namespace, target.name, node, metadata.get("uid") or "", metadata.get("annotations"))
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def _delete(store: ObjectStore, target: Target, options: Json) -> Json:
    resource = target.resource
    preconditions = options.get("preconditions") or {}
    last = store.delete(
        resource,
        target.namespace,
        target.name,
        uid=preconditions.get("uid") or "",
        version=preconditions.get("resourceVersion") or "",
        grace_s=options.get("gracePeriodSeconds"),
    )
    if kind_of(resource).is_returned_when_deleted:
        return last
    details = {"name": target.name, "kind": resource.plural, "uid": last["metadata"]["uid"]}
    if resource.group:
        details["group"] = resource.group
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def _delete_all(store: ObjectStore, target: Target, query: RequestQuery, options: Json) -> Json:
    resource, select = target.resource, query.selector(target.resource)
    found = [
        key
        for key, stored in store.history(resource).sorted()
        if target.namespace in ("", key[0]) and select(stored.object)
    ]
    items = [
        store.delete(resource, namespace, name, grace_s=options.get("gracePeriodSeconds")) for namespace, name in found
    ]
    metadata = {"resourceVersion": str(store.version)}
    return {"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": metadata, "items": items}


def _options(query: RequestQuery, body: bytes, content_type: str) -> Json:
    """Return DeleteOptions, from the body and from the query."""
    options = _read_body(body, content_type) if body.strip() else {}
    grace_s = query.number("gracePeriodSeconds")
    return options if grace_s is None else {**options, "gracePeriodSeconds": grace_s}


def _read_object(resource: ServedResource, body: bytes, content_type: str, query: RequestQuery) -> Json:
    obj = _read_body(body, content_type)
    kind, version = obj.get("kind", resource.kind), obj.get("apiVersion", resource.api_version)
    if (kind, version) != (resource.kind, resource.api_version):
        raise bad_request(
            f'{kind} in version "{version}" cannot be handled as a {resource.kind}: write kind {resource.kind}, '
            f"apiVersion {resource.api_version}"
        )
    if query.text("fieldValidation") == "Strict":
        check_fields(resource, obj)
    return obj


def _read_body(body: bytes, content_type: str) -> Json:
    if content_type == _YAML:
        try:
            found: Any = yaml.safe_load(body)
        except yaml.YAMLError as error:
            raise bad_request(f"the object provided is unrecognized: yaml parse error: {error}") from error
    elif content_type in _JSON:
        try:
            found = msgspec.json.decode(body)
        except msgspec.DecodeError as error:
            raise bad_request(f"the object provided is unrecognized: json parse error: {error}") from error
    else:
        message = (
            f"415: Unsupported Media Type: write application/json or {_YAML}, got {content_type} "
            "(kubectl create -f FILE sends JSON)"
        )
        raise StatusError(415, "UnsupportedMediaType", message, {})
    if not isinstance(found, dict):
        raise bad_request(f"the object provided is unrecognized: got {type(found).__name__}, write an object")
    return found
