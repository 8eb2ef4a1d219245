"""Rules that work against each other, or count the same load twice: seen where files are checked together."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from scheduler.errors import Problem
from scheduler.model.rules import Curve, Mode, Rule, RuleFilter, RuleSet, Signal
from scheduler.signals.format.promql import selectors
from scheduler.strict_yaml.report import problem_at


def doubled(rules: RuleSet) -> list[Problem]:
    """Return a warning for each two rules that act on the same Pods and contradict each other or measure the same."""
    acting = [rule for rule in rules.rules if rule.mode is not Mode.SHADOW and rule.signal in rules.signals]
    said = ((one, other, _said(one, other, rules)) for one, other in combinations(acting, 2))
    return [problem_at(other.where, f"rule '{other.name}': {words}") for one, other, words in said if words]


def _said(one: Rule, other: Rule, rules: RuleSet) -> str:
    """Return what is wrong with two rules, empty for nothing; `other` comes later."""
    if one.match != other.match and not one.match.is_for_all and not other.match.is_for_all:
        return ""
    first = f"rule '{one.name}' at {one.where}"
    if one.signal == other.signal:
        return _contradiction(one, other, first)
    if one.score is None or other.score is None:
        return ""
    same = _same_measure(one, other, rules.signals)
    return f"it and {first} both score {same}, so that it counts twice. Keep one of the two" if same else ""


def _contradiction(one: Rule, other: Rule, first: str) -> str:
    if (one.pod_label, one.calls) != (other.pod_label, other.calls):
        return ""
    if one.score and other.score and _rises(one.score.curve) * _rises(other.score.curve) < 0:
        return f"it prefers what {first} avoids: one likes high values of '{one.signal}', one low ones. Drop one"
    if one.filter and other.filter and (_is_apart(one.filter, other.filter) or _is_apart(other.filter, one.filter)):
        return f"no value of '{one.signal}' passes both this and {first}. Change one of the limits"
    return ""


def _rises(curve: Curve) -> float:
    return curve.ys[-1] - curve.ys[0]


def _is_apart(low: RuleFilter, high: RuleFilter) -> bool:
    """Whether all that passes `low` is below what passes `high`."""
    return low.max is not None and high.min is not None and low.max < high.min


def _same_measure(one: Rule, other: Rule, signals: Mapping[str, Signal]) -> str:
    """Return what two signals both measure of nodes: one resource, as pending load says, or the very same metrics."""
    first, second = signals[one.signal], signals[other.signal]
    if any(signal.built_in or signal.label or signal.workload or signal.pair for signal in (first, second)):
        return ""
    used = first.inflight.resource if first.inflight else ""
    if used and one.match == other.match and second.inflight and second.inflight.resource == used:
        return f"the {used} that nodes use"
    metrics = _metrics(first)
    return ", ".join(sorted(metrics)) if metrics == _metrics(second) else ""


def _metrics(signal: Signal) -> frozenset[str]:
    return frozenset(selector.partition("{")[0] for selector in selectors(signal.expr))
