"""What `vane check --prometheus` writes: tables of signals and rules, then a line for everything that needs a look."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from scheduler.app.check.findings import Finding, Severity, findings_of
from scheduler.app.check.live_check import AskedSignal, LiveReport, RuleNow
from scheduler.app.check.table import table
from scheduler.errors import Problem
from scheduler.model.rules import FilterMissing, Mode
from scheduler.signals.asking.groupings import grouping_of
from scheduler.signals.asking.spacing import pace_problems
from scheduler.signals.format.units import duration_text
from scheduler.strict_yaml.report import problem_at

_SHOWN_STRANGERS: Final = 3


def notes_of(report: LiveReport) -> list[Finding]:
    """Return what needs a look, each at its place in a file; a signal without an answer fails the check."""
    silent = {one.signal.name for one in report.unanswered}
    of_signals = [
        Finding(Severity.ERROR if name in silent else Severity.WARNING, note) for name, note in _signal_notes(report)
    ]
    return [*of_signals, *findings_of((), _rule_notes(report))]


def report_lines(report: LiveReport, notes: Sequence[Finding], width: int | None = None) -> list[str]:
    lines = [*_signal_table(report, width), *_rule_table(report, width), *(str(note.problem) for note in notes)]
    n_silent = len(report.unanswered)
    counts = (_count(len(report.signals), "signal"), f"{n_silent} without an answer", _count(len(notes), "note"))
    return [*lines, ", ".join(counts)]


def _signal_table(report: LiveReport, width: int | None) -> list[str]:
    head = ("SIGNAL", "SERVER", "SERIES", "NODES", "DROPPED", "AGE", "MAX AGE", "EVERY", "TIME", "SAMPLES")
    return table(head, [_signal_row(one, report.n_nodes) for one in report.signals], width)


def _signal_row(one: AskedSignal, n_nodes: int | None) -> tuple[str, ...]:
    name, server = one.signal.name, one.signal.server or "-"
    took = f"{1000.0 * one.duration_s:.0f}ms"
    if one.answer.error:
        return (name, server, "no answer", "-", "-", "-", "-", "-", took, "-")
    return (
        name,
        server,
        str(one.answer.n_series),
        "-" if one.n_nodes is None else f"{one.n_nodes}/{n_nodes}",
        _drops(one, is_cluster_known=n_nodes is not None),
        f"{one.age_s:.0f}s" if one.answer.n_mapped else "-",
        duration_text(one.answer.max_age_s),
        duration_text(one.answer.spacing_s) if one.answer.spacing_s else "-",
        took,
        "-" if one.n_samples is None else f"{one.n_samples:,}",
    )


def _drops(one: AskedSignal, *, is_cluster_known: bool) -> str:
    drops = one.answer.drops
    counts = {name: getattr(drops, name) for name in drops.__struct_fields__}
    if not is_cluster_known:
        # Without known nodes every series is unmapped, which says nothing.
        counts["unmapped"] = 0
    return ", ".join(f"{name} {count}" for name, count in counts.items() if count) or "-"


def _rule_table(report: LiveReport, width: int | None) -> list[str]:
    head = ("RULE", "REFUSES NOW", "WEIGHT NOW", "CAPPED TO", "SHARE")
    return table(head, [_rule_row(one, report.n_nodes) for one in report.rules], width)


def _rule_row(one: RuleNow, n_nodes: int | None) -> tuple[str, ...]:
    weight = one.weight
    weights = ("-", "-", "-")
    if weight is not None:
        capped = f"{weight.effective:.4g}" if weight.is_capped else "-"
        weights = (f"{weight.written:.4g}", capped, f"{100.0 * weight.share:.0f}%")
    return (one.rule.name, _refuses(one, n_nodes), *weights)


def _refuses(one: RuleNow, n_nodes: int | None) -> str:
    if one.depends_on_pod and one.rule.refuses:
        return "by Pod"
    if one.n_refused is None or n_nodes is None:
        return "-"
    text = f"{one.n_refused}/{n_nodes}"
    if one.is_valve_open:
        return f"{text}, but for its valve"
    return f"{text}, in shadow" if one.rule.mode is Mode.SHADOW else text


def _signal_notes(report: LiveReport) -> Iterator[tuple[str, Problem]]:
    """Yield the name of a signal, and what is said of it."""
    for one in report.signals:
        name = one.signal.name
        for message in _messages(one, report.n_nodes):
            yield name, problem_at(one.signal.where, f"signal '{name}': {message}")


def _messages(one: AskedSignal, n_nodes: int | None) -> Iterator[str]:
    answer = one.answer
    if answer.error:
        yield f"no answer: {answer.error}"
        return
    if not answer.n_series:
        yield "no series. Nothing exports the metric, or a label in the query differs"
    for warning in answer.warnings:
        yield f"Prometheus warns: {warning}"
    if one.n_without_label:
        has = f"one has {', '.join(one.without_label)}" if one.without_label else "one has none"
        what = f"{one.n_without_label} of {answer.n_series} series have no label {one.signal.node_label}: {has}"
        yield f"{what}. Write as `node_label` one that all of them have, or let the query keep it"
    if one.orphans and answer.drops.unmapped > one.n_without_label:
        shown = "; ".join(_labels_text(labels) for labels in one.orphans)
        thing = grouping_of(one.signal).thing
        yield f"{answer.drops.unmapped} of {answer.n_series} series name no {thing} of this cluster, as {shown}"
    if one.strangers:
        shown = ", ".join(one.strangers[:_SHOWN_STRANGERS])
        yield f"{len(one.strangers)} of its series have a value of {one.signal.label} that no node has, as {shown}"
    if answer.drops.duplicate:
        yield f"{answer.drops.duplicate} series share a node. Aggregate in the query, or write `reduce: max`"
    paced = one.signal.paced(answer.spacing_s)
    yield from pace_problems(paced)
    if answer.n_mapped and one.age_s > paced.fresh_s:
        yield f"samples are {one.age_s:.0f}s old, fresh only up to {paced.fresh_s:g}s. Write a longer interval"
    if n_nodes and one.n_nodes is not None and one.n_nodes < n_nodes and answer.n_series:
        yield f"{n_nodes - one.n_nodes} of {n_nodes} nodes get no value"


def _rule_notes(report: LiveReport) -> Iterator[Problem]:
    for one in report.rules:
        rule, weight = one.rule, one.weight
        if weight is not None and weight.is_capped:
            what = f"weighs {weight.effective:.4g} instead of {weight.written:.4g}"
            cap = f"its share would be above {100.0 * rule.max_share:.4g}%"
            yield problem_at(rule.where, f"rule '{rule.name}': {what}, {cap}. Write `max_share: …` for more")
        if report.n_nodes and one.n_refused == report.n_nodes and not one.is_valve_open:
            is_missing = rule.filter is not None and rule.filter.missing is FilterMissing.REJECT
            why = ", by its limits or for lack of samples" if is_missing else ""
            yield problem_at(rule.where, f"rule '{rule.name}': refuses every node now{why}")


def _labels_text(labels: Mapping[str, str]) -> str:
    shown = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in sorted(labels.items()))
    return "{" + shown + "}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
