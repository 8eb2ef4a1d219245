"""What the HTTPS pages need from the deciding thread, answered between two cycles."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from scheduler.decision.record import DecisionRecord
from scheduler.loop.cycle import World
from scheduler.loop.pages.pod_listing import NO_PODS, PodListing
from scheduler.loop.pages.signal_listing import NO_FIGURES, SignalListing, SignalsQuery
from scheduler.loop.ports import Clock
from scheduler.metrics import Family, Metrics
from scheduler.model.rules import Mode, Rule, Signal
from scheduler.model.signals import SignalColumn
from scheduler.model.snapshot import Snapshot
from scheduler.model.tenants import names_of_tenants
from scheduler.model.views import NodeView
from scheduler.plugins.signals import rule_weight, scores_of
from scheduler.rules.built_in import read_signal, refused_now

METRICS = "metrics"
MORE_METRICS = "metrics, more"
RESOURCES = "resources"
MORE_RESOURCES = "resources, more"
MORE_SIGNALS = "signals, more"
HEALTH = "health"

_encoder = msgspec.json.Encoder(enc_hook=lambda array: array.tolist())
_RECORD_FIELDS = tuple(field.name for field in dataclasses.fields(DecisionRecord))

_SLICE_S = 0.001
"""How long a slice of the metrics page is worked on, the family under way apart: all of it are 5 to 10 ms."""

_LISTING_LIFE_S = 30.0
"""How long a listing that nobody goes on with keeps its Pods."""


class Pages:
    """Brings gauges up to date when somebody looks, and renders them."""

    def __init__(self, world: World, metrics: Metrics, clock: Clock) -> None:
        self._world = world
        self._metrics = metrics
        self._clock = clock
        self._families: Iterator[Family[Any]] = iter(())
        self._listing: PodListing | None = None
        self._listing_ends_s = 0.0
        self._signals: SignalListing | None = None
        self._signals_end_s = 0.0

    def answer(self, what: str, has_synced: bool, is_deciding: bool, is_standby: bool = False) -> bytes:
        """Return what a page asks for, a slice at a time, so that decisions go on in between.

        The metrics page, which METRICS begins and MORE_METRICS goes on with until nothing is left. A PodListing, by
        RESOURCES and MORE_RESOURCES until NO_PODS: at once on a standby and before the first decision, as with
        kube-scheduler. Or the health checks as JSON: [[name, ok, text], …]; a standby that has its lists is ready.
        """
        if self._listing is not None and self._clock() >= self._listing_ends_s:
            self._listing = None
        if self._signals is not None and self._clock() >= self._signals_end_s:
            self._signals = None
        if what in (METRICS, MORE_METRICS):
            return self._next_families(what == METRICS)
        if what in (RESOURCES, MORE_RESOURCES):
            return self._next_pods(what == RESOURCES, is_deciding and not is_standby)
        if what == MORE_SIGNALS:
            return self._next_signals()
        checks = [("caches-synced", has_synced, "" if has_synced else "the first lists have not come yet")]
        if not is_standby:
            checks.append(("deciding", is_deciding, "" if is_deciding else "waiting for the first lists and answers"))
        return msgspec.json.encode(checks)

    def decisions(self, after: int | None, limit: int) -> bytes:
        """Return `limit` records as JSON, oldest first: those that come after a number, else the newest.

        `next` is what to ask with as `after` to go on. Numbers that are not finite become null.
        """
        ring = self._world.records
        first = max(ring.n_added - limit, 0) if after is None else after
        found = ring.after(first, limit)
        decisions = [{"number": number, **_told(record)} for number, record in found]
        return _encoder.encode({"next": found[-1][0] if found else min(first, ring.n_added), "decisions": decisions})

    def signals(self, query: SignalsQuery) -> bytes:
        """Return the first slice of a SignalListing; MORE_SIGNALS goes on with it until NO_FIGURES."""
        self._signals = SignalListing(self._world.cache, self._world.signals, self._clock, query)
        return self._next_signals()

    def _next_signals(self) -> bytes:
        if self._signals is None:
            return NO_FIGURES
        self._signals_end_s = self._clock() + _LISTING_LIFE_S
        slice_ = self._signals.slice()
        if slice_ == NO_FIGURES:
            self._signals = None
        return slice_

    def _next_families(self, is_first: bool) -> bytes:
        began_s = self._clock()
        if is_first:
            self._update()
            self._families = iter(self._metrics.families)
        parts: list[bytes] = []
        for family in self._families:
            parts.append(family.render())
            if parts[-1] and self._clock() - began_s >= _SLICE_S:
                break
        return b"".join(parts)

    def _next_pods(self, is_first: bool, is_shown: bool) -> bytes:
        if is_first:
            self._listing = PodListing(self._world.cache, self._world.queue) if is_shown else None
        if self._listing is None:
            return NO_PODS
        self._listing_ends_s = self._clock() + _LISTING_LIFE_S
        slice_ = self._listing.slice()
        if slice_ == NO_PODS:
            self._listing = None
        return slice_

    def _update(self) -> None:
        metrics, cache, queue = self._metrics, self._world.cache, self._world.queue
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
        self._update_signals()

    def _update_signals(self) -> None:
        metrics, nodes, now_s = self._metrics, NodeView(self._world.cache.state.nodes), self._clock()
        table = self._world.signals.freeze(nodes, now_s)
        metrics.keep_signals(table.rules.signals)
        metrics.keep_rules([rule.name for rule in table.rules.rules] + names_of_tenants(table.rules))
        metrics.rules_loaded().set(len(table.rules.rules))
        for name, signal in table.rules.asked.items():
            metrics.signal_max_age(name).set(signal.max_age_s)
            self._update_signal(name, table.columns.get(name), nodes)
        self._update_rules(self._world.cache.snapshot(table, now_s))

    def _update_signal(self, name: str, column: SignalColumn | None, nodes: NodeView) -> None:
        metrics = self._metrics
        if column is None:
            metrics.set_signal_state(name, "absent")
            metrics.signal_coverage(name).set(0.0)
            return
        metrics.set_signal_state(name, column.freshness.value)
        metrics.signal_age(name).set(column.age_s)
        covered = int(np.count_nonzero(column.has_sample & nodes.alive))
        metrics.signal_coverage(name).set(covered / max(1, nodes.n_alive))

    def _update_rules(self, snapshot: Snapshot) -> None:
        table, nodes = snapshot.signals, snapshot.nodes
        for rule in table.rules.rules:
            self._metrics.rule_attempts(rule.name)  # on the page from the start, at 0
            if rule.is_on_trial:
                for family in (
                    self._metrics.rule_shadow_attempts,
                    self._metrics.rule_shadow_refusals,
                    self._metrics.rule_shadow_changes,
                ):
                    family(rule.name)
            if rule.score is not None:
                self._metrics.rule_weight(rule.name).set(rule_weight(rule.weight, table))
                signal = table.rules.signals.get(rule.signal)
                if signal is None or not signal.depends_on_pod:
                    self._metrics.rule_score_spread(rule.name).set(_score_spread(rule, snapshot))
            if not rule.refuses:
                continue
            self._metrics.rule_refusals(rule.name)
            if rule.filter is None:
                continue
            built_in = read_signal(rule, snapshot)
            if built_in is not None:
                self._update_built_in(rule, built_in, snapshot)
                continue
            tripped = table.tripped.get(rule.name)
            refused = 0
            if tripped is not None and rule.mode is not Mode.SHADOW:
                refused = int(np.count_nonzero(tripped & nodes.alive))
            self._metrics.rule_refused_nodes(rule.name).set(refused)
            self._metrics.rule_valve_open(rule.name).set(rule.name in table.open_valves)

    def _update_built_in(self, rule: Rule, signal: Signal, snapshot: Snapshot) -> None:
        """Tell how many nodes a rule refuses now, where that is the same for all Pods."""
        refused = None if signal.depends_on_pod or rule.mode is Mode.SHADOW else refused_now(rule, None, snapshot)
        n_refused = 0 if refused is None else int(np.count_nonzero(refused & snapshot.nodes.alive))
        self._metrics.rule_refused_nodes(rule.name).set(n_refused)


def _score_spread(rule: Rule, snapshot: Snapshot) -> float:
    """Return highest less lowest score that the rule gives to a node now; most scores are known from decisions."""
    nodes = snapshot.nodes
    if nodes.n_alive == 0:
        return 0.0
    scores = scores_of(rule, None, snapshot)
    if nodes.n_alive != nodes.n_rows:
        scores = scores[nodes.alive]
    return float(scores.max() - scores.min())


def _told(record: DecisionRecord) -> dict[str, Any]:
    return {**{name: getattr(record, name) for name in _RECORD_FIELDS}, "margin": record.margin}
