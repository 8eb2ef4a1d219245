"""Profile: which plugins run at which extension point, in order, with their weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scheduler.errors import ConfigError
from scheduler.framework.events import EventInterest, Resource
from scheduler.framework.index import Index
from scheduler.framework.plugin import (
    BindPlugin,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
)
from scheduler.model.rules import MAX_WEIGHT

_OURS = (Resource.NODE, Resource.ASSIGNED_POD, Resource.TARGET_POD, Resource.SIGNALS, Resource.RULES, Resource.WILDCARD)
_KINDS = {resource: resource.value for resource in Resource if resource not in _OURS}

POINTS: Mapping[str, type[Plugin]] = {
    "preEnqueue": PreEnqueuePlugin,
    "queueSort": QueueSortPlugin,
    "preFilter": PreFilterPlugin,
    "filter": FilterPlugin,
    "postFilter": PostFilterPlugin,
    "preScore": PreScorePlugin,
    "score": ScorePlugin,
    "reserve": ReservePlugin,
    "permit": PermitPlugin,
    "preBind": PreBindPlugin,
    "bind": BindPlugin,
    "postBind": PostBindPlugin,
}
"""The extension points by their name in configuration, and what a plugin must be to stand there.

NormalizeScore, the thirteenth, belongs to the Score plugins.
"""


@dataclass(frozen=True, slots=True)
class Enabled:
    """One line of a chain: a plugin and its weight as a score."""

    plugin: Plugin
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Profile:
    """An immutable set of plugins under one `schedulerName`; shares indexes with others, never plugin state.

    `rule_filters` and `rule_scorers` are those that apply rules, which may only watch. `fixed_weight` is the sum of
    the weights of all score plugins whose terms do not bring their own.
    """

    scheduler_name: str
    queue_sort: QueueSortPlugin
    pre_enqueue: tuple[PreEnqueuePlugin, ...]
    prefilter: tuple[PreFilterPlugin, ...]
    filter: tuple[FilterPlugin, ...]
    postfilter: tuple[PostFilterPlugin, ...]
    prescore: tuple[PreScorePlugin, ...]
    score: tuple[tuple[ScorePlugin, int], ...]
    reserve: tuple[ReservePlugin, ...]
    permit: tuple[PermitPlugin, ...]
    prebind: tuple[PreBindPlugin, ...]
    bind: tuple[BindPlugin, ...]
    postbind: tuple[PostBindPlugin, ...]
    events: Mapping[str, tuple[EventInterest, ...]]
    indexes: tuple[type[Index], ...]
    looked_up: frozenset[str]
    followers: tuple[Plugin, ...]
    rule_filters: tuple[FilterPlugin, ...]
    rule_scorers: tuple[ScorePlugin, ...]
    fixed_weight: float

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of objects to watch: nodes and Pods, what plugins look up and what their events are about."""
        asked = {interest.resource for interests in self.events.values() for interest in interests}
        return frozenset({"Node", "Pod"} | self.looked_up | {_KINDS[resource] for resource in asked & _KINDS.keys()})

    @classmethod
    def build(cls, scheduler_name: str, chain: Sequence[Enabled]) -> Profile:
        """Enable every plugin of `chain` at all points that it implements, in this order (`multiPoint`).

        Raises
        ------
        ConfigError
            As `assemble`, or a plugin implements no point.
        """
        for enabled in chain:
            if not isinstance(enabled.plugin, tuple(POINTS.values())):
                raise ConfigError(
                    f"profile {scheduler_name!r}: plugin {enabled.plugin.name!r} implements no extension point"
                )
        points = {
            point: [enabled for enabled in chain if isinstance(enabled.plugin, kind)] for point, kind in POINTS.items()
        }
        return cls.assemble(scheduler_name, points)

    @classmethod
    def assemble(cls, scheduler_name: str, points: Mapping[str, Sequence[Enabled]]) -> Profile:
        """Make a profile of the plugins enabled at each of POINTS.

        Raises
        ------
        ConfigError
            A plugin is named twice at a point or is not made for it, two plugins share a name, there is not exactly
            one QueueSort plugin or no Bind plugin, or a weight is not 1..100.
        """
        _check(scheduler_name, points)
        chain = [enabled.plugin for point in POINTS for enabled in points.get(point, ())]
        plugins = list(dict.fromkeys(chain))
        events = {plugin.name: tuple(plugin.events()) for plugin in plugins}

        def at(point: str) -> Any:
            """Plugins of one point; `_check` has seen that they are what the field says."""
            return tuple(enabled.plugin for enabled in points.get(point, ()))

        scorers: Any = tuple((enabled.plugin, enabled.weight) for enabled in points.get("score", ()))
        return cls(
            scheduler_name=scheduler_name,
            queue_sort=at("queueSort")[0],
            pre_enqueue=at("preEnqueue"),
            prefilter=at("preFilter"),
            filter=at("filter"),
            postfilter=at("postFilter"),
            prescore=at("preScore"),
            score=scorers,
            reserve=at("reserve"),
            permit=at("permit"),
            prebind=at("preBind"),
            bind=at("bind"),
            postbind=at("postBind"),
            events=events,
            looked_up=frozenset(kind for plugin in plugins for kind in plugin.kinds),
            indexes=tuple(dict.fromkeys(index for plugin in plugins for index in plugin.indexes)),
            followers=tuple(plugin for plugin in plugins if type(plugin).follow is not Plugin.follow),
            rule_filters=tuple(plugin for plugin in at("filter") if plugin.applies_rules),
            rule_scorers=tuple(plugin for plugin, _ in scorers if plugin.applies_rules),
            fixed_weight=float(sum(weight for plugin, weight in scorers if not plugin.brings_weights)),
        )


def _check(scheduler_name: str, points: Mapping[str, Sequence[Enabled]]) -> None:
    where = f"profile {scheduler_name!r}"
    by_name: dict[str, Plugin] = {}
    for point, chain in points.items():
        here: set[str] = set()
        for enabled in chain:
            name = enabled.plugin.name
            if name in here or by_name.setdefault(name, enabled.plugin) is not enabled.plugin:
                raise ConfigError(f"{where}: plugin {name!r} is enabled twice. Name it once")
            here.add(name)
            if not isinstance(enabled.plugin, POINTS[point]):
                raise ConfigError(f"{where}: plugin {name!r} does not implement {point}. Drop it there")
            if point == "score" and not 1 <= enabled.weight <= MAX_WEIGHT:
                found = f"weight {enabled.weight}"
                raise ConfigError(f"{where}: plugin {name!r} has {found}. Write 1 to {MAX_WEIGHT:.0f}")
    if len(points.get("queueSort", ())) != 1:
        raise ConfigError(f"{where}: exactly one QueueSort plugin is needed, as PrioritySort")
    if not points.get("bind"):
        raise ConfigError(f"{where}: at least one Bind plugin is needed, as DefaultBinder")
