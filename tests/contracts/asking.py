"""Asking single plugins of the default chain and the examples, as the runner would, about all nodes or some."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from scheduler.decision.decide import decide
from scheduler.decision.decision import Decision
from scheduler.errors import PluginError, UnsupportedPodError
from scheduler.framework.plugin import (
    FilterPlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
)
from scheduler.framework.profile import Profile
from scheduler.framework.status import PreFilterResult, Rejection, ScoreTerm, Status
from scheduler.model.arrays import Rows
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from scheduler.plugins import default_chain
from scheduler.plugins.examples.label_score import LabelScore, LabelScoreArgs
from scheduler.plugins.examples.team_nodes import TeamNodes

EXAMPLES = (TeamNodes(), LabelScore(LabelScoreArgs(label="zone", worst=9, best=-3)))
EVERY = (*EXAMPLES, *(one.plugin for one in default_chain()))
FILTERS = [plugin for plugin in EVERY if isinstance(plugin, FilterPlugin)]
SCORES = [plugin for plugin in EVERY if isinstance(plugin, ScorePlugin)]
PLUGINS = [plugin for plugin in EVERY if isinstance(plugin, FilterPlugin | ScorePlugin)]
ALL: Rows = slice(None)


def state_of(plugin: object, pod: PodInfo, snapshot: Snapshot, rows: Rows, *, scoring: bool) -> tuple[bool, object]:
    """Return (skipped, state) as the runner would hand it to Filter or Score."""
    state: object = None
    if isinstance(plugin, PreFilterPlugin):
        result = plugin.prefilter(pod, snapshot)
        if isinstance(result, Status) and not scoring:
            return True, None
        state = result.state if isinstance(result, PreFilterResult) else None
    if scoring and isinstance(plugin, PreScorePlugin):
        prescored = plugin.prescore(pod, snapshot, rows)
        return isinstance(prescored, Status), prescored
    return False, state


def run_filter(plugin: FilterPlugin, pod: PodInfo, snapshot: Snapshot, rows: Rows = ALL) -> list[Rejection]:
    skipped, state = state_of(plugin, pod, snapshot, rows, scoring=False)
    return [] if skipped else list(plugin.filter(state, pod, snapshot, rows))


def run_score(plugin: ScorePlugin, pod: PodInfo, snapshot: Snapshot, rows: Rows = ALL) -> list[ScoreTerm]:
    """Score some of the nodes, of which all are feasible."""
    skipped, state = state_of(plugin, pod, snapshot, ALL, scoring=True)
    terms = [] if skipped else plugin.score(state, pod, snapshot, rows)
    return [replace(term, values=term.values[rows], is_column=False) if term.is_column else term for term in terms]


def verdicts(rejections: Sequence[Rejection], n: int) -> list[set[tuple[int, str]]]:
    """Return per row the (code, reason) pairs that refuse it."""
    return [{(one.code, one.reason) for one in rejections if one.mask[i]} for i in range(n)]


def by_name(terms: Sequence[ScoreTerm]) -> dict[str, tuple[list[float], float | None]]:
    return {term.name: (term.values.tolist(), term.weight) for term in terms}


def told(decision: Decision) -> dict[str, Any]:
    """Return all that a decision says, comparable."""
    diagnosis = decision.diagnosis
    return {
        "node": (decision.row, decision.node_name, decision.seed, decision.nominated),
        "feasible": decision.feasible.tolist(),
        "total": decision.total.tolist(),
        "best": decision.best.tolist(),
        "refusals": [(one.plugin, one.code, one.reason, one.mask.tolist()) for one in diagnosis.refusals],
        "message": diagnosis.message(),
        "terms": {
            (term.plugin, term.name): (term.weight, term.values.tolist(), term.contribution.tolist())
            for term in decision.terms
        },
    }


def decided(pod: PodInfo, snapshot: Snapshot, profile: Profile) -> dict[str, Any] | str:
    """Return what the whole chain decides, or why it fails."""
    try:
        return told(decide(pod, snapshot, profile))
    except (PluginError, UnsupportedPodError) as error:
        return str(error)
