"""What rules refuse now, and whom a change of that brings back: signals and rule sets as they arrive."""

from __future__ import annotations

import logging

from scheduler.cluster.queue import SchedulingQueue
from scheduler.framework.events import Action, ClusterEvent, Resource
from scheduler.kube.messages import EventRequest, PodRef
from scheduler.loop.ports import Binder
from scheduler.model.rules import RuleSet
from scheduler.signals.answers import SignalAnswer
from scheduler.signals.store import SignalStore

log = logging.getLogger(__name__)

_NOTE_LIMIT = 1000


class Verdicts:
    """Puts answers and rule sets in force, and requeues the Pods that may be free now."""

    def __init__(
        self, signals: SignalStore, queue: SchedulingQueue, binder: Binder, own_pod: PodRef, scheduler_name: str
    ) -> None:
        self._signals = signals
        self._queue = queue
        self._binder = binder
        self._own_pod = own_pod
        self._scheduler_name = scheduler_name
        self._asked: set[str] = set()

    def unanswered(self) -> frozenset[str]:
        """The signals that have not had a single answer yet."""
        return frozenset(name for name in self._signals.rules.signals if self._signals.answer(name) is None)

    def all_asked(self) -> bool:
        """Whether every signal has been asked at least once, with or without success."""
        return self._asked >= self._signals.rules.signals.keys()

    def answered(self, answer: SignalAnswer, now_s: float) -> None:
        self._asked.add(answer.signal)
        changed = self._signals.publish(answer)
        if changed:
            event = ClusterEvent(Resource.SIGNALS, Action.REFRESHED, "SignalsRefreshed", rules=changed)
            self._queue.on_event(event, now_s)

    def loaded(self, rules: RuleSet, now_s: float) -> None:
        """Swap the rule set; Pods that a changed rule had refused come back at once."""
        changed = self._signals.set_rules(rules)
        log.info("rules are in force", extra={"generation": rules.generation, "rules": len(rules.rules)})
        if changed:
            event = ClusterEvent(Resource.RULES, Action.REFRESHED, "RulesReloaded", rules=changed)
            self._queue.on_event(event, now_s)

    def reload_refused(self, message: str) -> None:
        """Say loudly that a reload failed; the rules in force stay."""
        log.error("the rule files were not loaded; the previous rules stay in force: %s", message)
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
