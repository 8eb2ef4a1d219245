"""CycleObserver: times the cycle. The core calls it at each lap; the clock is read here."""

from __future__ import annotations

from typing import Final

from scheduler.decision.record import DecisionRecord
from scheduler.loop.ports import Clock
from scheduler.metrics import Metrics
from scheduler.plugins.signals import SignalScore

EVALUATED: Final = frozenset({"PreFilter", "Filter", "PreScore", "Score"})
"""The points at which kube-scheduler counts `scheduler_plugin_evaluation_total`; it counts each node, we each call."""

_SAMPLED_EVERY: Final = 10
"""In one of so many attempts plugins are timed: kube-scheduler picks one in ten at random."""


_RULES_SCORE: Final = SignalScore.__name__


class CycleObserver:
    """Turns what `decide` tells of one attempt into durations of the extension points and, now and then, of plugins."""

    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._metrics = metrics
        self._clock = clock
        self._profile = ""
        self._began_s = 0.0
        self._lap_s = 0.0
        self._ran_s = 0.0
        self._n_attempts = 0
        self._is_sampled = False
        # Counted as plain numbers, 20 to 30 times per attempt, at a quarter of the cost; the page gets the sums.
        self._ran: dict[tuple[str, str], int] = {}
        self._ran_by_profile: dict[str, dict[tuple[str, str], int]] = {}
        self._covered: dict[str, int] = {}
        self._refused: dict[str, int] = {}
        self._shares: dict[str, float] = {}
        self._watched: dict[str, int] = {}
        self._would_refuse: dict[str, int] = {}
        self._would_change: dict[str, int] = {}
        metrics.before_page(self._show)

    def begin(self, profile: str, now_s: float) -> None:
        self._profile = profile
        self._ran = self._ran_by_profile.setdefault(profile, {})
        self._began_s = self._lap_s = self._ran_s = now_s
        self._is_sampled = self._n_attempts % _SAMPLED_EVERY == 0
        self._n_attempts += 1

    def lap(self, point: str, status: str) -> None:
        now_s = self._clock()
        self._metrics.extension_point_duration(point, self._profile, status).observe(now_s - self._lap_s)
        self._lap_s = self._ran_s = now_s

    def ran(self, point: str, plugin: str, status: str) -> None:
        key = (point, plugin)
        self._ran[key] = self._ran.get(key, 0) + 1
        if self._is_sampled:
            now_s = self._clock()
            self._metrics.plugin_execution_duration(plugin, point, status).observe(now_s - self._ran_s)
            self._ran_s = now_s

    def decided(self) -> float:
        """Count the whole of `decide`; return its seconds."""
        took_s = self._clock() - self._began_s
        self._metrics.scheduling_algorithm_duration().observe(took_s)
        return took_s

    def recorded(self, record: DecisionRecord) -> None:
        """Note what the rules had to say in one decision: a few steps for each rule, whatever the number of nodes."""
        for use in record.rules:
            self._covered[use.rule] = self._covered.get(use.rule, 0) + 1
            if not use.acts:
                self._watched[use.rule] = self._watched.get(use.rule, 0) + 1
        for refusal in record.refusals:
            if refusal.rule:
                self._refused[refusal.rule] = self._refused.get(refusal.rule, 0) + refusal.n_nodes
        for shadow in record.shadows:
            if shadow.n_refused:
                self._would_refuse[shadow.rule] = self._would_refuse.get(shadow.rule, 0) + shadow.n_refused
            if shadow.node is not None and shadow.node != record.node:
                self._would_change[shadow.rule] = self._would_change.get(shadow.rule, 0) + 1
        whole = sum(term.weight for term in record.terms)
        if whole > 0.0:
            self._shares |= {term.name: term.weight / whole for term in record.terms if term.plugin == _RULES_SCORE}

    def _show(self) -> None:
        for profile, counts in self._ran_by_profile.items():
            for (point, plugin), count in counts.items():
                if point in EVALUATED:
                    self._metrics.plugin_evaluation(point, plugin, profile).inc(count)
            counts.clear()
        for family, counts_by_rule in (
            (self._metrics.rule_attempts, self._covered),
            (self._metrics.rule_refusals, self._refused),
            (self._metrics.rule_shadow_attempts, self._watched),
            (self._metrics.rule_shadow_refusals, self._would_refuse),
            (self._metrics.rule_shadow_changes, self._would_change),
        ):
            for rule, count in counts_by_rule.items():
                family(rule).inc(count)
            counts_by_rule.clear()
        for rule, share in self._shares.items():
            self._metrics.rule_weight_share(rule).set(share)
        self._shares.clear()
