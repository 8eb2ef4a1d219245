"""What `vane check` says about rule files: every problem and warning with its place, then what would be in force."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final, TextIO

from scheduler.app.check.doubled import doubled
from scheduler.app.check.effective_weights import EffectiveWeight, effective_weights
from scheduler.app.check.findings import Finding, Output, findings_of, for_machines
from scheduler.app.check.sources import sources_of
from scheduler.app.check.table import table
from scheduler.errors import Problem
from scheduler.model.real_allocatable import ANNOTATION
from scheduler.model.requests import CPU
from scheduler.model.rules import (
    Curve,
    Effect,
    EffectKind,
    FilterMissing,
    Mode,
    Rule,
    RuleFilter,
    RuleScore,
    RuleSet,
    ScoreMissing,
    Signal,
    Tenant,
    Unit,
    WeightSignal,
    effect_scale,
)
from scheduler.signals.format.inflight import VALUE as IN_OWN_UNIT
from scheduler.signals.format.promql_matchers import NO_MATCHERS, Matchers
from scheduler.signals.format.query import NO_FEATURES, Features
from scheduler.signals.format.rule_files import describe_by, lint_rule_files, unused_signals
from scheduler.signals.format.units import amount_text, duration_text
from scheduler.strict_yaml.report import problem_at

OK = 0
FOUND_PROBLEMS = 1

WHERE_TENANTS_COUNT: Final = (
    f"Tenants apply on nodes with the annotation {ANNOTATION}. All Pods on such a node together may request",
    "up to OVERCOMMIT of its figures, but never more than the node advertises, and only 100% if WHILE does not hold.",
    "On every other node Pods of all tenants may request 100% of what the node advertises.",
)


@dataclass(frozen=True, slots=True)
class How:
    """How a check is told: tables at most `width` characters wide, None for any; `is_strict`: a warning fails it."""

    output: Output = Output.TEXT
    is_strict: bool = False
    width: int | None = None


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The outcome of one check; with problems, `rules` holds only what has none.

    `located` returns problems of rule files at their places in what was given. `fixed_weight` is what the score plugins
    of the profile weigh together, beside the rules.
    """

    files: tuple[str, ...]
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]
    rules: RuleSet
    located: Callable[[Sequence[Problem]], list[Problem]]
    fixed_weight: float = 0.0

    @property
    def findings(self) -> list[Finding]:
        return findings_of(self.problems, self.warnings)

    @property
    def counts(self) -> dict[str, int]:
        """How many there are of everything, by plural noun; with problems, what is in force is not told."""
        rules = self.rules
        counts = {"files": len(self.files), "problems": len(self.problems), "warnings": len(self.warnings)}
        if not self.problems:
            counts |= {"signals": len(rules.signals), "rules": len(rules.rules)}
            counts |= {"tenants": len(rules.tenants)} if rules.tenants else {}
        return counts

    def exit_code(self, *, is_strict: bool = False) -> int:
        return FOUND_PROBLEMS if self.problems or (is_strict and self.warnings) else OK

    def lines(self, width: int | None = None) -> list[str]:
        """Return the whole report: one line a finding, tables if nothing is wrong, one line of summary."""
        lines = [finding.line for finding in self.findings]
        if not self.problems:
            lines += _signal_table(self.rules, width) + _built_in_table(self.rules, width)
            lines += _rule_table(self.rules, self.fixed_weight, width) + _tenant_table(self.rules, width)
        return [*lines, self._summary()]

    def _summary(self) -> str:
        return ", ".join(_count(number, noun.removesuffix("s")) for noun, number in self.counts.items())


def check(
    files: Mapping[str, bytes],
    fixed_weight: float = 0.0,
    servers: Set[str] | None = None,
    features: Features = NO_FEATURES,
    matchers: Mapping[str, Matchers] = NO_MATCHERS,
) -> CheckReport:
    """Lint rule files, content by name, and those within manifests.

    `servers` are the names that a signal's `server` may have; None where they are not known. `features` are what each
    has switched on, `matchers` what all selectors get, by the name of the server.
    """
    sources = sources_of(files)
    reading = lint_rule_files(sources.rule_files, servers=servers, features=features, matchers=matchers)
    # A rule that could not be read may be the one that uses a signal.
    warnings = (*reading.warnings, *(() if reading.problems else _of_all(reading.rules)))
    return CheckReport(
        tuple(sources.rule_files),
        (*sources.problems, *sources.located(reading.problems)),
        tuple(sources.located(warnings)),
        reading.rules,
        sources.located,
        fixed_weight,
    )


