"""What the queue asks the plugins of each profile: in which order Pods are tried, who enters, which event helps whom.

A plugin that raises or breaks its contract harms the one Pod only that it was asked about.

Source: kube-scheduler v1.37 backend/queue/scheduling_queue.go isPodWorthRequeuing (behaviour).
"""

from __future__ import annotations

import enum
import logging
import math
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from scheduler.framework.events import ClusterEvent, EventInterest, QueueingHint, Resource
from scheduler.framework.plugin import PreEnqueuePlugin, QueueSortPlugin
from scheduler.framework.plugin_faults import is_refusal, raised, wrong
from scheduler.framework.queued import QueuedEntity
from scheduler.model.pods import PodInfo
from scheduler.rules.compiled import CompiledRules

_log = logging.getLogger(__name__)

_KINDS = {int: "a number", float: "a number", bool: "a number", str: "a text", bytes: "bytes"}
_FIRST = (0,)


class QueueProfile(Protocol):
    """What the queue reads of a profile; `framework.profile.Profile` has it."""

    @property
    def queue_sort(self) -> QueueSortPlugin: ...

    @property
    def pre_enqueue(self) -> tuple[PreEnqueuePlugin, ...]: ...

    @property
    def events(self) -> Mapping[str, tuple[EventInterest, ...]]: ...


class SortKey:
    """Keys that compare with each other: tuples with the same kinds of values in the same places.

    An entity without such a key gets a `fault` and comes first, so that its attempt fails at once.
    """

    def __init__(self, plugin: QueueSortPlugin) -> None:
        self._plugin = plugin
        self._kinds: list[str | None] | None = None

    def __call__(self, entity: QueuedEntity) -> tuple[Any, ...]:
        try:
            key: Any = self._plugin.sort_key(entity)
        except Exception as error:  # noqa: BLE001 - a plugin's fault fails this Pod's attempt only
            entity.fault = raised(self._plugin, "QueueSort", error)
            return _FIRST
        kinds = [_KINDS.get(type(value)) for value in key] if type(key) is tuple else None
        # NaN, which alone is unequal to itself, is neither before nor after another number.
        if not kinds or None in kinds or any(value != value for value in key):
            return self._wrong(entity, key, "a tuple of numbers, texts or bytes, none of them NaN")
        if self._kinds is None:
            self._kinds = kinds
        elif kinds != self._kinds:
            return self._wrong(entity, key, f"a tuple of {', '.join(map(str, self._kinds))} as before")
        return (1, *key)

    def _wrong(self, entity: QueuedEntity, key: object, expected: str) -> tuple[Any, ...]:
        entity.fault = wrong(self._plugin, "QueueSort", "", key, expected)
        return _FIRST


class QueueingStrategy(enum.IntEnum):
    """Where an event sends an entity; of several events the greatest wins."""

    SKIP = 0
    AFTER_BACKOFF = 1
    SPREAD = 2
    """To the active queue without backoff, but not all at once."""
    IMMEDIATELY = 3


