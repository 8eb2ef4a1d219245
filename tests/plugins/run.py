"""Runs one plugin as the framework would and gives back what a person would write down."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from scheduler.errors import InvalidObjectError
from scheduler.framework.plugin import FilterPlugin, Plugin, PreFilterPlugin, PreScorePlugin, ScorePlugin
from scheduler.framework.status import Code, PreFilterResult, Status
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot

EVERYTHING = slice(None)


def refusals(plugin: FilterPlugin, pod: PodInfo, snapshot: Snapshot) -> dict[str, set[tuple[str, str]]]:
    """Return node -> (code, reason) of each refusal, nodes that pass left out.

    Raises
    ------
    InvalidObjectError
        The plugin tells a fault about one of them.
    """
    state: object = None
    if isinstance(plugin, PreFilterPlugin):
        result = plugin.prefilter(pod, snapshot)
        if isinstance(result, Status):
            return {}
        state = result.state
    found: dict[str, set[tuple[str, str]]] = {}
    for rejection in plugin.filter(state, pod, snapshot, EVERYTHING):
        for row in np.flatnonzero(rejection.mask & snapshot.nodes.alive).tolist():
            if rejection.code is Code.ERROR:
                raise InvalidObjectError(rejection.reason)
            found.setdefault(snapshot.nodes.names[row], set()).add((rejection.code.label, rejection.reason))
    return found


def raw_scores(plugin: ScorePlugin, pod: PodInfo, snapshot: Snapshot) -> Mapping[str, list[float]]:
    """Return term -> raw score by row; empty where PreScore leaves the plugin out."""
    return {term: raw for term, (raw, _) in _scores(plugin, pod, snapshot).items()}


def final_scores(plugin: ScorePlugin, pod: PodInfo, snapshot: Snapshot) -> Mapping[str, list[float]]:
    """Return term -> normalised score by row."""
    return {term: final for term, (_, final) in _scores(plugin, pod, snapshot).items()}


def _scores(plugin: ScorePlugin, pod: PodInfo, snapshot: Snapshot) -> dict[str, tuple[list[float], list[float]]]:
    state = _score_state(plugin, pod, snapshot)
    if isinstance(state, Status):
        return {}
    terms = plugin.score(state, pod, snapshot, EVERYTHING)
    return {term.name: (term.values.tolist(), plugin.normalize(term).tolist()) for term in terms}


def _score_state(plugin: Plugin, pod: PodInfo, snapshot: Snapshot) -> object:
    if isinstance(plugin, PreScorePlugin):
        return plugin.prescore(pod, snapshot, EVERYTHING)
    if isinstance(plugin, PreFilterPlugin):
        result = plugin.prefilter(pod, snapshot)
        return result.state if isinstance(result, PreFilterResult) else None
    return None
