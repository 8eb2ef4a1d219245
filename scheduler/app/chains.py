"""Which plugins a profile runs at each point: its configuration merged with the default chain, by name.

Source: kube-scheduler v1.37 apis/config/v1/default_plugins.go mergePluginSet, framework/runtime/framework.go
expandMultiPointPlugins and getScoreWeights (behaviour).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from scheduler.settings.scheduler import ALL

DEFAULT_WEIGHT: Final = 1


@dataclass(frozen=True, slots=True)
class Line:
    """A plugin by the name of its class; `place` is where the configuration names it, "" in the default chain."""

    name: str
    weight: int = DEFAULT_WEIGHT
    place: str = ""


@dataclass(frozen=True, slots=True)
class PointPlugins:
    """What a profile says of one point, or of all (`multiPoint`); `disabled` are names or ALL."""

    enabled: Sequence[Line] = ()
    disabled: frozenset[str] = field(default_factory=frozenset)


def merge(defaults: Sequence[Line], wanted: PointPlugins) -> list[Line]:
    """Return the lines in force at `multiPoint`: a default that is enabled again is replaced where it stands."""
    if ALL in wanted.disabled:
        return list(wanted.enabled)
    again = {line.name: line for line in wanted.enabled}
    kept = [again.get(line.name, line) for line in defaults if line.name not in wanted.disabled]
    replaced = {line.name for line in kept}
    return kept + [line for line in wanted.enabled if line.name not in replaced]


def expand(multi_point: Sequence[Line], wanted: PointPlugins, implements: Callable[[str], bool]) -> list[Line]:
    """Return the lines of one point, in order.

    First what is named both here and at `multiPoint`, in the order here; then what only `multiPoint` names and what
    `implements` the point; then what only the point names.
    """
    if ALL in wanted.disabled:
        return list(wanted.enabled)
    spread = [line for line in multi_point if line.name not in wanted.disabled and implements(line.name)]
    named_here = {line.name for line in wanted.enabled}
    named_there = {line.name for line in spread}
    overriding = [line for line in wanted.enabled if line.name in named_there]
    only_here = [line for line in wanted.enabled if line.name not in named_there]
    return overriding + [line for line in spread if line.name not in named_here] + only_here


def chains(
    defaults: Sequence[Line],
    multi_point: PointPlugins,
    points: Mapping[str, PointPlugins],
    implements: Callable[[str, str], bool],
) -> dict[str, list[Line]]:
    """Return the lines of every point of `points`, given whether a plugin (by name) implements a point.

    What a line of `score` weighs is what it says there, and else what its line at `multiPoint` says.
    """
    everywhere = merge(defaults, multi_point)

    def at(point: str) -> list[Line]:
        return expand(everywhere, points[point], lambda name: implements(name, point))

    return {point: at(point) for point in points}
