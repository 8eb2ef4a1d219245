"""The profiles of a KubeSchedulerConfiguration v1; `settings_kube` reads what else stands in it.

Only the shape is read here. What the names mean is for `app/profiles.py`, which is handed the place of each, so that
its messages can say where. As in Go, null is what is not there.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from scheduler.settings.document import Location, dotted

API_VERSION: Final = "kubescheduler.config.k8s.io/v1"
KIND: Final = "KubeSchedulerConfiguration"
MULTI_POINT: Final = "multiPoint"
ALL: Final = "*"
"""Stands among `disabled` for every plugin of the default chain."""

POINTS: Final = (
    "preEnqueue",
    "queueSort",
    "preFilter",
    "filter",
    "postFilter",
    "preScore",
    "score",
    "reserve",
    "permit",
    "preBind",
    "bind",
    "postBind",
)
MAX_WEIGHT: Final = 100
_MAX_NAME: Final = 253
_UNBOUNDED: Final = 2**31 - 1

_VANES: Final = ("clusters", "kubeconfig", "logging", "prometheus", "rules", "serving")
"""Settings that stand at the top of a VaneConfiguration."""

_GROUP_POINTS: Final = ("placementGenerate", "placementScore", "podGroupPostFilter")
"""Points that kube-scheduler 1.37 has for groups of Pods, and Vane has not."""


@dataclass(frozen=True, slots=True)
class PluginLine:
    """One item of `enabled` or `disabled`; `place` says where its name stands: file, line, column and path."""

    name: str
    place: str
    weight: int | None = None


@dataclass(frozen=True, slots=True)
class PluginSet:
    """What a profile says of one extension point."""

    enabled: tuple[PluginLine, ...] = ()
    disabled: tuple[PluginLine, ...] = ()


@dataclass(frozen=True, slots=True)
class PluginConfig:
    """The arguments of one plugin as plain data; `places` has the place of each value below `args`."""

    name: str
    place: str
    args: Mapping[str, Any] = field(default_factory=dict, hash=False)
    places: Mapping[Location, str] = field(default_factory=dict, hash=False, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ProfileSettings:
    """One profile; without a name, which only a sole one may be, it has that of the settings."""

    scheduler_name: str = ""
    place: str = ""
    plugins: tuple[tuple[str, PluginSet], ...] = ()
    plugin_config: tuple[PluginConfig, ...] = ()

    def at(self, point: str) -> PluginSet:
        return dict(self.plugins).get(point, PluginSet())


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    """What a KubeSchedulerConfiguration says of scheduling; without profiles there is one, of the default chain.

    `notices` tell of fields that have no effect in Vane, with their places.
    """

    profiles: tuple[ProfileSettings, ...] = ()
    initial_backoff_s: float = 1.0
    max_backoff_s: float = 10.0
    notices: tuple[str, ...] = ()


class Reading:
    """Reads one document; what is wrong is left out and told in `problems`."""

    def __init__(self, places: Mapping[Location, str], problems: list[str]) -> None:
        self._places = places
        self._problems = problems
        self.notices: list[str] = []

    def where(self, at: Location) -> str:
        """Return file, line, column and path of a value; of what is missing, those of what it should stand in."""
        spots = (self._places.get(at[:length]) for length in range(len(at), -1, -1))
        return f"{next(spot for spot in spots if spot is not None)}: {dotted(at)}"

    def problem(self, at: Location, message: str) -> None:
        self._problems.append(f"{self.where(at)}: {message}")

    def notice(self, at: Location, message: str) -> None:
        self.notices.append(f"{self.where(at)}: {message}")

    def mapping(self, value: object, at: Location, known: Sequence[str]) -> Mapping[str, Any]:
        """Return the known fields that are there."""
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.problem(at, f"must be a mapping of fields, got {value!r}. Fields here: {', '.join(known)}")
            return {}
        for name in value:
            if name not in known:
                self.problem((*at, name), self._unknown(name, known))
        return {name: value[name] for name in value if name in known and value[name] is not None}

    @staticmethod
    def _unknown(name: str, known: Sequence[str]) -> str:
        if name == "normalizeScore":
            return "belongs to score, as in kube-scheduler. Write score"
        if name in ("healthzBindAddress", "metricsBindAddress"):
            return "no such field in v1, as in kube-scheduler. Write --bind-address and --secure-port"
        if name in _VANES:
            advice = "Write it at the top of a VaneConfiguration, and this in its scheduler block"
            return f"no such field, got {name!r}. {advice}"
        near = difflib.get_close_matches(name, known, 1)
        advice = f"Write {near[0]}" if near else f"Fields here: {', '.join(known)}"
        return f"no such field, got {name!r}. {advice}"

    def items(self, value: object, at: Location) -> Sequence[Any]:
        if value is None:
            return ()
        if isinstance(value, list):
            return value
        self.problem(at, f"must be a list, got {value!r}. Write its items, or drop it")
        return ()

    def text(self, fields: Mapping[str, Any], at: Location, name: str, example: str) -> str:
        """Return a text that must be there; "" where it is wrong."""
        value = fields.get(name)
        if isinstance(value, str) and value and len(value) <= _MAX_NAME and not any(map(str.isspace, value)):
            return value
        got = f"got {value!r}" if name in fields else "got nothing"
        self.problem(
            (*at, name), f"must be 1 to {_MAX_NAME} characters without spaces, {got}. Write for example {example}"
        )
        return ""

    def whole(self, fields: Mapping[str, Any], at: Location, name: str, within: tuple[int, int]) -> int | None:
        """Return a whole number within bounds; None where it is wrong or not there."""
        value, (least, greatest) = fields.get(name), within
        if value is None or (type(value) is int and least <= value <= greatest):
            return value
        upper = f"to {greatest}" if greatest < _UNBOUNDED else "on"
        self.problem(
            (*at, name), f"must be a whole number from {least} {upper}, got {value!r}. Write another, or drop it"
        )
        return None

    def percentage(self, fields: Mapping[str, Any], at: Location) -> None:
        name = "percentageOfNodesToScore"
        if self.whole(fields, at, name, (0, 100)):
            self.notice((*at, name), "has no effect: Vane looks at every node")

    def profiles(self, value: object, at: Location) -> tuple[ProfileSettings, ...]:
        items = self.items(value, at)
        profiles = tuple(self.profile(item, (*at, i), len(items) == 1) for i, item in enumerate(items))
        first_of: dict[str, int] = {}
        for i, profile in enumerate(profiles):
            name = profile.scheduler_name
            if name and first_of.setdefault(name, i) != i:
                told = f"{name!r} is the name of profiles[{first_of[name]}] too. Write another"
                self.problem((*at, i, "schedulerName"), told)
        return profiles

    def profile(self, value: object, at: Location, is_only: bool) -> ProfileSettings:
        known = ("schedulerName", "plugins", "pluginConfig", "percentageOfNodesToScore")
        given = self.mapping(value, at, known)
        name = ""
        if isinstance(value, dict) and ("schedulerName" in given or not is_only):
            name = self.text(given, at, "schedulerName", "vane")
        self.percentage(given, at)
        sets = self.mapping(given.get("plugins"), (*at, "plugins"), (MULTI_POINT, *POINTS, *_GROUP_POINTS))
        for point in _GROUP_POINTS:
            here = (*at, "plugins", point)
            if self.plugin_set(sets.get(point), here).enabled:
                self.problem(here, "not built yet. Drop it")
        plugins = tuple(
            (point, self.plugin_set(sets[point], (*at, "plugins", point)))
            for point in (MULTI_POINT, *POINTS)
            if point in sets
        )
        configs = self.items(given.get("pluginConfig"), (*at, "pluginConfig"))
        read = [self.plugin_config(item, (*at, "pluginConfig", i)) for i, item in enumerate(configs)]
        return ProfileSettings(name, self.where(at), plugins, tuple(config for config in read if config.name))

    def plugin_set(self, value: object, at: Location) -> PluginSet:
        given = self.mapping(value, at, ("enabled", "disabled"))
        return PluginSet(self._lines(given, (*at, "enabled")), self._lines(given, (*at, "disabled")))

    def _lines(self, given: Mapping[str, Any], at: Location) -> tuple[PluginLine, ...]:
        lines = []
        for i, item in enumerate(self.items(given.get(str(at[-1])), at)):
            here = (*at, i)
            fields = self.mapping(item, here, ("name", "weight"))
            name = self.text(fields, here, "name", "ImageLocality") if isinstance(item, dict | None) else ""
            if name == ALL and at[-1] == "enabled":
                self.problem((*here, "name"), f"{ALL!r} disables, it enables nothing. Write the plugins' names")
            elif name:
                lines.append(PluginLine(name, self.where((*here, "name")), self._weight(fields, here)))
        return tuple(lines)

    def _weight(self, fields: Mapping[str, Any], at: Location) -> int | None:
        """Return the weight; 0 counts as unset, as in kube-scheduler."""
        weight = fields.get("weight", 0)
        if type(weight) is not int or not 0 <= weight <= MAX_WEIGHT:
            self.problem(
                (*at, "weight"), f"must be a whole number from 1 to {MAX_WEIGHT}, got {weight!r}. Write for example 2"
            )
            return None
        return weight or None

    def plugin_config(self, value: object, at: Location) -> PluginConfig:
        given = self.mapping(value, at, ("name", "args"))
        name = self.text(given, at, "name", "MyPlugin") if isinstance(value, dict | None) else ""
        args = given.get("args", {})
        if not isinstance(args, dict):
            self.problem((*at, "args"), f"must be a mapping of arguments, got {args!r}. Write them, or drop it")
            args = {}
        start = (*at, "args")
        inside = {
            location[len(start) :]: self.where(location) for location in self._places if location[: len(start)] == start
        }
        return PluginConfig(name, self.where((*at, "name")), args, {(): self.where(start), **inside})
