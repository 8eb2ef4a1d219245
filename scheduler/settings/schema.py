"""The JSON schema of the configuration file, made by pydantic from the models that read it.

To add a setting: write it into its model. What pydantic can't know of a value (a duration, an address) stands beside
the kind of value, in `values`.
"""

from __future__ import annotations

from typing import Any, Final

from scheduler.settings.file import API_VERSION, KIND
from scheduler.settings.kube_schema import definitions, kube_scheduler_schema
from scheduler.settings.scheduler import API_VERSION as KUBE_API_VERSION
from scheduler.settings.scheduler import KIND as KUBE_KIND
from scheduler.settings.settings import Settings
from scheduler.settings.values import GO_DURATION, duration_text
from scheduler.strict_yaml.schema import Schema, document_of, told, whole

_UNSAID: Final = frozenset({"title", "ge", "gt"})
"""What pydantic adds: titles made of names, and bounds of durations, which are texts in the file."""
_WHERE: Final = "#/definitions/{model}"
_BLOCK: Final = "profiles, plugins and their arguments, as in kube-scheduler's configuration"


def configuration_schema() -> Schema:
    """Return the schema of a VaneConfiguration."""
    made = Settings.model_json_schema(ref_template=_WHERE)
    models = {name: _cleaned(one) for name, one in made["$defs"].items()}
    fields = {name: _cleaned(one) for name, one in made["properties"].items()}
    schema = {
        "type": "object",
        "properties": {
            "apiVersion": {"const": API_VERSION},
            "kind": {"const": KIND},
            **fields,
            "scheduler": told(kube_scheduler_schema(), _BLOCK),
        },
        "additionalProperties": False,
        "required": ["apiVersion", "kind"],
        "definitions": {**definitions(), **models},
    }
    return document_of(schema, f"{KIND} of {API_VERSION}", "The configuration of Vane, for `vane run --config`.")


def kube_configuration_schema() -> Schema:
    """Return the schema of a KubeSchedulerConfiguration that is a file of its own."""
    known = {"apiVersion": {"const": KUBE_API_VERSION}, "kind": {"const": KUBE_KIND}}
    schema = kube_scheduler_schema() | {"required": list(known), "definitions": definitions()}
    schema["properties"] = schema["properties"] | known
    title = f"{KUBE_KIND} of {KUBE_API_VERSION}"
    return document_of(schema, title, "What Vane reads of kube-scheduler's configuration.")


def _cleaned(made: Any) -> Any:
    """Return a part of pydantic's schema without what it makes up, and with durations as they are written."""
    if isinstance(made, list):
        return [_cleaned(one) for one in made]
    if not isinstance(made, dict):
        return made
    kept = {name: _cleaned(one) for name, one in made.items() if name not in _UNSAID or isinstance(one, dict)}
    if kept.get("pattern") == whole(GO_DURATION) and isinstance(kept.get("default"), float):
        kept["default"] = duration_text(kept["default"])
    return kept