def run_check(
    files: Mapping[str, bytes], out: TextIO, how: How, fixed_weight: float = 0.0, features: Features = NO_FEATURES
) -> int:
    """Write the report of `check` and return the exit code: 0 if nothing is wrong, else 1."""
    report = check(files, fixed_weight, features=features)
    text = "\n".join(report.lines(how.width))
    if how.output is not Output.TEXT:
        text = for_machines(how.output, report.findings, report.counts)
    if text:
        print(text, file=out)
    return report.exit_code(is_strict=how.is_strict)


def filter_text(limits: RuleFilter | None, unit: Unit) -> str:
    """Return a filter in a few words, as `max 80% clear 75%`; `-` without one."""
    if limits is None:
        return "-"
    parts = []
    for name, limit, clear in (("max", limits.max, limits.max_clear), ("min", limits.min, limits.min_clear)):
        if limit is not None:
            cleared = f" clear {amount_text(clear, unit)}" if clear is not None and clear != limit else ""
            parts.append(f"{name} {amount_text(limit, unit)}{cleared}")
    if limits.valve is not None:
        parts.append(f"valve {100.0 * limits.valve:g}%")
    if limits.hold_s > 0.0:
        parts.append(f"hold {limits.hold_s:g}s")
    if limits.missing is not FilterMissing.ALLOW:
        parts.append(f"missing {limits.missing}")
    if limits.soft_after_s > 0.0:
        parts.append(f"soft after {duration_text(limits.soft_after_s)}")
    return ", ".join(parts)


def acts_text(rule: Rule) -> str:
    """Return the Pods on which a rule acts, of those it concerns, as `canary 10% test-*`."""
    if rule.mode is Mode.SHADOW:
        return "shadow"
    if rule.canary is None:
        return "always"
    percent = f"{rule.canary.percent:g}%" if rule.canary.percent < 100.0 else ""
    return " ".join(("canary", *filter(None, (percent, *rule.canary.namespaces))))


def score_text(score: RuleScore | None, unit: Unit) -> str:
    """Return a score in a few words, as `100 at 0%, 0 at 100%`; `-` without one."""
    if score is None:
        return "-"
    missing = "" if score.missing is ScoreMissing.NEUTRAL else f", missing {score.missing}"
    return f"{_curve_text(score.curve, unit)}{missing}"


def weight_text(rule: Rule, signals: Mapping[str, Signal]) -> str:
    if rule.score is None:
        return "-"
    if isinstance(rule.weight, WeightSignal):
        weight, unit = rule.weight, signals[rule.weight.signal].unit
        return f"{weight.signal}: {_curve_text(weight.curve, unit)}, missing {weight.missing:g}"
    return f"{rule.weight:g}"


def effective_text(rule: Rule, weights: Mapping[str, EffectiveWeight]) -> tuple[str, str]:
    """Return what is left of a rule's weight where its share cap takes of it, and its share of all that scores."""
    weight = weights.get(rule.name)
    if weight is None:
        return "-", "-"
    return f"{weight.effective:.4g}" if weight.is_capped else "-", f"{100.0 * weight.share:.0f}%"


def pending_load_text(signal: Signal) -> str:
    """Return what a placed Pod adds until samples show it, as `cpu: 200m`; `-` for nothing."""
    effect = signal.inflight
    if effect is None:
        return "-"
    key = effect.resource or IN_OWN_UNIT
    if effect.kind is not EffectKind.CONSTANT:
        return f"{key}: {effect.kind}{_without_request_text(effect)}"
    if effect.resource == CPU:
        return f"{key}: {effect.amount:g}m"
    return f"{key}: {effect.amount / (1 if effect.resource else effect_scale(signal.unit)):g}"


def _without_request_text(effect: Effect) -> str:
    if not effect.without_request:
        return ""
    return f", else {effect.without_request:g}{'m' if effect.resource == CPU else ''}"


def _of_all(rules: RuleSet) -> list[Problem]:
    """Return what only all files together show."""
    return [*_unused(rules), *doubled(rules)]


def _unused(rules: RuleSet) -> list[Problem]:
    found = []
    for name in unused_signals(rules):
        asked = ", but Prometheus is queried for it" if name in rules.asked else ""
        message = f"signal '{name}': no rule uses it{asked}. Drop it, or write a rule"
        found.append(problem_at(rules.signals[name].where, message))
    return found


