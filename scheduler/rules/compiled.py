"""CompiledRules: the rule set in force, compiled once, and what its rules say of a Pod.

What does not depend on the Pod is made once for an *edition* of the signals: from one change of a sample, a rule or a
state to the next.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from scheduler.framework.events import ClusterEvent
from scheduler.framework.index import Index
from scheduler.framework.matching_pods import MatchingPods
from scheduler.framework.profile import Profile
from scheduler.framework.status import Rejection, ScoreTerm
from scheduler.model.memo import Memo
from scheduler.model.pods import PodInfo
from scheduler.model.rules import NO_LABELS, Rule, RuleSet
from scheduler.model.snapshot import Snapshot
from scheduler.rules.compiled_rule import CompiledRule
from scheduler.rules.kinds import reading_of
from scheduler.rules.pending_load import PendingPods
from scheduler.rules.reading import Reading

INDEXES: Final[tuple[type[Index], ...]] = (PendingPods, MatchingPods)
"""What rules read of Pods: kept for every profile, for records and pages read rules even where no plugin does."""


KEPT: Final = 1_536
"""Columns kept of what Pods read of their own, for all rules together: 8 bytes a node, so 61 MB at 5,000 nodes."""


@dataclass(frozen=True, slots=True, eq=False)
class Concerned:
    """The rules in force that concern some Pods, in their order; the same object for all of these Pods.

    rules
        All of them, whether they act on these Pods or only watch them.
    refusing, scoring
        Those that act with a filter or a label match, and those that act with a score.
    would_refuse, would_score
        The same of those that only watch.
    """

    rules: tuple[CompiledRule, ...]
    refusing: tuple[CompiledRule, ...]
    scoring: tuple[CompiledRule, ...]
    would_refuse: tuple[CompiledRule, ...]
    would_score: tuple[CompiledRule, ...]


class CompiledRules:
    """All rules in force.

    rules
        In their order.
    by_name
        These and the bounds of tenants.
    signals
        Signal name -> what may be read of it without any rule, for pages.
    may_watch
        Whether some rule only watches some Pods.
    """

    def __init__(self, rule_set: RuleSet) -> None:
        signals, kept = rule_set.signals, Memo(KEPT)
        self.rules = tuple(CompiledRule(rule, signals.get(rule.signal), kept) for rule in rule_set.rules)
        bounds = (bound for tenant in rule_set.tenants for bound in tenant.bounds)
        of_tenants = (CompiledRule(bound, signals.get(bound.signal), kept) for bound in bounds)
        self.by_name: Mapping[str, CompiledRule] = {one.name: one for one in (*self.rules, *of_tenants)}
        self.signals: Mapping[str, Reading] = {
            name: reading_of(Rule("", name), signal, kept) for name, signal in signals.items()
        }
        self.may_watch = any(rule.is_on_trial for rule in rule_set.rules)
        filters = [rule.filter for rule in rule_set.rules if rule.filter is not None]
        self._soft_after_s = min((one.soft_after_s for one in filters if one.soft_after_s), default=math.inf)
        self._choosy = tuple(rule for rule in self.rules if not rule.is_for_all)
        self._reads_namespaces = any(rule.match.of_namespace for rule in rule_set.rules)
        self._of_all: Concerned | None = None
        self._concerned = Memo()
        self._steady = Memo()

    def concerning(self, pod: PodInfo, snapshot: Snapshot) -> Concerned:
        """Return the rules that concern the Pod."""
        if not self._choosy:
            if self._of_all is None:
                self._of_all = self._sorted(pod, NO_LABELS)
            return self._of_all
        labels = snapshot.catalog.namespace_labels(pod.namespace) if self._reads_namespaces else NO_LABELS
        ways = tuple([(rule.concerns(pod, labels), rule.rule.acts_on(pod)) for rule in self._choosy])
        return self._concerned.get(ways, (), lambda: self._sorted(pod, labels))

    def rejections(self, pod: PodInfo, snapshot: Snapshot) -> list[Rejection]:
        """Return what the rules that act on the Pod refuse, masks bool (n_rows,); steady rules first."""
        return self._rejections(self.concerning(pod, snapshot), True, pod, snapshot)

    def would_reject(self, pod: PodInfo, snapshot: Snapshot) -> list[Rejection]:
        """Return what the rules that only watch the Pod would refuse."""
        return self._rejections(self.concerning(pod, snapshot), False, pod, snapshot)

    def terms(self, rules: Sequence[CompiledRule], pod: PodInfo, snapshot: Snapshot) -> list[ScoreTerm]:
        """Return one term for each of some rules that concern the Pod."""
        if not rules:
            return []
        steady = self._steady_terms(snapshot)
        return [steady.get(rule.name) or rule.term(pod, snapshot) for rule in rules]

    def may_free(self, refusing: Collection[str], pod: PodInfo, event: ClusterEvent) -> bool:
        """Return whether a change of a Pod or node may end what one of the `refusing` rules, by name, has said."""
        rules = (self.by_name.get(name) for name in refusing)
        return any(rule is not None and rule.reading.may_free(pod, event) for rule in rules)

    def soft_after_s(self, refusing: Collection[str], waited_s: float) -> float:
        """Return after how long a wait, longer than this, the next of some rules would only score; inf for never."""
        filters = [self.by_name[name].rule.filter for name in refusing if name in self.by_name]
        waits_s = (one.soft_after_s for one in filters if one is not None)
        return min((soft_after_s for soft_after_s in waits_s if soft_after_s > waited_s), default=math.inf)

    def follow_filters(self, snapshot: Snapshot) -> None:
        """Bring up to date what rules refuse to all Pods, so that no Pod's cycle has to."""
        self._steady_rejections(snapshot)

    def follow_scores(self, snapshot: Snapshot) -> None:
        """Bring up to date what rules give to nodes for all Pods."""
        self._steady_terms(snapshot)

    def _rejections(self, concerned: Concerned, is_acting: bool, pod: PodInfo, snapshot: Snapshot) -> list[Rejection]:
        rules = concerned.refusing if is_acting else concerned.would_refuse
        if not rules:
            return []
        by_rule = self._steady_rejections(snapshot)
        said, others = self._steady.get(
            (concerned, is_acting),
            (by_rule,),
            lambda: (
                [one for rule in rules for one in by_rule.get(rule.name, ())],
                [rule for rule in rules if rule.name not in by_rule],
            ),
        )
        asked = [rule for rule in others if not rule.reading.is_valve_open(pod, snapshot)]
        found = [*said, *(one for rule in asked for one in rule.rejections(pod, snapshot))]
        if snapshot.waited_s < self._soft_after_s:
            return found
        return [one for one in found if not self.by_name[one.rule].is_soft(snapshot)]

    def _steady_rejections(self, snapshot: Snapshot) -> Mapping[str, Sequence[Rejection]]:
        def computed() -> Mapping[str, Sequence[Rejection]]:
            refusing = (rule for rule in self.rules if rule.rule.refuses and rule.reading.is_steady(snapshot))
            return {rule.name: rule.steady_rejections(snapshot) for rule in refusing}

        return self._steady.get("rejections", (snapshot.signals.edition,), computed)

    def _steady_terms(self, snapshot: Snapshot) -> Mapping[str, ScoreTerm]:
        def computed() -> Mapping[str, ScoreTerm]:
            scoring = (rule for rule in self.rules if rule.rule.score is not None and rule.reading.is_steady(snapshot))
            return {rule.name: rule.term(None, snapshot) for rule in scoring}

        return self._steady.get("terms", (snapshot.signals.edition,), computed)

    def _sorted(self, pod: PodInfo, namespace_labels: Mapping[str, str]) -> Concerned:
        concerned = tuple(rule for rule in self.rules if rule.concerns(pod, namespace_labels))
        acting = [one for one in concerned if one.rule.acts_on(pod)]
        watching = [one for one in concerned if not one.rule.acts_on(pod)]
        return Concerned(
            concerned,
            tuple(one for one in acting if one.rule.refuses),
            tuple(one for one in acting if one.rule.score is not None),
            tuple(one for one in watching if one.rule.refuses),
            tuple(one for one in watching if one.rule.score is not None),
        )


def compile_rules(rules: RuleSet, memo: Memo) -> CompiledRules:
    """Return a rule set compiled: once, for as long as it is the last one that was asked for with this memo."""
    known: CompiledRules | None = memo.known("compiled rules", rules)
    return known or memo.get("compiled rules", (rules,), lambda: CompiledRules(rules))


def compiled_rules(snapshot: Snapshot) -> CompiledRules:
    """Return the rules in force, compiled."""
    return compile_rules(snapshot.signals.rules, snapshot.memo)


def no_rules() -> CompiledRules:
    """Return a rule set that says nothing."""
    return CompiledRules(RuleSet())


def indexes_for(profiles: Iterable[Profile]) -> list[Index]:
    """Return new indexes, one of each class that the plugins of some profiles need, or rules."""
    of_plugins = (index for profile in profiles for index in profile.indexes)
    return [index() for index in dict.fromkeys((*INDEXES, *of_plugins))]
