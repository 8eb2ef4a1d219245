"""What /metrics asks: the deciding process' own families, with the gauges brought up to date when somebody looks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from scheduler.loop.pages.query import ListingQuery, PageContext
from scheduler.metrics import Family, Metrics
from scheduler.model.rules import Mode, Rule, Signal
from scheduler.model.signals import SignalColumn
from scheduler.model.snapshot import Snapshot
from scheduler.model.tenants import names_of_tenants
from scheduler.model.views import NodeView
from scheduler.plugins.signals import rule_weight, scores_of
from scheduler.rules.built_in import read_signal, refused_now

_SLICE_S = 0.001
"""How long a slice is worked on, the family under way apart: all of the page are 5 to 10 ms."""


class MetricsQuery(ListingQuery, frozen=True):
    """All families, in Prometheus' text format."""

    def slices(self, context: PageContext) -> Iterator[bytes]:
        began_s = context.clock()
        _update(context)
        families = iter(context.metrics.families)
        while parts := _rendered(families, context, began_s):
            yield b"".join(parts)
            began_s = context.clock()


def _rendered(families: Iterator[Family[Any]], context: PageContext, began_s: float) -> list[bytes]:
    """Return the texts of the next families, without those that have no samples."""
    parts: list[bytes] = []
    for family in families:
        text = family.render()
        if text:
            parts.append(text)
            if context.clock() - began_s >= _SLICE_S:
                break
    return parts


def _update(context: PageContext) -> None:
    metrics, cache, queue = context.metrics, context.cache, context.queue
    metrics.settle()
    # The last two are those of Pod groups, whose Pods are refused by name: they wait as unschedulable.
    for name, count in {**queue.counts(), "incomplete": 0, "pending": 0}.items():
        metrics.pending_pods(name).set(count)
    metrics.unschedulable_pods.drop("plugin", lambda _: False)
    for (plugin, profile), count in queue.counts_by_plugin().items():
        metrics.unschedulable_pods(plugin, profile).set(count)
    for name, count in cache.counts().items():
        metrics.cache_size(name).set(count)
    metrics.unreadable_objects("Node").set(len(cache.unreadable_nodes))
    metrics.unreadable_objects("Pod").set(len(cache.unreadable_pods))
    for kind, known in cache.unreadable_objects.items():
        metrics.unreadable_objects(kind).set(len(known))
    metrics.unreadable_objects("RealAllocatable").set(len(cache.state.nodes.unread_figures))
    _update_signals(context)


def _update_signals(context: PageContext) -> None:
    metrics, nodes, now_s = context.metrics, NodeView(context.cache.state.nodes), context.clock()
    table = context.signals.freeze(nodes, now_s)
    metrics.keep_signals(table.rules.signals)
    metrics.keep_rules([rule.name for rule in table.rules.rules] + names_of_tenants(table.rules))
    metrics.rules_loaded().set(len(table.rules.rules))
    for name, signal in table.rules.asked.items():
        metrics.signal_max_age(name).set(signal.max_age_s)
        _update_signal(metrics, name, table.columns.get(name), nodes)
    _update_rules(metrics, context.cache.snapshot(table, now_s))


def _update_signal(metrics: Metrics, name: str, column: SignalColumn | None, nodes: NodeView) -> None:
    if column is None:
        metrics.set_signal_state(name, "absent")
        metrics.signal_coverage(name).set(0.0)
        return
    metrics.set_signal_state(name, column.freshness.value)
    metrics.signal_age(name).set(column.age_s)
    covered = int(np.count_nonzero(column.has_sample & nodes.alive))
    metrics.signal_coverage(name).set(covered / max(1, nodes.n_alive))


def _update_rules(metrics: Metrics, snapshot: Snapshot) -> None:
    table, nodes = snapshot.signals, snapshot.nodes
    for rule in table.rules.rules:
        metrics.rule_attempts(rule.name)  # on the page from the start, at 0
        if rule.is_on_trial:
            for family in (
                metrics.rule_shadow_attempts,
                metrics.rule_shadow_refusals,
                metrics.rule_shadow_changes,
            ):
                family(rule.name)
        if rule.score is not None:
            metrics.rule_weight(rule.name).set(rule_weight(rule.weight, table))
            signal = table.rules.signals.get(rule.signal)
            if signal is None or not signal.depends_on_pod:
                metrics.rule_score_spread(rule.name).set(_score_spread(rule, snapshot))
        if not rule.refuses:
            continue
        metrics.rule_refusals(rule.name)
        if rule.filter is None:
            continue
        built_in = read_signal(rule, snapshot)
        if built_in is not None:
            _update_built_in(metrics, rule, built_in, snapshot)
            continue
        tripped = table.tripped.get(rule.name)
        refused = 0
        if tripped is not None and rule.mode is not Mode.SHADOW:
            refused = int(np.count_nonzero(tripped & nodes.alive))
        metrics.rule_refused_nodes(rule.name).set(refused)
        metrics.rule_valve_open(rule.name).set(rule.name in table.open_valves)


def _update_built_in(metrics: Metrics, rule: Rule, signal: Signal, snapshot: Snapshot) -> None:
    """Tell how many nodes a rule refuses now, where that is the same for all Pods."""
    refused = None if signal.depends_on_pod or rule.mode is Mode.SHADOW else refused_now(rule, None, snapshot)
    n_refused = 0 if refused is None else int(np.count_nonzero(refused & snapshot.nodes.alive))
    metrics.rule_refused_nodes(rule.name).set(n_refused)


def _score_spread(rule: Rule, snapshot: Snapshot) -> float:
    """Return highest less lowest score that the rule gives to a node now; most scores are known from decisions."""
    nodes = snapshot.nodes
    if nodes.n_alive == 0:
        return 0.0
    scores = scores_of(rule, None, snapshot)
    if nodes.n_alive != nodes.n_rows:
        scores = scores[nodes.alive]
    return float(scores.max() - scores.min())