def _signal_table(rules: RuleSet, width: int | None) -> list[str]:
    head: tuple[str, ...] = ("SIGNAL", "BY", "UNIT", "INTERVAL", "MAX AGE", "WINDOW")
    head = (*head, "PENDING LOAD", "SMOOTHING", "RANGE", "REDUCE")
    rows: list[tuple[str, ...]] = [
        (
            signal.name,
            describe_by(signal),
            str(signal.unit),
            f"{signal.interval_s:g}s",
            f"{signal.max_age_s:g}s",
            f"{signal.window_s:g}s" if signal.window_s else "-",
            pending_load_text(signal),
            f"{signal.smoothing_s:g}s" if signal.smoothing_s else "-",
            _range_text(signal),
            str(signal.reduce or "-"),
        )
        for signal in rules.asked.values()
    ]
    servers = [signal.server for signal in rules.asked.values()]
    if any(servers):
        head, rows = (*head, "SERVER"), [(*row, name or "-") for row, name in zip(rows, servers, strict=True)]
    return table(head, rows, width)


def _range_text(signal: Signal) -> str:
    if signal.range is None:
        return "-"
    low, high = ("any" if math.isinf(one) else amount_text(one, signal.unit) for one in signal.range)
    return f"{low}..{high}"


def _built_in_table(rules: RuleSet, width: int | None) -> list[str]:
    asked = rules.asked
    built_in = [signal for name, signal in rules.signals.items() if name not in asked]
    rows = [(signal.name, describe_by(signal), str(signal.unit), signal.source) for signal in built_in]
    return table(("BUILT IN", "BY", "UNIT", "READS"), rows, width)


def _rule_table(rules: RuleSet, fixed_weight: float, width: int | None) -> list[str]:
    head = ("RULE", "SIGNAL", "ACTS", "FILTER", "SCORE", "WEIGHT", "CAPPED TO", "SHARE")
    weights = effective_weights(rules.rules, fixed_weight)
    rows = [
        (
            rule.name,
            rule.signal or "-",
            acts_text(rule),
            rule.label_match.text if rule.label_match else filter_text(rule.filter, _unit(rule, rules)),
            score_text(rule.score, _unit(rule, rules)),
            weight_text(rule, rules.signals),
            *effective_text(rule, weights),
        )
        for rule in rules.rules
    ]
    return table(head, rows, width)


def _unit(rule: Rule, rules: RuleSet) -> Unit:
    return rules.signals[rule.signal].unit if rule.signal else Unit.NONE


def _tenant_table(rules: RuleSet, width: int | None) -> list[str]:
    """Return who may use how much, while what is measured, and where all that counts; the last row is of no tenant."""
    rows = [
        (
            tenant.name,
            _namespaces_text(tenant),
            f"{tenant.per_mille / 10:g}%",
            ", ".join(tenant.resources),
            _while_text(tenant, rules.signals),
        )
        for tenant in rules.tenants
    ]
    if not rows:
        return []
    head = ("TENANT", "NAMESPACES", "OVERCOMMIT", "RESOURCES", "WHILE")
    return [*table(head, [*rows, ("-", "all others", "100%", "all", "-")], width), *WHERE_TENANTS_COUNT, ""]


def _namespaces_text(tenant: Tenant) -> str:
    labels = [f"{key}={'|'.join(values)}" for key, values in tenant.namespace_labels.items()]
    return " ".join((*tenant.namespaces, *labels)) or "all"


def _while_text(tenant: Tenant, signals: Mapping[str, Signal]) -> str:
    if tenant.per_mille <= 1000 or not tenant.bounds:
        return "-"
    return ", ".join(
        f"{bound.signal} {_bound_text(bound.filter, signals[bound.signal].unit)}" for bound in tenant.bounds
    )


def _bound_text(limits: RuleFilter | None, unit: Unit) -> str:
    """Return the limits without what goes without saying: that a sample is needed."""
    return " ".join(part for part in filter_text(limits, unit).split(", ") if not part.startswith("missing"))


def _curve_text(curve: Curve, unit: Unit) -> str:
    return ", ".join(f"{y:g} at {amount_text(x, unit)}" for x, y in zip(curve.xs, curve.ys, strict=True))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
