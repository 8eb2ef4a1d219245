"""What /metrics asks: the deciding process' own families, with the gauges updated at each scrape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from scheduler.loop.pages.query import ListingQuery, PageContext
from scheduler.metrics import Family, Metrics
from scheduler.model.rules import Mode
from scheduler.model.signals import SignalColumn
from scheduler.model.snapshot import Snapshot
from scheduler.model.tenants import names_of_tenants
from scheduler.model.views import NodeView
from scheduler.rules.compiled import compiled_rules
from scheduler.rules.compiled_rule import CompiledRule

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
    refused = list(queue.refused())
    by_plugin = Counter((plugin, one.pod.pod.spec.scheduler_name) for one in refused for plugin in one.rejected_by)
    for (plugin, profile), count in by_plugin.items():
        metrics.unschedulable_pods(plugin, profile).set(count)
    for name, count in cache.counts().items():
        metrics.cache_size(name).set(count)
    metrics.unreadable_objects("Node").set(len(cache.unreadable_nodes))
    metrics.unreadable_objects("Pod").set(len(cache.unreadable_pods))
    for kind, known in cache.unreadable_objects.items():
        metrics.unreadable_objects(kind).set(len(known))
    metrics.unreadable_objects("RealAllocatable").set(len(cache.state.nodes.unread_figures))
    _update_signals(context, Counter(rule for one in refused for rule in one.rejected_rules))


def _update_signals(context: PageContext, n_held: Mapping[str, int]) -> None:
    """Update signals and rules; `n_held` are the Pods that each rule holds back, by its name."""
    metrics, nodes, now_s = context.metrics, NodeView(context.cache.state.nodes), context.clock()
    table = context.signals.freeze(nodes, now_s)
    metrics.keep_signals(table.rules.signals)
    metrics.keep_rules([rule.name for rule in table.rules.rules] + names_of_tenants(table.rules))
    metrics.rules_loaded().set(len(table.rules.rules))
    for name, signal in table.rules.asked.items():
        column = table.columns.get(name)
        paced = signal if column is None else column.signal
        metrics.signal_max_age(name).set(paced.max_age_s)
        if paced.spacing_s:
            metrics.signal_spacing(name).set(paced.spacing_s)
        _update_signal(metrics, name, column, nodes)
    _update_rules(metrics, context.cache.snapshot(table, now_s), n_held)


def _update_signal(metrics: Metrics, name: str, column: SignalColumn | None, nodes: NodeView) -> None:
    if column is None:
        metrics.set_signal_state(name, "absent")
        metrics.signal_coverage(name).set(0.0)
        return
    metrics.set_signal_state(name, column.freshness.value)
    metrics.signal_age(name).set(column.age_s)
    covered = int(np.count_nonzero(column.has_sample & nodes.alive))
    metrics.signal_coverage(name).set(covered / max(1, nodes.n_alive))


def _update_rules(metrics: Metrics, snapshot: Snapshot, n_held: Mapping[str, int]) -> None:
    for one in compiled_rules(snapshot).rules:
        rule = one.rule
        metrics.rule_attempts(rule.name)  # on the page from the start, at 0
        if rule.is_on_trial:
            for family in (
                metrics.rule_shadow_attempts,
                metrics.rule_shadow_refusals,
                metrics.rule_shadow_changes,
            ):
                family(rule.name)
        if rule.score is not None:
            metrics.rule_weight(rule.name).set(one.weight(snapshot))
            if not one.reading.depends_on_pod:
                metrics.rule_score_spread(rule.name).set(_score_spread(one, snapshot))
        if rule.refuses:
            metrics.rule_refusals(rule.name)
            metrics.rule_held_pods(rule.name).set(n_held.get(rule.name, 0))
        if rule.filter is not None:
            metrics.rule_refused_nodes(rule.name).set(_n_refused(one, snapshot))
            if one.reading.is_asked:
                metrics.rule_valve_open(rule.name).set(rule.name in snapshot.signals.open_valves)


def _n_refused(one: CompiledRule, snapshot: Snapshot) -> int:
    """Return how many nodes a rule refuses now to all Pods alike, else for their samples to some Pod at least.

    What is read of the snapshot, and not asked for, counts where it is the same for all Pods.
    """
    if one.rule.mode is Mode.SHADOW:
        return 0
    if not one.reading.depends_on_pod:
        return int(np.count_nonzero(one.refused(snapshot)))
    is_asked = one.reading.is_asked
    tripped = snapshot.signals.tripped.get(one.name) if is_asked else one.reading.tripped(None, snapshot)
    return 0 if tripped is None else int(np.count_nonzero(tripped & snapshot.nodes.alive))


def _score_spread(one: CompiledRule, snapshot: Snapshot) -> float:
    """Return highest less lowest score that the rule gives to a node now; most scores are known from decisions."""
    nodes = snapshot.nodes
    if nodes.n_alive == 0:
        return 0.0
    scores = one.scores(None, snapshot)
    if nodes.n_alive != nodes.n_rows:
        scores = scores[nodes.alive]
    return float(scores.max() - scores.min())
