"""SignalScore: points for every node by each rule, and how much they weigh."""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.framework.plugin import PreScorePlugin, ScorePlugin
from scheduler.framework.status import SKIP, ScoreTerm, Status
from scheduler.model.arrays import Rows
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from scheduler.rules.compiled import INDEXES, compiled_rules
from scheduler.rules.compiled_rule import CompiledRule


class SignalScore(PreScorePlugin, ScorePlugin):
    """Scores nodes by each rule's curve over its signal; every rule is a term of its own, with its weight."""

    brings_weights = True
    applies_rules = True
    kinds = ("Namespace",)
    indexes = INDEXES

    def prescore(self, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> tuple[CompiledRule, ...] | Status:
        """Return the rules that score this Pod."""
        return compiled_rules(snapshot).concerning(pod, snapshot).scoring or SKIP

    def score(
        self, state: tuple[CompiledRule, ...], pod: PodInfo, snapshot: Snapshot, rows: Rows
    ) -> Sequence[ScoreTerm]:
        return compiled_rules(snapshot).terms(state, pod, snapshot)

    def follow(self, snapshot: Snapshot) -> None:
        compiled_rules(snapshot).follow_scores(snapshot)