class QueuePlugins:
    """PreEnqueue and queueing hints; `rules` returns the rules in force."""

    def __init__(self, profiles: Mapping[str, QueueProfile], rules: Callable[[], CompiledRules]) -> None:
        self._profiles = profiles
        self._rules = rules

    def is_of_interest(self, event: ClusterEvent) -> bool:
        """Return whether any plugin asked for the event, or it is one that no plugin has to ask for."""
        if event.is_wildcard or event.rules:
            return True
        profiles = self._profiles.values()
        return any(i.covers(event) for profile in profiles for interests in profile.events.values() for i in interests)

    def strategy(self, entity: QueuedEntity, event: ClusterEvent) -> QueueingStrategy:
        """Return what an event does for a waiting entity; a group goes as far as its luckiest member."""
        if entity.waits_for_update:
            return QueueingStrategy.SKIP
        if event.is_wildcard:
            return QueueingStrategy.AFTER_BACKOFF
        if entity.gated_by and not self._is_for_gate(entity, event):
            return QueueingStrategy.SKIP
        if not entity.rejected_by:
            return QueueingStrategy.AFTER_BACKOFF
        if event.resource in (Resource.SIGNALS, Resource.RULES):
            return self._rules_strategy(entity, event)
        is_helped = self._is_hinted(entity, event) or self._is_freed(entity, event)
        return QueueingStrategy.AFTER_BACKOFF if is_helped else QueueingStrategy.SKIP

    def softens_at_s(self, entity: QueuedEntity, now_s: float) -> float:
        """Return when the next of the rules that refused the entity will only score for it, inf for never."""
        if not entity.rejected_rules:
            return math.inf
        waited_s = entity.waited_s(now_s)
        return now_s - waited_s + self._rules().soft_after_s(entity.rejected_rules, waited_s)

    def run_pre_enqueue(self, entity: QueuedEntity) -> None:
        """Set `gated_by` to the first plugin that keeps the entity out, the one that did so last time first.

        A plugin that raises lets it in with a `fault`, so that its attempt tells the Pod's owner.
        """
        entity.fault = None
        gate = "" if entity.problem else next((g for m in entity.members if (g := self._gate(m, entity))), "")
        entity.gated_by = gate
        if gate:
            entity.rejected_by |= {gate}

    def _gate(self, pod: PodInfo, entity: QueuedEntity) -> str:
        plugins = self._profiles[pod.pod.spec.scheduler_name].pre_enqueue
        for plugin in sorted(plugins, key=lambda plugin: plugin.name != entity.gated_by):
            try:
                refusal: object = plugin.pre_enqueue(pod)
            except Exception as error:  # noqa: BLE001 - a plugin's fault fails this Pod's attempt only
                entity.fault = entity.fault or raised(plugin, "PreEnqueue", error)
                continue
            if refusal is None:
                continue
            if is_refusal(refusal):
                return plugin.name
            entity.fault = entity.fault or wrong(plugin, "PreEnqueue", "", refusal, "a refusal or None")
        return ""

    def _rules_strategy(self, entity: QueuedEntity, event: ClusterEvent) -> QueueingStrategy:
        concerned = bool(entity.rejected_rules & event.rules) and any(
            event.concerned.covers(member.namespace, member.labels) for member in entity.members
        )
        if not concerned and not entity.rejected_rules:
            # Refused by plugins that read signals without rules: they have to ask for these events.
            concerned = self._is_hinted(entity, event)
        if not concerned:
            return QueueingStrategy.SKIP
        return QueueingStrategy.IMMEDIATELY if event.resource is Resource.RULES else QueueingStrategy.SPREAD

    def _is_freed(self, entity: QueuedEntity, event: ClusterEvent) -> bool:
        """Return whether the event may end what a rule that counts has said."""
        refusing = entity.rejected_rules
        return bool(refusing) and any(self._rules().may_free(refusing, one, event) for one in entity.members)

    def _is_for_gate(self, entity: QueuedEntity, event: ClusterEvent) -> bool:
        interests = self._profiles[entity.pod.pod.spec.scheduler_name].events.get(entity.gated_by, ())
        return any(interest.covers(event) for interest in interests)

    def _is_hinted(self, entity: QueuedEntity, event: ClusterEvent) -> bool:
        for member in entity.members:
            events = self._profiles[member.pod.spec.scheduler_name].events
            for plugin in entity.rejected_by:
                for interest in events.get(plugin, ()):
                    if interest.covers(event) and _ask(plugin, interest, member, event):
                        return True
        return False


def _ask(plugin: str, interest: EventInterest, pod: PodInfo, event: ClusterEvent) -> bool:
    try:
        return interest.hint(pod, event) is QueueingHint.QUEUE
    except Exception:  # noqa: BLE001 - a broken hint must not strand the Pod: trying it again is the safe answer
        _log.exception("queueing hint of %s raised for Pod %s on %s; the Pod is retried", plugin, pod, event.label)
        return True
