"""Shadows: what rules that only watch a Pod would have done to a decision.

They are asked once the decision has been made, and what they say goes beside it, so that they can change nothing; a
fault of theirs is reported, and the decision stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Final

import numpy as np

from scheduler.decision.decision import Decision, Shadow
from scheduler.decision.score_phase import PluginTerm, capped, choose, score_phase, weigh
from scheduler.errors import PluginError
from scheduler.framework.observer import UNOBSERVED
from scheduler.framework.plugin import FilterPlugin, ScorePlugin
from scheduler.framework.plugin_faults import plugin_call
from scheduler.framework.profile import Profile
from scheduler.framework.status import ScoreTerm
from scheduler.model.arrays import BoolArray, IntArray, Rows
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from scheduler.rules.compiled import CompiledRules, compiled_rules

NOWHERE: Final = -1
_ALL: Final = slice(None)


class _Intent:
    """What one rule would do: `refused` is bool (n_feasible,)."""

    def __init__(self, n_feasible: int) -> None:
        self.refused: BoolArray = np.zeros(n_feasible, dtype=np.bool_)
        self.terms: list[PluginTerm] = []


def watched(decision: Decision, pod: PodInfo, snapshot: Snapshot, profile: Profile) -> Decision:
    """Return the decision with what rules that only watch would have done."""
    if not decision.is_scheduled or not compiled_rules(snapshot).may_watch:
        return decision
    try:
        intents = _intents(decision, pod, snapshot, profile)
        if not intents:
            return decision
        instead = _Instead(decision, pod, snapshot, profile)
        shadows = tuple(instead.shadow(rule, intent) for rule, intent in intents.items())
    except PluginError as error:
        return replace(decision, shadow_fault=str(error))
    return replace(decision, shadows=shadows)


def _intents(decision: Decision, pod: PodInfo, snapshot: Snapshot, profile: Profile) -> dict[str, _Intent]:
    rules, n = compiled_rules(snapshot), len(decision.feasible)
    rows: Rows = slice(None) if n == snapshot.nodes.n_rows else decision.feasible
    intents: dict[str, _Intent] = {}
    for plugin in profile.rule_filters:
        for rule, refused in _would_refuse(plugin, rules, pod, snapshot, rows):
            intents.setdefault(rule, _Intent(n)).refused |= refused
    for scorer in profile.rule_scorers:
        for term in _would_score(scorer, rules, pod, snapshot):
            intents.setdefault(term.name, _Intent(n)).terms.append((scorer, term))
    return intents


@plugin_call("Filter")
def _would_refuse(
    _plugin: FilterPlugin, rules: CompiledRules, pod: PodInfo, snapshot: Snapshot, rows: Rows
) -> list[tuple[str, BoolArray]]:
    """Return by rule which of the feasible nodes it would refuse, bool (n_feasible,)."""
    n_rows = snapshot.nodes.n_rows
    found = rules.would_reject(pod, snapshot)
    if any(rejection.mask.shape != (n_rows,) for rejection in found):
        raise ValueError(f"a mask is not bool ({n_rows},)")
    return [(rejection.rule, rejection.mask[rows]) for rejection in found]


@plugin_call("Score")
def _would_score(_plugin: ScorePlugin, rules: CompiledRules, pod: PodInfo, snapshot: Snapshot) -> list[ScoreTerm]:
    return rules.terms(rules.concerning(pod, snapshot).would_score, pod, snapshot)


class _Instead:
    """The decision taken apart: what stays as it is where fewer nodes are feasible, and what has to be asked again.

    Finished columns stay. Other scores may depend on who else is feasible, as where they are normalised.
    """

    def __init__(self, decision: Decision, pod: PodInfo, snapshot: Snapshot, profile: Profile) -> None:
        self._decision = decision
        self._pod = pod
        self._snapshot = snapshot
        self._fixed_weight = profile.fixed_weight
        bringing = {plugin.name: plugin for plugin, _ in profile.score if plugin.brings_weights}
        finished = [term for term in decision.terms if term.is_column]
        self._weights = [term.weight for term in finished if term.plugin in bringing]
        self._own: list[PluginTerm] = [
            (bringing[term.plugin], ScoreTerm(term.name, term.raw_column, term.written_weight, True, term.max_share))
            for term in finished
            if term.plugin in bringing
        ]
        self._columns: IntArray = np.zeros(snapshot.nodes.n_rows, dtype=np.int64)
        for term in finished:
            self._columns += term.contribution_column
        again = {term.plugin for term in decision.terms if not term.is_column}
        self._asked_again = replace(
            profile,
            prescore=tuple(plugin for plugin in profile.prescore if plugin.name in again),
            score=tuple((plugin, weight) for plugin, weight in profile.score if plugin.name in again),
        )

    def shadow(self, rule: str, intent: _Intent) -> Shadow:
        decision, refused = self._decision, intent.refused
        n_refused = int(np.count_nonzero(refused))
        is_chosen_refused = n_refused > 0 and bool(refused[np.searchsorted(decision.feasible, decision.row)])
        kept = decision.feasible[~refused] if n_refused else decision.feasible
        row: int | None = decision.row
        weight = 0.0
        if decision.nominated:
            row = None if n_refused else row
        elif len(kept) < 2:
            row = int(kept[0]) if len(kept) else NOWHERE
        elif n_refused or intent.terms:
            row, weight = self._choice(kept, intent)
        return Shadow(rule, n_refused, is_chosen_refused, row, weight)

    def _choice(self, kept: IntArray, intent: _Intent) -> tuple[int, float]:
        """Return the best of the rows `kept`, and the weight of the rule's own score there."""
        decision, (columns, weight) = self._decision, self._with(intent.terms)
        total: IntArray = columns[kept]
        if len(kept) == len(decision.feasible):
            for term in decision.terms:
                if not term.is_column:
                    total += term.contribution_column
        else:
            total += score_phase(self._pod, self._snapshot, self._asked_again, kept, decision.states, UNOBSERVED)[1]
        return choose(total, kept, self._snapshot.nodes.name_hash, self._pod.seed)[0], weight

    def _with(self, terms: Sequence[PluginTerm]) -> tuple[IntArray, float]:
        """Return the sum of all finished columns with those of one rule, and what these weigh.

        With the rule the others may weigh more, as their share allows.
        """
        if not terms:
            return self._columns, 0.0
        joined = [*self._own, *terms]
        weights = capped(joined, self._fixed_weight)
        columns = self._columns.copy()
        for (plugin, term), before, weight in zip_longest(joined, self._weights, weights):
            if weight != before:
                columns += weigh(plugin, term, weight, self._snapshot, _ALL).contribution_column
                if before is not None:
                    columns -= weigh(plugin, term, before, self._snapshot, _ALL).contribution_column
        return columns, sum(weights[len(self._own) :])
