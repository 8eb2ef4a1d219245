"""The `profiles:` of a KubeSchedulerConfiguration v1; only their shape is read here. As in Go, null is not there."""

from __future__ import annotations

from typing import Final

from scheduler.settings.kube_values import read_data, read_name, read_whole
from scheduler.settings.scheduler import (
    ALL,
    MAX_WEIGHT,
    MULTI_POINT,
    POINTS,
    PluginConfig,
    PluginLine,
    PluginSet,
    ProfileSettings,
)
from scheduler.strict_yaml.document import Places
from scheduler.strict_yaml.fields import Fields, Shape, read_fields, read_list, read_mapping
from scheduler.strict_yaml.nodes import YamlNode
from scheduler.strict_yaml.report import Scope, got

_TOP: Final = "Write it at the top of a VaneConfiguration, and this in its scheduler block"
VANES: Final = {
    name: f"a setting of Vane's own, got {name!r}. {_TOP}"
    for name in ("clusters", "kubeconfig", "logging", "prometheus", "rules", "serving")
}
"""What is said of settings that stand at the top of a VaneConfiguration."""

GROUP_POINTS: Final = ("placementGenerate", "placementScore", "podGroupPostFilter")
"""Points that kube-scheduler 1.37 has for groups of Pods, and Vane has not."""

PROFILE: Final = Shape(
    fields=("schedulerName", "plugins", "pluginConfig", "percentageOfNodesToScore"), refused=VANES, is_go=True
)
PLUGINS: Final = Shape(
    fields=(MULTI_POINT, *POINTS, *GROUP_POINTS),
    refused={"normalizeScore": "belongs to score, as in kube-scheduler. Write score"},
    is_go=True,
)
PLUGIN_SET: Final = Shape(fields=("enabled", "disabled"), is_go=True)
PLUGIN: Final = Shape(fields=("name", "weight"), is_go=True)
PLUGIN_CONFIG: Final = Shape(fields=("name", "args"), is_go=True)

_LIST_ADVICE: Final = "Write its items, or drop it"


def read_profiles(node: YamlNode | None, scope: Scope) -> tuple[ProfileSettings, ...]:
    """Return the profiles; what is wrong is left out and reported."""
    items = read_list(node, scope, _LIST_ADVICE, may_be_empty=True) or ()
    profiles: list[ProfileSettings] = []
    first_of: dict[str, int] = {}
    for i, item in enumerate(items):
        fields = read_fields(item, scope.item(i), PROFILE)
        if fields is None:
            continue
        profile = _profile(fields, is_only=len(items) == 1)
        profiles.append(profile)
        name = profile.scheduler_name
        if name and first_of.setdefault(name, i) != i:
            at = fields.get("schedulerName") or item
            what = f"{name!r} is also the name of profiles[{first_of[name]}]. Write another"
            fields.scope.inner("schedulerName").problem(at, what)
    return tuple(profiles)


def read_percentage(fields: Fields) -> None:
    """Check the share of nodes that kube-scheduler would look at, and tell that Vane looks at all."""
    name = "percentageOfNodesToScore"
    node = fields.get(name)
    if read_whole(fields, name, 0, 100) and node is not None:
        fields.scope.inner(name).warning(node, "has no effect: Vane looks at every node")


def _profile(fields: Fields, *, is_only: bool) -> ProfileSettings:
    scope = fields.scope
    name = read_name(fields, "schedulerName", "vane") if "schedulerName" in fields or not is_only else ""
    read_percentage(fields)
    sets = read_fields(fields.get("plugins"), scope.inner("plugins"), PLUGINS)
    plugins: list[tuple[str, PluginSet]] = []
    for point in PLUGINS.fields if sets is not None else ():
        if sets is None or point not in sets:
            continue
        found = _plugin_set(sets.get(point), sets.scope.inner(point))
        if point not in GROUP_POINTS:
            plugins.append((point, found))
        elif found.enabled:
            sets.scope.inner(point).problem(sets.at(point), "not built yet. Drop it")
    inner = scope.inner("pluginConfig")
    items = read_list(fields.get("pluginConfig"), inner, _LIST_ADVICE, may_be_empty=True) or ()
    configs = [_plugin_config(item, inner.item(i)) for i, item in enumerate(items)]
    place = f"{scope.where(fields.node)}: {scope.label}"
    return ProfileSettings(name, place, tuple(plugins), tuple(config for config in configs if config is not None))


def _plugin_set(node: YamlNode | None, scope: Scope) -> PluginSet:
    fields = read_fields(node, scope, PLUGIN_SET)
    return PluginSet() if fields is None else PluginSet(_lines(fields, "enabled"), _lines(fields, "disabled"))


def _lines(sets: Fields, which: str) -> tuple[PluginLine, ...]:
    scope = sets.scope.inner(which)
    lines = []
    for i, item in enumerate(read_list(sets.get(which), scope, _LIST_ADVICE, may_be_empty=True) or ()):
        fields = read_fields(item, scope.item(i), PLUGIN)
        name = "" if fields is None else read_name(fields, "name", "ImageLocality")
        if fields is None or not name:
            continue
        inner, at = fields.scope.inner("name"), fields.get("name") or item
        if name == ALL and which == "enabled":
            inner.problem(at, f"{ALL!r} disables, it enables nothing. Write the plugins' names")
        else:
            lines.append(PluginLine(name, f"{inner.where(at)}: {inner.label}", _weight(fields)))
    return tuple(lines)


def _weight(fields: Fields) -> int | None:
    """Return the weight; 0 counts as unset, as in kube-scheduler."""
    node, scope = fields.get("weight"), fields.scope.inner("weight")
    weight = 0 if node is None else read_data(node, scope).value
    if node is not None and (type(weight) is not int or not 0 <= weight <= MAX_WEIGHT):
        scope.problem(node, f"must be a whole number from 1 to {MAX_WEIGHT}, {got(node)}. Write for example 2")
        return None
    return weight or None


def _plugin_config(node: YamlNode, scope: Scope) -> PluginConfig | None:
    fields = read_fields(node, scope, PLUGIN_CONFIG)
    if fields is None:
        return None
    name = read_name(fields, "name", "MyPlugin")
    inner = scope.inner("args")
    args = read_mapping(fields.get("args"), inner, "Write the plugin's arguments, or drop it", may_be_empty=True)
    at = scope.inner("name")
    place = f"{at.where(fields.get('name') or node)}: {at.label}"
    if args is None:
        return PluginConfig(name, place, {}, Places(inner.label, {(): inner.where(node)})) if name else None
    document = read_data(args, inner)
    return PluginConfig(name, place, document.value, document.places) if name else None
