"""What a request is about: its path and query, taken apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from scheduler.sim.apiserver.failures import StatusError, bad_request
from scheduler.sim.apiserver.resources import BY_PREFIX, NAMESPACES, ServedResource
from scheduler.sim.apiserver.selectors import Selector, both, field_selector, label_selector

_TRUE: Final = ("1", "t", "T", "true", "TRUE", "True")
_FALSE: Final = ("", "0", "f", "F", "false", "FALSE", "False")
_VERBS: Final = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@dataclass(frozen=True, slots=True)
class Target:
    """A resource, and of it one namespace ("" all), one object ("" all), one subresource ("" itself)."""

    resource: ServedResource
    namespace: str
    name: str
    subresource: str


@dataclass(frozen=True, slots=True)
class RequestQuery:
    """The query of a request, its values read; raises StatusError 400 for what cannot be read."""

    values: Mapping[str, str]

    def text(self, name: str) -> str:
        return self.values.get(name, "")

    def flag(self, name: str) -> bool:
        value = self.text(name)
        if value not in _TRUE + _FALSE:
            raise bad_request(f'strconv.ParseBool: parsing "{value}": invalid syntax')
        return value in _TRUE

    def number(self, name: str) -> int | None:
        """Return a whole number, None where none is given."""
        value = self.text(name)
        if not value:
            return None
        try:
            return int(value)
        except ValueError:
            raise bad_request(f'strconv.ParseInt: parsing "{value}": invalid syntax') from None

    def version(self) -> int | None:
        """Return the resourceVersion, None where none is given."""
        value = self.text("resourceVersion")
        if value and not value.isdecimal():
            text = f'resourceVersion: Invalid value: "{value}": strconv.ParseUint: parsing "{value}": invalid syntax'
            raise StatusError(500, "", text)
        return int(value) if value else None

    def selector(self, resource: ServedResource) -> Selector:
        """Return what both selectors of a list or watch select together."""
        fields = field_selector(resource, self.text("fieldSelector"))
        return both(fields, label_selector(self.text("labelSelector")))


def find_target(path: str) -> Target | None:
    """Return what a path is about, None for a path of discovery, health or nothing at all.

    Raises
    ------
    StatusError
        404: a group, version, resource or subresource that isn't served.
    """
    parts = [part for part in path.split("/") if part]
    n_prefix = 2 if parts[:1] == ["api"] else 3
    if parts[:1] not in (["api"], ["apis"]) or len(parts) <= n_prefix:
        return None
    resources = BY_PREFIX.get("/" + "/".join(parts[:n_prefix]))
    rest = parts[n_prefix:]
    if resources is None or rest[0] == "watch":
        raise not_served(path)
    namespace = ""
    if rest[0] == NAMESPACES.plural and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    resource = resources.get(rest[0])
    if resource is None or len(rest) > 3 or bool(namespace) > resource.is_namespaced:
        raise not_served(path)
    name, subresource = [*rest[1:], "", ""][:2]
    if name and resource.is_namespaced and not namespace:
        raise not_served(path)
    if subresource and subresource not in dict(resource.subresources):
        raise not_served(path)
    return Target(resource, namespace, name, subresource)


def verb_of(method: str, target: Target, query: RequestQuery) -> str:
    """Return the verb of a request, as discovery names verbs.

    Raises
    ------
    StatusError
        405: the verb isn't served there.
    """
    verb = _VERBS.get(method, "no verb")
    if not target.name:
        verb = {"get": "watch" if query.flag("watch") else "list", "delete": "deletecollection"}.get(verb, verb)
    is_place_wrong = verb == "create" and target.name and target.subresource != "binding"
    is_everywhere = target.resource.is_namespaced and not target.namespace and verb not in ("list", "watch")
    is_single = verb in ("update", "patch") and not target.name
    if is_place_wrong or is_everywhere or is_single or not target.resource.allows(verb, target.subresource):
        asked = "/".join(filter(None, (target.resource.qualified, target.subresource)))
        message = f"the server does not allow this method on the requested resource: {method} ({verb}) of {asked}"
        raise StatusError(405, "MethodNotAllowed", message, {})
    return verb


def not_served(path: str) -> StatusError:
    message = f"the server could not find the requested resource: {path} is not served by the embedded API server"
    return StatusError(404, "NotFound", message, {})
