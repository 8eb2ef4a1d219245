"""The JSON schema of a KubeSchedulerConfiguration v1; how to add a field is said in `strict_yaml.schema`."""

from __future__ import annotations

from typing import Final

from scheduler.settings.kube_profiles import GROUP_POINTS, PLUGIN, PLUGIN_CONFIG, PLUGIN_SET, PLUGINS, PROFILE
from scheduler.settings.kube_scheduler import CLIENT_CONNECTION, DOCUMENT, LEADER_ELECTION
from scheduler.settings.kube_values import INT32, INT64, MAX_NAME
from scheduler.settings.scheduler import API_VERSION, KIND, MAX_WEIGHT
from scheduler.settings.values import DNS_LABEL, DNS_NAME, GO_DURATION
from scheduler.strict_yaml.schema import ANY_TEXT, NUMBER, TRUTH, Schema, fields_of, matching, told

_NAME: Final[Schema] = {"type": "string", "pattern": r"^\S+$", "maxLength": MAX_NAME}
_PLUGIN_NAME: Final = told(_NAME, "the plugin's name, its entry point or its import path")
_NAMED: Final[Schema] = {"required": ["name"], "properties": {"name": {"type": "string"}}}
_PLUGIN_SET: Final = "PluginSet"
_NO_EFFECT: Final = "kube-scheduler's; has no effect in Vane"
_DURATION: Final = matching(f"0|{GO_DURATION.pattern}")


def kube_scheduler_schema() -> Schema:
    """Return the schema of the configuration, as a file of its own or as the `scheduler` block of Vane's."""
    percentage = told(_whole(0, 100), f"{_NO_EFFECT}: it looks at every node")
    return fields_of(
        DOCUMENT,
        {
            "profiles": told(
                _list_of({"anyOf": [_profile(percentage), {"type": "null"}]}),
                "how Pods are scheduled, by their schedulerName",
            ),
            "apiVersion": {"const": API_VERSION},
            "kind": {"const": KIND},
            "leaderElection": told(_leader_election(), "which of several replicas schedules"),
            "clientConnection": told(_client_connection(), "how the API server is reached"),
            "podInitialBackoffSeconds": told(_whole(1, INT64), "how long a Pod waits after its first failed attempt"),
            "podMaxBackoffSeconds": told(_whole(1, INT64), "how long a Pod waits between attempts at most"),
            "percentageOfNodesToScore": percentage,
            "parallelism": told(_whole(1, INT32), _NO_EFFECT),
            "extenders": told({"type": "array", "maxItems": 0}, "HTTP extenders are not built yet"),
            "enableProfiling": told(TRUTH, _NO_EFFECT),
            "enableContentionProfiling": told(TRUTH, _NO_EFFECT),
            "delayCacheUntilActive": told(TRUTH, _NO_EFFECT),
        },
    )


def definitions() -> dict[str, Schema]:
    """Return what the schema refers to, for the `definitions` of the whole file."""
    weight = told(_whole(0, MAX_WEIGHT), "how much its score counts; 0 is unset")
    lines = _list_of(fields_of(PLUGIN, {"name": _PLUGIN_NAME, "weight": weight}, _NAMED))
    return {_PLUGIN_SET: fields_of(PLUGIN_SET, {"enabled": lines, "disabled": lines})}


def _profile(percentage: Schema) -> Schema:
    points: dict[str, Schema] = {point: {"$ref": f"#/definitions/{_PLUGIN_SET}"} for point in PLUGINS.fields}
    none = {"type": "array", "maxItems": 0}
    no_set = told(fields_of(PLUGIN_SET, {"enabled": none, "disabled": {"type": "array"}}), "not built yet")
    points |= {point: no_set for point in GROUP_POINTS}
    config = fields_of(PLUGIN_CONFIG, {"name": _PLUGIN_NAME, "args": {"type": "object"}}, _NAMED)
    return fields_of(
        PROFILE,
        {
            "schedulerName": told(_NAME, "the schedulerName of its Pods"),
            "plugins": told(fields_of(PLUGINS, points), "which plugins run at which point, beside the default ones"),
            "pluginConfig": told(_list_of(config), "arguments of plugins; each knows its own"),
            "percentageOfNodesToScore": percentage,
        },
    )  # fmt: skip


def _leader_election() -> Schema:
    fields: dict[str, Schema] = {name: _DURATION for name in ("leaseDuration", "renewDeadline", "retryPeriod")}
    not_null = {"properties": {name: {"type": "string"} for name in fields}}
    fields |= {"leaderElect": {"anyOf": [TRUTH, {"const": ""}]}, "resourceLock": {"enum": ["leases", ""]}}
    names = {"resourceName": matching(f"(?:{DNS_NAME})?"), "resourceNamespace": matching(f"(?:{DNS_LABEL})?")}
    return fields_of(LEADER_ELECTION, fields | names, not_null)


def _client_connection() -> Schema:
    fields: dict[str, Schema] = {name: ANY_TEXT for name in ("kubeconfig", "acceptContentTypes", "contentType")}
    return fields_of(
        CLIENT_CONNECTION, fields | {"qps": told(NUMBER, _NO_EFFECT), "burst": told(_whole(0, INT32), _NO_EFFECT)}
    )


def _whole(lowest: int, highest: int) -> Schema:
    return {"type": "integer", "minimum": lowest, "maximum": highest}


def _list_of(item: Schema) -> Schema:
    """Return the schema of a list that may be empty."""
    return {"type": "array", "items": item}
