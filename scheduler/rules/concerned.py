"""Which rules concern a Pod, and what each may do to it: sorted once for all Pods that they concern alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from scheduler.model.pods import PodInfo
from scheduler.model.rules import Rule
from scheduler.model.snapshot import Snapshot
from scheduler.rules.keyed import n_cards


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

    rules: tuple[Rule, ...]
    refusing: tuple[Rule, ...]
    scoring: tuple[Rule, ...]
    would_refuse: tuple[Rule, ...]
    would_score: tuple[Rule, ...]


_NOTHING: Final = Concerned((), (), (), (), ())


def concerns(rule: Rule, pod: PodInfo) -> bool:
    """Whether the rule concerns a Pod, whether it acts or watches.

    One over cards does if the Pod asks for some, one that reads what a label of the Pod names if there is that label.
    """
    if not rule.covers(pod.namespace, pod.labels):
        return False
    label = _named_label(rule)
    if label and not pod.labels.get(label):
        return False
    return not rule.gpu_resources or n_cards(rule.gpu_resources, pod) > 0


def concerning(pod: PodInfo, snapshot: Snapshot) -> Concerned:
    """Return the rules in force that concern the Pod."""
    rules, memo = snapshot.signals.rules.rules, snapshot.memo
    if not rules:
        return _NOTHING
    choosy = memo.get(("rules that choose Pods",), (rules,), lambda: tuple(rule for rule in rules if _chooses(rule)))
    ways = tuple([(concerns(rule, pod), rule.acts_on(pod)) for rule in choosy])
    return memo.get(("rules concerning", ways), (rules,), lambda: _sorted(rules, pod))


def _chooses(rule: Rule) -> bool:
    """Whether the rule may concern one Pod and not another, or act on one and watch another."""
    is_for_all = not rule.match.namespaces and not rule.match.labels
    return not is_for_all or bool(_named_label(rule) or rule.gpu_resources or rule.canary)


def _named_label(rule: Rule) -> str:
    return rule.pod_label if rule.calls is None else rule.calls.pod_label


def _sorted(rules: tuple[Rule, ...], pod: PodInfo) -> Concerned:
    concerned = tuple(rule for rule in rules if concerns(rule, pod))
    acting = [rule for rule in concerned if rule.acts_on(pod)]
    watching = [rule for rule in concerned if not rule.acts_on(pod)]
    return Concerned(
        concerned,
        tuple(rule for rule in acting if rule.refuses),
        tuple(rule for rule in acting if rule.score is not None),
        tuple(rule for rule in watching if rule.refuses),
        tuple(rule for rule in watching if rule.score is not None),
    )
