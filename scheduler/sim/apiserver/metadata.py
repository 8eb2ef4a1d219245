"""What holds for the metadata of every kind of object: names, what the server fills in, what may not change."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime
from typing import Final

from scheduler.sim.apiserver.failures import Cause, bad_request, invalid_value, required
from scheduler.sim.apiserver.resources import Json, ServedResource

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED: Final = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_SUBDOMAIN_TEXT: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9]"
    r")?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_TEXT: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_QUALIFIED_TEXT: Final = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_SUFFIX_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH: Final = 5


def time_text(now: float) -> str:
    """Return seconds since 1970 as the API's Time: RFC 3339 in UTC, whole seconds."""
    return f"{datetime.fromtimestamp(int(now), UTC):%Y-%m-%dT%H:%M:%SZ}"


def seconds_of(text: str) -> float:
    """Return the seconds since 1970 of an API Time or MicroTime; raise ValueError for anything else."""
    return datetime.fromisoformat(text).timestamp()


def label_problem(field: str, value: str) -> list[Cause]:
    """Return what is wrong with a name that must be a DNS label, such as a container's."""
    if len(value) <= 63 and re.fullmatch(_LABEL, value):
        return []
    return [invalid_value(field, value, _LABEL_TEXT)]


def fill(resource: ServedResource, obj: Json, namespace: str, now: float, uid: str) -> None:
    """Give a new object what the server decides; `namespace` is that of the request.

    A generated name's suffix comes from the uid, so that a run can be repeated.

    Raises
    ------
    StatusError
        400: the object names another namespace.
    """
    metadata = obj["metadata"]
    if resource.is_namespaced:
        if metadata.get("namespace", namespace) not in (namespace, ""):
            raise bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )  # fmt: skip
        metadata["namespace"] = namespace
    else:
        metadata.pop("namespace", None)
    if not metadata.get("name") and metadata.get("generateName"):
        number = int.from_bytes(hashlib.sha256(uid.encode()).digest()[:8])
        suffix = ""
        for _ in range(_SUFFIX_LENGTH):
            number, index = divmod(number, len(_SUFFIX_ALPHABET))
            suffix += _SUFFIX_ALPHABET[index]
        metadata["name"] = metadata["generateName"] + suffix
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds", "managedFields", "generation", "selfLink"):
        metadata.pop(field, None)
    metadata |= {"uid": uid, "creationTimestamp": time_text(now)}
    _drop_empty(metadata)


def problems(resource: ServedResource, obj: Json) -> list[Cause]:
    """Return what is wrong with the metadata of any kind of object."""
    metadata = obj["metadata"]
    name = metadata.get("name") or ""
    if not name:
        causes = [required("metadata.name", "name or generateName is required")]
    elif resource.plural == "namespaces":
        causes = label_problem("metadata.name", name)
    elif len(name) > 253 or not re.fullmatch(_SUBDOMAIN, name):
        causes = [invalid_value("metadata.name", name, _SUBDOMAIN_TEXT)]
    else:
        causes = []
    for field in ("labels", "annotations"):
        for key in metadata.get(field) or {}:
            prefix, slash, last = key.rpartition("/")
            if len(last) > 63 or not re.fullmatch(_QUALIFIED, last):
                causes.append(invalid_value(f"metadata.{field}", key, _QUALIFIED_TEXT))
            elif slash and not re.fullmatch(_SUBDOMAIN, prefix):
                causes.append(invalid_value(f"metadata.{field}", key, f"prefix part {_SUBDOMAIN_TEXT}"))
    return causes


def keep(new: Json, old: Json) -> list[Cause]:
    """Put back what no update changes, and return what it must not try to."""
    before, after = old["metadata"], new["metadata"]
    if after.get("uid", before["uid"]) not in (before["uid"], ""):
        return [invalid_value("metadata.uid", after["uid"], "field is immutable")]
    after.pop("managedFields", None)
    after.pop("selfLink", None)
    kept = ("name", "namespace", "uid", "creationTimestamp", "generation", "generateName")
    for field in (*kept, "deletionTimestamp", "deletionGracePeriodSeconds"):
        if field in before:
            after[field] = before[field]
        else:
            after.pop(field, None)
    _drop_empty(after)
    return []


def _drop_empty(metadata: Json) -> None:
    for field in ("labels", "annotations", "finalizers", "ownerReferences"):
        if not metadata.get(field):
            metadata.pop(field, None)
