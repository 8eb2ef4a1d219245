"""What rules refuse now, and which Pods a change of that brings back: answers, rule sets, and passing time."""

from __future__ import annotations

import logging

from scheduler.cluster.cache import Cache
from scheduler.cluster.queue import SchedulingQueue
from scheduler.framework.events import rules_reloaded, signals_refreshed
from scheduler.kube.binder.messages import EventRequest, PodRef
from scheduler.loop.ports import Binder
from scheduler.loop.rule_updates.filled_nodes import FilledNodes
from scheduler.model.rules import RuleSet
from scheduler.model.tenants import concerned, reassigned
from scheduler.model.views import NodeView
from scheduler.rules.compiled import compile_rules
from scheduler.rules.pending_column import is_learned
from scheduler.signals.answers import SignalAnswer
from scheduler.signals.columns.store import SignalStore

log = logging.getLogger(__name__)

_NOTE_LIMIT = 1000


class Verdicts:
    """Puts answers and rule sets in force, and requeues the Pods that may be free now."""

    def __init__(
        self,
        signals: SignalStore,
        queue: SchedulingQueue,
        cache: Cache,
        binder: Binder,
        own_pod: PodRef,
        scheduler_name: str,
    ) -> None:
        self._signals = signals
        self._filled = FilledNodes(signals, cache)
        self._queue = queue
        self._cache = cache
        self._binder = binder
        self._own_pod = own_pod
        self._scheduler_name = scheduler_name
        self._asked: set[str] = set()

    def unanswered(self) -> frozenset[str]:
        """The signals that have not had a single answer yet."""
        return frozenset(name for name in self._signals.rules.asked if self._signals.answer(name) is None)

    def all_asked(self) -> bool:
        """Whether every signal has been asked at least once, with or without success."""
        return self._asked >= self._signals.rules.asked.keys()

    def answered(self, answer: SignalAnswer, now_s: float) -> None:
        self._asked.add(answer.signal)
        self._filled.look(now_s, answer.signal)
        changed = self._signals.publish(answer) | self._filled.freed_by_answer(answer.signal, now_s)
        changed = concerned(self._signals.rules, changed)
        if changed:
            self._queue.on_event(signals_refreshed(changed), now_s)
        learn(self._signals, self._cache, answer, now_s)

    def loaded(self, rules: RuleSet, now_s: float) -> None:
        """Swap the rule set; Pods that a changed rule had refused come back at once."""
        old = self._signals.rules
        changed = concerned(rules, concerned(old, self._signals.set_rules(rules))) | reassigned(old, rules)
        self._signals.learned.keep(rules.signals)
        log.info("rules are in force", extra={"generation": rules.generation, "rules": len(rules.rules)})
        if changed:
            self._queue.on_event(rules_reloaded(changed), now_s)

    def look_after(self, since_s: float, now_s: float) -> None:
        """Do what no message triggers, for the time since the last call.

        Windows of counts that have ended, signals that have become absent, valves that opened or closed in a cycle.
        """
        self._let_windows_pass(since_s, now_s)
        self._filled.look(now_s)
        changed = concerned(self._signals.rules, self._signals.expire(now_s))
        if changed:
            log.warning("signals have become absent", extra={"rules": sorted(changed)})
            self._queue.on_event(signals_refreshed(changed), now_s)
        bounds = {bound.name for tenant in self._signals.rules.tenants for bound in tenant.bounds}
        for change in self._signals.drain_valve_changes():
            if change.rule in bounds:
                state = "suspect: the tenant gets 100 %" if change.is_open else "healthy"
                log.warning("the samples behind a bound of a tenant are %s", state, extra={"bound": change.rule})
                continue
            state = "opened: the rule only scores" if change.is_open else "closed: the rule refuses again"
            log.warning("the valve of a rule has %s", state, extra={"rule": change.rule, "reason": change.reason})

    def _let_windows_pass(self, after_s: float, until_s: float) -> None:
        """Bring back the Pods that a count had refused for Pods whose window ended between two monotonic times.

        Pods that have gone stop counting then, which no event of the cluster tells.
        """
        state = self._cache.state
        ahead_s = state.unix_ahead_s
        for one in compile_rules(self._signals.rules, state.memo).rules:
            for match in one.reading.freed_by_passing(state.history, after_s + ahead_s, until_s + ahead_s):
                self._queue.on_event(signals_refreshed(frozenset({one.name}), match), until_s)

    def reload_refused(self, message: str) -> None:
        """Report in log and Event that a reload failed; the rules in force stay."""
        log.error("the rule files were not loaded, the previous rules stay in force: %s", message)
        note = f"the previous rules stay in force: {message}"
        self._binder.event(
            EventRequest(
                pod=self._own_pod,
                scheduler_name=self._scheduler_name,
                type="Warning",
                reason="RulesReloadFailed",
                action="Reloading",
                note=note if len(note) <= _NOTE_LIMIT else note[:_NOTE_LIMIT] + " ...",
            )
        )


def learn(signals: SignalStore, cache: Cache, answer: SignalAnswer, now_s: float) -> None:
    """Learn what Pods add to a signal: compare the samples of a good answer with those before it."""
    signal = signals.rules.signals.get(answer.signal)
    if signal is None or not is_learned(signal) or answer.error or answer.is_suspect:
        return
    table = signals.freeze(NodeView(cache.state.nodes), now_s)
    signals.learned.observe(signal.name, cache.snapshot(table, now_s))
