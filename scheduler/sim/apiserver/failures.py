"""What is answered when a request fails: Kubernetes Status objects, worded as kube-apiserver words them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from scheduler.errors import VaneError
from scheduler.sim.apiserver.resources import Json, ServedResource


class StatusError(VaneError):
    """A request that fails, with the Status that says why; the store raises no other error."""

    def __init__(self, code: int, reason: str, message: str, details: Json | None = None) -> None:
        self.code = code
        self.reason = reason
        self.status: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        self.status["message"] = message
        if reason:
            self.status["reason"] = reason
        if details is not None:
            self.status["details"] = details
        self.status["code"] = code
        super().__init__(f"{code} {reason}: {message}")


class Cause(NamedTuple):
    """One thing wrong with an object: `reason` such as FieldValueRequired, `message`, and the field's path."""

    reason: str
    message: str
    field: str


def required(field: str, detail: str = "") -> Cause:
    return Cause("FieldValueRequired", f"Required value{': ' if detail else ''}{detail}", field)


def invalid_value(field: str, value: object, detail: str) -> Cause:
    shown = f'"{value}"' if isinstance(value, str) else str(value)
    return Cause("FieldValueInvalid", f"Invalid value: {shown}: {detail}", field)


def forbidden(field: str, detail: str) -> Cause:
    return Cause("FieldValueForbidden", f"Forbidden: {detail}", field)


def not_supported(field: str, value: str, supported: Sequence[str]) -> Cause:
    listed = ", ".join(f'"{one}"' for one in supported)
    return Cause("FieldValueNotSupported", f'Unsupported value: "{value}": supported values: {listed}', field)


def duplicate(field: str, value: str) -> Cause:
    return Cause("FieldValueDuplicate", f'Duplicate value: "{value}"', field)


def not_found(resource: ServedResource, name: str) -> StatusError:
    return StatusError(404, "NotFound", f'{resource.qualified} "{name}" not found', _details(resource, name))


def already_exists(resource: ServedResource, name: str) -> StatusError:
    message = f'{resource.qualified} "{name}" already exists'
    return StatusError(409, "AlreadyExists", message, _details(resource, name))


def conflict(resource: ServedResource, name: str, why: str = "", subresource: str = "") -> StatusError:
    """Return the answer to a write that rests on what is no longer so."""
    why = why or "the object has been modified; please apply your changes to the latest version and try again"
    suffix = f"/{subresource}" if subresource else ""
    where = f"{resource.plural}{suffix}{'.' if resource.group else ''}{resource.group}"
    details = {**_details(resource, name), "kind": f"{resource.plural}{suffix}"}
    return StatusError(409, "Conflict", f'Operation cannot be fulfilled on {where} "{name}": {why}', details)


def invalid(resource: ServedResource, name: str, causes: Sequence[Cause]) -> StatusError:
    """Return the answer to an object that cannot be; `causes` has at least one."""
    texts = [f"{cause.field}: {cause.message}" for cause in causes]
    text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    # An Event is core's, whichever group it came by.
    group = "" if resource.storage else resource.group
    kind = f"{resource.kind}.{group}" if group else resource.kind
    details: Json = {"name": name} if name else {}
    if group:
        details["group"] = group
    details |= {"kind": resource.kind, "causes": [cause._asdict() for cause in causes]}
    return StatusError(422, "Invalid", f'{kind} "{name}" is invalid: {text}', details)


def bad_request(message: str) -> StatusError:
    return StatusError(400, "BadRequest", message)


def expired(message: str) -> StatusError:
    return StatusError(410, "Expired", message)


def _details(resource: ServedResource, name: str) -> Json:
    details = {"name": name}
    if resource.group:
        details["group"] = resource.group
    return {**details, "kind": resource.plural}
