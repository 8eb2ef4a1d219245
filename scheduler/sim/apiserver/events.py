"""Events: one kind of object that two API groups show with different names of its fields."""

from __future__ import annotations

from typing import Final

from scheduler.sim.apiserver.failures import Cause, invalid_value, required
from scheduler.sim.apiserver.kind import Kind
from scheduler.sim.apiserver.resources import Json, ServedResource

_NEW_NAMES: Final = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_OLD_NAMES: Final = {new: old for old, new in _NEW_NAMES.items()}
_ALWAYS: Final[Json] = {
    "involvedObject": {}, "source": {}, "firstTimestamp": None, "lastTimestamp": None, "eventTime": None,
    "reportingComponent": "", "reportingInstance": "",
}  # fmt: skip
_OMITTED_WHEN_EMPTY: Final = ("reportingController", "reportingInstance")
_REQUIRED: Final = ("reportingController", "reportingInstance", "action", "reason")
_NOTE_LIMIT_BYTES: Final = 1024
_FIXED: Final = ("involvedObject", "reason", "message", "type", "action", "reportingComponent", "related", "eventTime")


class EventKind(Kind):
    """Stored as core/v1 shows it; by that group nearly everything may be changed, by the newer one only a series."""

    creates_on_update = True

    def default(self, obj: Json) -> None:
        for field, value in _ALWAYS.items():
            if obj.get(field) is None:
                obj[field] = dict(value) if isinstance(value, dict) else value

    def problems(self, resource: ServedResource, obj: Json) -> list[Cause]:
        causes = [] if resource.group else _place_problems(obj)
        if obj.get("eventTime"):
            missing = [field for field in _REQUIRED if not obj.get(_OLD_NAMES.get(field, field))]
            causes += [required(field if resource.group else _OLD_NAMES.get(field, field)) for field in missing]
        elif resource.group:
            causes.append(required("eventTime"))
        type_, message = obj.get("type") or "", obj.get("message") or ""
        if resource.group and type_ not in ("Normal", "Warning"):
            causes.append(invalid_value("type", type_, f"has invalid value: {type_}"))
        if (resource.group or obj.get("eventTime")) and len(message.encode()) > _NOTE_LIMIT_BYTES:
            causes.append(invalid_value("message", "", f"can have at most {_NOTE_LIMIT_BYTES} characters"))
        return causes

    def update(self, resource: ServedResource, new: Json, old: Json, subresource: str) -> list[Cause]:
        del subresource
        self.default(new)
        if not resource.group:
            return _place_problems(new)
        return [
            invalid_value(field, new.get(field), "field is immutable")
            for field in _FIXED
            if new.get(field) != old.get(field)
        ]

    def to_stored(self, resource: ServedResource, obj: Json) -> Json:
        return {_OLD_NAMES.get(field, field): value for field, value in obj.items()} if resource.group else obj

    def from_stored(self, resource: ServedResource, obj: Json) -> Json:
        if not resource.group:
            return obj
        shown = {_NEW_NAMES.get(field, field): value for field, value in obj.items()}
        return {field: value for field, value in shown.items() if value != "" or field not in _OMITTED_WHEN_EMPTY}


def _place_problems(obj: Json) -> list[Cause]:
    """Return whether an Event stands where what it is about does; about what has no namespace, in `default`."""
    about = (obj.get("involvedObject") or {}).get("namespace") or ""
    if obj["metadata"].get("namespace") == (about or "default"):
        return []
    return [invalid_value("involvedObject.namespace", about, "does not match event.namespace")]
