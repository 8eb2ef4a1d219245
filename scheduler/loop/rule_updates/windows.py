"""Windows that pass: Pods that have gone stop counting, which no event of the cluster tells."""

from __future__ import annotations

from collections.abc import Iterable

from scheduler.framework.events import EVERYONE, signals_refreshed
from scheduler.loop.cycle import World
from scheduler.model.history import Departed
from scheduler.model.rules import BuiltIn, Match

_MOST_KINDS = 64
"""Beyond, one question for all waiting Pods costs less."""


def let_windows_pass(world: World, after_s: float, until_s: float) -> None:
    """Bring back the Pods that a count had refused for Pods whose window ended between two monotonic times."""
    rules, state = world.signals.rules, world.cache.state
    for rule in rules.rules:
        signal = rules.signals.get(rule.signal)
        built_in = None if signal is None else signal.built_in
        if built_in is None or not built_in.window_s or rule.filter is None or rule.filter.max is None:
            continue
        placed_ahead_s = state.unix_ahead_s - built_in.window_s
        passing = state.history.passing(after_s + placed_ahead_s, until_s + placed_ahead_s)
        for match in _concerned(built_in, passing):
            world.queue.on_event(signals_refreshed(frozenset({rule.name}), match), until_s)


def _concerned(built_in: BuiltIn, passing: Iterable[Departed]) -> list[Match]:
    """Return for which Pods one of those counted; for all, where they would be many kinds."""
    kinds = {_alike(built_in, pod) for pod in passing if all(key in pod.labels for key in built_in.same)}
    if len(kinds) > _MOST_KINDS:
        return [EVERYONE]
    return [Match(() if built_in.all_namespaces else (namespace,), dict(labels)) for namespace, labels in sorted(kinds)]


def _alike(built_in: BuiltIn, pod: Departed) -> tuple[str, tuple[tuple[str, str], ...]]:
    return pod.namespace, tuple((key, pod.labels[key]) for key in built_in.same)
