"""Profile: which plugins run at which extension point, in order, with their weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scheduler.errors import ConfigError
from scheduler.framework.events import Action, EventInterest, Resource
from scheduler.framework.index import Index
from scheduler.framework.plugin import (
    BindPlugin,
    FilterPlugin,
    Plugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    ScorePlugin,
)

UNREADABLE_PODS = "UnreadablePods"
"""The name under which the framework itself refuses a node whose Pods it cannot read."""

_KINDS = {Resource.NODE: "Node", Resource.ASSIGNED_POD: "Pod", Resource.TARGET_POD: "Pod"}

_POINTS = (PreEnqueuePlugin, QueueSortPlugin, PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin, BindPlugin)


@dataclass(frozen=True, slots=True)
class Enabled:
    """One line of a chain: a plugin and its weight as a score."""

    plugin: Plugin
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Profile:
    """An immutable set of plugins under one `schedulerName`; shares indexes with others, never plugin state."""

    scheduler_name: str
    queue_sort: QueueSortPlugin
    pre_enqueue: tuple[PreEnqueuePlugin, ...]
    prefilter: tuple[PreFilterPlugin, ...]
    filter: tuple[FilterPlugin, ...]
    prescore: tuple[PreScorePlugin, ...]
    score: tuple[tuple[ScorePlugin, int], ...]
    bind: tuple[BindPlugin, ...]
    events: Mapping[str, tuple[EventInterest, ...]]
    indexes: tuple[type[Index], ...]

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of objects to watch: nodes and Pods, and what the plugins' events are about."""
        asked = {interest.resource for interests in self.events.values() for interest in interests}
        return frozenset({"Node", "Pod"} | {_KINDS[resource] for resource in asked if resource in _KINDS})

    @classmethod
    def build(cls, scheduler_name: str, chain: Sequence[Enabled]) -> Profile:
        """Sort the plugins of `chain` into their points, keeping its order.

        Raises
        ------
        ConfigError
            A plugin is named twice or implements no point, or QueueSort or Bind has no plugin.
        """
        plugins = [enabled.plugin for enabled in chain]
        _check(scheduler_name, plugins)
        events = {plugin.name: tuple(plugin.events()) for plugin in plugins}
        events[UNREADABLE_PODS] = (
            EventInterest(Resource.ASSIGNED_POD, Action.ADD | Action.DELETE | Action.UPDATE),
            EventInterest(Resource.NODE, Action.ADD),
        )
        return cls(
            scheduler_name=scheduler_name,
            queue_sort=next(p for p in plugins if isinstance(p, QueueSortPlugin)),
            pre_enqueue=tuple(p for p in plugins if isinstance(p, PreEnqueuePlugin)),
            prefilter=tuple(p for p in plugins if isinstance(p, PreFilterPlugin)),
            filter=tuple(p for p in plugins if isinstance(p, FilterPlugin)),
            prescore=tuple(p for p in plugins if isinstance(p, PreScorePlugin)),
            score=tuple((e.plugin, e.weight) for e in chain if isinstance(e.plugin, ScorePlugin)),
            bind=tuple(p for p in plugins if isinstance(p, BindPlugin)),
            events=events,
            indexes=tuple(dict.fromkeys(index for plugin in plugins for index in plugin.indexes)),
        )


def _check(scheduler_name: str, plugins: Sequence[Plugin]) -> None:
    where = f"profile {scheduler_name!r}"
    names = [plugin.name for plugin in plugins]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"{where}: plugin {name!r} is enabled twice. Name it once")
    for plugin in plugins:
        if not isinstance(plugin, _POINTS):
            raise ConfigError(f"{where}: plugin {plugin.name!r} implements no extension point")
    if sum(isinstance(plugin, QueueSortPlugin) for plugin in plugins) != 1:
        raise ConfigError(f"{where}: exactly one QueueSort plugin is needed, as PrioritySort")
    if not any(isinstance(plugin, BindPlugin) for plugin in plugins):
        raise ConfigError(f"{where}: at least one Bind plugin is needed, as DefaultBinder")
