"""Makes the profiles that the configuration asks for: names become classes, arguments objects, sets chains.

Every mistake is reported with file, line, column and path, all of them at once.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from typing import Any, Final

from scheduler.app.chains import DEFAULT_WEIGHT, Line, PointPlugins, chains
from scheduler.app.intree_args import ArgumentMistakes, read_intree_args
from scheduler.app.plugin_factory import make_plugin
from scheduler.app.plugin_sources import GROUP, NOT_BUILT, OURS, PluginSources
from scheduler.errors import ConfigError
from scheduler.framework.intree_args import INTREE_ARGS
from scheduler.framework.plugin import BindPlugin, Plugin
from scheduler.framework.profile import POINTS, Enabled, Profile
from scheduler.plugins import DEFAULT_CHAIN, default_chain
from scheduler.settings.scheduler import ALL, MULTI_POINT, PluginConfig, PluginLine, PluginSet, ProfileSettings
from scheduler.settings.settings import Settings

_DEFAULTS: Final = tuple(Line(link.name, link.weight) for link in DEFAULT_CHAIN)
_TAKES_ALL: Final = "DefaultBinder"
_BLOCKING_POINTS: Final = ("preBind", "postBind")


def build_profiles(settings: Settings, installed: Iterable[EntryPoint] | None = None) -> Mapping[str, Profile]:
    """Return the profiles by their names; without any in the settings, one of the default chain.

    Parameters
    ----------
    installed
        The plugins that installed packages offer; None: those of the interpreter.

    Raises
    ------
    ConfigError
        With every problem of every profile.
    """
    if not settings.scheduler.profiles:
        name = settings.scheduler_name
        return {name: Profile.build(name, default_chain())}
    sources = PluginSources(importlib.metadata.entry_points(group=GROUP) if installed is None else installed)
    clusters = frozenset(name for name, _ in settings.clusters)
    drafts = [
        _Draft(profile, profile.scheduler_name or settings.scheduler_name, clusters)
        for profile in settings.scheduler.profiles
    ]
    problems: list[str] = []
    for draft in drafts:
        draft.read(sources)
        problems += draft.problems
    problems += _different_orders(drafts)
    if problems:
        problems = list(dict.fromkeys(problems))
        head = [] if len(problems) == 1 else [f"{len(problems)} problems in the profiles:"]
        raise ConfigError("\n".join(head + problems))
    return {draft.name: Profile.assemble(draft.name, draft.points) for draft in drafts}


def _different_orders(drafts: Sequence[_Draft]) -> list[str]:
    """Return where a profile sorts the one queue in another way than the first does."""
    known = [draft for draft in drafts if draft.queue_sort is not None]
    return [
        f"{draft.settings.place}: sorts the queue differently from profile {known[0].name!r}, but there is only one"
        " queue. Write the same QueueSort plugin with the same arguments in all profiles"
        for draft in known[1:]
        if draft.queue_sort != known[0].queue_sort
    ]


@dataclass(slots=True)
class _Draft:
    """One profile in the making; each step looks only at what the steps before have found right."""

    settings: ProfileSettings
    name: str
    clusters: frozenset[str]
    problems: list[str] = field(default_factory=list)
    points: dict[str, list[Enabled]] = field(default_factory=dict)
    queue_sort: tuple[type[Plugin], Mapping[str, Any]] | None = None
    _classes: dict[str, type[Plugin]] = field(default_factory=lambda: dict(OURS))

    def read(self, sources: PluginSources) -> None:
        """Fill `points`, or `problems`."""
        enabled = {point: self._enabled(point, sets, sources) for point, sets in self.settings.plugins}
        wanted = {
            point: PointPlugins(enabled[point], self._disabled(sets, sources)) for point, sets in self.settings.plugins
        }
        if self.problems:
            return
        lines = chains(
            _DEFAULTS,
            wanted.pop(MULTI_POINT, PointPlugins()),
            {point: wanted.get(point, PointPlugins()) for point in POINTS},
            lambda name, point: issubclass(self._classes[name], POINTS[point]),
        )
        places = self._check_chains(lines)
        configs = self._configs(places, sources)
        if not self.problems:
            self._make(lines, places, configs)

    def _enabled(self, point: str, sets: PluginSet, sources: PluginSources) -> list[Line]:
        lines: list[Line] = []
        for line in sets.enabled:
            try:
                found = self._class_of(line, sources)
            except ConfigError as error:
                self._problem(line.place, str(error))
                continue
            name = found.__name__
            kinds = tuple(POINTS.values()) if point == MULTI_POINT else (POINTS[point],)
            if any(other.name == name for other in lines):
                self._problem(line.place, f"{name} is enabled twice at {point}. Name it once")
            elif not issubclass(found, kinds):
                lacking = "any extension point" if point == MULTI_POINT else point
                there = ", ".join(point for point, kind in POINTS.items() if issubclass(found, kind)) or "none"
                self._problem(line.place, f"{name} does not implement {lacking}. Drop it there; its points: {there}")
            else:
                lines.append(Line(name, line.weight or DEFAULT_WEIGHT, line.place))
        return lines

    def _class_of(self, line: PluginLine, sources: PluginSources) -> type[Plugin]:
        found = sources.find(line.name)
        other = self._classes.setdefault(found.__name__, found)
        if other is not found:
            both = f"{other.__module__}:{other.__qualname__} and {found.__module__}:{found.__qualname__}"
            raise ConfigError(f"two plugins with the same name, got {both}. Rename one of the classes")
        return found

    def _disabled(self, sets: PluginSet, sources: PluginSources) -> frozenset[str]:
        """Return names of classes; what kube-scheduler has and Vane has not may be disabled, since it is off."""
        short = {line.name: sources.short(line.name) for line in sets.disabled}
        for line in sets.disabled:
            known = line.name == ALL or sources.is_known(line.name) or short[line.name] in self._classes
            if not known:
                here = ", ".join(sorted(self._classes))
                self._problem(line.place, f"no such plugin, got {line.name!r}. Write {ALL!r} or one of: {here}")
        return frozenset(short.values())

    def _check_chains(self, lines: Mapping[str, Sequence[Line]]) -> dict[str, str]:
        """Return the place of every plugin in force: the first that names it, or else that of the profile."""
        places: dict[str, str] = {}
        for point, chain in lines.items():
            for line in chain:
                place = line.place or self.settings.place
                if line.name not in places or (line.place and places[line.name] == self.settings.place):
                    places[line.name] = place
                if self._classes[line.name].blocking and point not in _BLOCKING_POINTS:
                    self._problem(
                        place,
                        f"{line.name} is blocking, and {point} runs on the deciding thread. Enable it only at"
                        f" {' and '.join(_BLOCKING_POINTS)}, or make it without I/O of its own",
                    )
        sorters = [line.name for line in lines["queueSort"]]
        if len(sorters) != 1:
            found = " and ".join(sorters) or "none"
            advice = "Disable all but one" if sorters else "Enable one, as PrioritySort"
            self._problem(self.settings.place, f"exactly one QueueSort plugin is needed, got {found}. {advice}")
        if not lines["bind"]:
            self._problem(self.settings.place, "a Bind plugin is needed, got none. Enable one, as DefaultBinder")
        return places

    def _configs(self, places: Mapping[str, str], sources: PluginSources) -> dict[str, PluginConfig]:
        """Return the arguments by the names of the plugins that are in force.

        Those of a plugin of kube-scheduler that is not in force are only checked, as there.
        """
        configs: dict[str, PluginConfig] = {}
        seen: set[str] = set()
        for config in self.settings.plugin_config:
            name = sources.short(config.name)
            if name in NOT_BUILT:
                self._problem(config.place, f"{name} of kube-scheduler: not built yet. Drop it")
            elif name in seen:
                self._problem(config.place, f"arguments of {name} are given twice. Write them once")
            elif name in places:
                configs[name] = config
            elif name not in INTREE_ARGS:
                self._problem(config.place, f"{config.name!r} is not enabled in this profile. Enable it, or drop this")
            if name in INTREE_ARGS and name not in configs:
                self._check_args(name, config)
            seen.add(name)
        return configs

    def _check_args(self, name: str, config: PluginConfig) -> None:
        try:
            read_intree_args(name, config)
        except ArgumentMistakes as error:
            self.problems += error.problems

    def _make(
        self, lines: Mapping[str, Sequence[Line]], places: Mapping[str, str], configs: Mapping[str, PluginConfig]
    ) -> None:
        plugins: dict[str, Plugin] = {}
        for name, place in places.items():
            try:
                plugins[name] = make_plugin(self._classes[name], configs.get(name), place, self.clusters)
            except ArgumentMistakes as error:
                self.problems += error.problems
            except ConfigError as error:
                self.problems.append(str(error))
        if not self.problems:
            self._check_reach(lines["bind"], places, plugins)
        if self.problems:
            return
        for point, chain in lines.items():
            self.points[point] = [Enabled(plugins[line.name], line.weight) for line in chain]
        name = lines["queueSort"][0].name
        self.queue_sort = (self._classes[name], configs[name].args if name in configs else {})

    def _check_reach(self, chain: Sequence[Line], places: Mapping[str, str], plugins: Mapping[str, Plugin]) -> None:
        """Refuse what DefaultBinder never lets bind elsewhere: Pods would be bound here without a word."""
        names = [line.name for line in chain]
        behind = names[names.index(_TAKES_ALL) + 1 :] if _TAKES_ALL in names else []
        for name in behind:
            plugin = plugins[name]
            if isinstance(plugin, BindPlugin) and plugin.clusters():
                self._problem(
                    places[name],
                    f"{name} binds in another cluster, but comes after {_TAKES_ALL}, which takes every Pod. Disable"
                    f" {_TAKES_ALL}, and enable it again after {name} for the Pods that {name} leaves",
                )

    def _problem(self, place: str, message: str) -> None:
        self.problems.append(f"{place}: {message}")
