"""`fieldValidation=Strict`, as kubectl asks: unknown fields are refused, by the models of the `kubernetes` package.

Without it this server keeps unknown fields and says nothing, where the real one drops them with a warning. It does not
look for them in patches.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from scheduler.sim.apiserver.failures import bad_request
from scheduler.sim.apiserver.resources import (
    EVENTS,
    EVENTS_K8S_IO,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    Json,
    ServedResource,
)

_MODELS: Final[Mapping[ServedResource, str]] = {
    EVENTS: "CoreV1Event",
    EVENTS_K8S_IO: "EventsV1Event",
    LEASES: "V1Lease",
    NAMESPACES: "V1Namespace",
    NODES: "V1Node",
    PODS: "V1Pod",
}
_INNER: Final = re.compile(r"^(?:List\[|Dict\[str, )(.*)\]$")


def check_fields(resource: ServedResource, obj: Json) -> None:
    """Raise StatusError 400 that names every field that is none of this kind's."""
    unknown = [f'unknown field "{field}"' for field in _unknown(_MODELS[resource], obj, "")]
    if unknown:
        raise bad_request(
            f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: strict decoding '
            f"error: {', '.join(unknown)}"
        )


def _unknown(type_: str, value: Any, where: str) -> Iterator[str]:
    inner = _INNER.match(type_)
    if inner is not None and isinstance(value, list):
        for i, element in enumerate(value):
            yield from _unknown(inner[1], element, f"{where}[{i}]")
    elif inner is not None and isinstance(value, dict):
        for key, element in value.items():
            yield from _unknown(inner[1], element, f"{where}.{key}")
    elif inner is None and isinstance(value, dict) and (model := _model(type_)) is not None:
        types = {model.attribute_map[name]: inner_type for name, inner_type in model.openapi_types.items()}
        for field, element in value.items():
            path = f"{where}.{field}" if where else field
            if field in types:
                yield from _unknown(types[field], element, path)
            else:
                yield path


def _model(name: str) -> Any:
    """Return a model by its name, None for plain types; the import takes half a second, so it waits for a need."""
    from kubernetes.client import models

    return getattr(models, name, None)
