"""What the server says about itself: version, health, discovery in both forms, and the start of an OpenAPI document.

The OpenAPI document names the resources and that PATCH takes `fieldValidation`: by that kubectl decides to leave the
validation of a file to the server. It has no schemas, so `kubectl explain` finds nothing. OpenAPI 2 isn't served: for a
file of kind List kubectl asks for it, and then says that `--validate=false` is needed; objects with `---` between them
are fine.
"""

from __future__ import annotations

import functools
import platform
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from scheduler.sim.apiserver.resources import BY_PREFIX, RESOURCES, Json, ServedResource

KUBERNETES_VERSION: Final = "1.37"
"""The release whose answers the contract suite compares with."""

_AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_JSON: Final = "application/json"
_TEXT: Final = "text/plain; charset=utf-8"
_HEALTH: Final = ("/healthz", "/livez", "/readyz")
_GROUPS: Final = tuple(sorted({one.group for one in RESOURCES if one.group}))


class DiscoveryPage(NamedTuple):
    body: bytes
    content_type: str


def discover(path: str, accept: str) -> DiscoveryPage | None:
    """Return the page at a path, None if there is none; `accept` decides between the two forms of discovery."""
    path = path.rstrip("/") or "/"
    if path in _HEALTH or path.startswith(tuple(f"{one}/" for one in _HEALTH)):
        return DiscoveryPage(b"ok", _TEXT)
    if path in ("/api", "/apis") and _wants_aggregated(accept):
        return DiscoveryPage(msgspec.json.encode(_aggregated(path)), _AGGREGATED)
    made = _PAGES.get(path)
    return None if made is None else DiscoveryPage(msgspec.json.encode(made()), _JSON)


def _wants_aggregated(accept: str) -> bool:
    first = accept.replace(" ", "").partition(",")[0]
    return {"g=apidiscovery.k8s.io", "v=v2", "as=APIGroupDiscoveryList"} <= set(first.split(";"))


def _version() -> Json:
    major, minor = KUBERNETES_VERSION.split(".")
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return {
        "major": major, "minor": minor, "gitVersion": f"v{KUBERNETES_VERSION}.0+vane", "gitCommit": "",
        "gitTreeState": "", "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "",
        "platform": f"{sys.platform}/{machine}",
    }  # fmt: skip


def _aggregated(path: str) -> Json:
    groups = ("",) if path == "/api" else _GROUPS
    items = [
        {"metadata": {"name": group} if group else {}, "versions": [_aggregated_version(group)]} for group in groups
    ]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _aggregated_version(group: str) -> Json:
    resources = [_aggregated_resource(one) for one in RESOURCES if one.group == group]
    return {"version": "v1", "resources": resources, "freshness": "Current"}


def _aggregated_resource(resource: ServedResource) -> Json:
    described: Json = {
        "resource": resource.plural,
        "responseKind": {"group": "", "version": "", "kind": resource.kind},
        "scope": "Namespaced" if resource.is_namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": resource.verbs,
    }
    if resource.short_names:
        described["shortNames"] = resource.short_names
    if resource.categories:
        described["categories"] = resource.categories
    if resource.subresources:
        described["subresources"] = [
            {
                "subresource": name,
                "responseKind": {"group": "", "version": "", "kind": _kind_of(resource, name)},
                "verbs": verbs,
            }
            for name, verbs in resource.subresources
        ]
    return described


def _kind_of(resource: ServedResource, subresource: str) -> str:
    return "Binding" if subresource == "binding" else resource.kind


def _core() -> Json:
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def _group(group: str) -> Json:
    version = {"groupVersion": f"{group}/v1", "version": "v1"}
    return {"name": group, "versions": [version], "preferredVersion": version}


def _group_page(group: str) -> Json:
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(group)}


def _groups() -> Json:
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(group) for group in _GROUPS]}


def _resources(prefix: str) -> Json:
    served = BY_PREFIX[prefix].values()
    resources: list[Json] = []
    for one in served:
        common = {"namespaced": one.is_namespaced}
        entry = {"name": one.plural, "singularName": one.singular, **common, "kind": one.kind, "verbs": one.verbs}
        lists = {"shortNames": one.short_names, "categories": one.categories}
        resources.append(entry | {field: names for field, names in lists.items() if names})
        for name, verbs in one.subresources:
            kind = _kind_of(one, name)
            resources.append(
                {"name": f"{one.plural}/{name}", "singularName": "", **common, "kind": kind, "verbs": verbs}
            )
    version = next(iter(served)).api_version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources}


def _openapi() -> Json:
    return {"paths": {prefix[1:]: {"serverRelativeURL": f"/openapi/v3{prefix}"} for prefix in BY_PREFIX}}


def _openapi_version(prefix: str) -> Json:
    paths: dict[str, Any] = {}
    for one in BY_PREFIX[prefix].values():
        where = f"{prefix}/namespaces/{{namespace}}" if one.is_namespaced else prefix
        paths[f"{where}/{one.plural}/{{name}}"] = {"patch": _openapi_patch(one.group, one.kind)}
    return {"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": KUBERNETES_VERSION}, "paths": paths}


def _openapi_patch(group: str, kind: str) -> Json:
    return {
        "parameters": [{"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}],
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": {"group": group, "version": "v1", "kind": kind},
    }


_PAGES: Final[Mapping[str, Callable[[], Json]]] = {
    "/version": _version,
    "/api": _core,
    "/apis": _groups,
    "/openapi/v3": _openapi,
    **{f"/apis/{group}": functools.partial(_group_page, group) for group in _GROUPS},
    **{prefix: functools.partial(_resources, prefix) for prefix in BY_PREFIX},
    **{f"/openapi/v3{prefix}": functools.partial(_openapi_version, prefix) for prefix in BY_PREFIX},
}
