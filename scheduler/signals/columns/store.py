"""The signal store: the answers in force, kept for their time, as columns for one cycle after another.

`publish` and `set_rules` may be called by any thread and leave one immutable `Published` behind; `freeze` belongs
to the deciding thread and reads only that. So a cycle waits for no lock and never sees half a publication.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

import numpy as np
from cachetools import TLRUCache

from scheduler.model.identity import NodeIdentity
from scheduler.model.rules import Mode, Rule, RuleFilter, RuleSet
from scheduler.model.signals import SignalTable
from scheduler.model.views import NodeView
from scheduler.signals.answers import SignalAnswer, signature
from scheduler.signals.columns.freezer import Freezer
from scheduler.signals.columns.keyed import read_keyed
from scheduler.signals.columns.keys import CLUSTER_KEYS, CodedKeys, Keys
from scheduler.signals.columns.learned_effects import LearnedEffects
from scheduler.signals.columns.published import Held, Published, has_verdict_changed, joining_labels, paced
from scheduler.signals.columns.row_lags import key_lags
from scheduler.signals.columns.trips import Trips, ValveChange, advance, hold

_LOG = logging.getLogger(__name__)

# How long an answer is kept once it is absent: only its age is still of interest.
GRACE_S: Final = 300.0
_MAX_ANSWERS: Final = 4096
_MAX_IDENTITIES: Final = 64

_Key = tuple[str, str]
"""Signal name and signature: an answer to another question under the same name is another answer."""


class SignalStore:
    """Answers in, SignalTables out.

    Parameters
    ----------
    clock
        CLOCK_MONOTONIC seconds, the clock of `SignalAnswer.evaluated_at_s` and of `freeze`.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._answers: TLRUCache[_Key, Held] = TLRUCache(_MAX_ANSWERS, ttu=_kept_until, timer=clock)
        self._names: dict[int, tuple[str, ...]] = {0: ()}
        self._signatures: Mapping[str, str] = {}
        self._known_absent: frozenset[str] = frozenset()
        self._known_aged: frozenset[str] = frozenset()
        self._published = Published()
        self._freezer = Freezer()
        self.learned = LearnedEffects()

    @property
    def rules(self) -> RuleSet:
        """The rule set in force."""
        return self._published.rules

    @property
    def generation(self) -> int:
        """Grows with each publication, of answers or of rules."""
        return self._published.generation

    def answer(self, signal: str) -> SignalAnswer | None:
        """Return the answer in force of a signal, None if there is none."""
        held = self._published.held.get(signal)
        return None if held is None else held.answer

    def is_suspect(self, signal: str) -> bool:
        """Whether the last answer to a signal was doubtful, so that its rules only score."""
        held = self._published.held.get(signal)
        return held is not None and held.is_suspect

    def add_identity(self, identity: NodeIdentity) -> None:
        """Remember which nodes the answers of this generation speak of; to be called before one can arrive."""
        with self._lock:
            self._names[identity.generation] = identity.names
            for generation in sorted(self._names)[:-_MAX_IDENTITIES]:
                del self._names[generation]

    def set_rules(self, rules: RuleSet) -> frozenset[str]:
        """Put a rule set in force; answers to unchanged signals stay, and so do the trips of unchanged filters.

        Returns
        -------
        frozenset of rule names
            The rules whose verdict may have changed for some Pod, the ones that are gone included.
        """
        with self._lock:
            old, old_signatures = self._published, self._signatures
            self._signatures = {name: signature(signal) for name, signal in rules.signals.items()}
            held = self._cached()
            before = {rule.name: rule for rule in old.rules.judged if rule.refuses}
            changed = {name for name, rule in before.items() if rule.mode is not Mode.SHADOW}
            trips: dict[str, Trips] = {}
            for rule in rules.judged:
                if not rule.refuses:
                    continue
                known = before.get(rule.name)
                is_measured_alike = old_signatures.get(rule.signal) == self._signatures.get(rule.signal)
                is_same = is_measured_alike and _refuses_alike(known, rule)
                if is_same and known is not None and _concerns_alike(known, rule):
                    changed.discard(rule.name)
                elif rule.mode is not Mode.SHADOW:
                    changed.add(rule.name)
                if rule.filter is not None and rule.signal in held:
                    bits = old.trips.get(rule.name) if is_same else None
                    trips[rule.name] = _advanced(rule.filter, held[rule.signal], bits, bits)
            asked = paced(rules, held, old.asked)
            self._published = Published(rules, held, trips, old.generation + 1, joining_labels(rules), asked)
            return frozenset(changed)

    def publish(self, answer: SignalAnswer) -> frozenset[str]:
        """Put an answer in force; a failure leaves the previous one there, until that is too old.

        A doubtful answer does not displace a good one: its values are used only where no good one is in force.

        Returns
        -------
        frozenset of rule names
            The rules that refuse another set of nodes now, to one side or the other; none in shadow.
        """
        with self._lock:
            if answer.error:
                return frozenset()
            key = (answer.signal, answer.signature)
            before = self._in_force(key)
            held = self._held(answer, before)
            if held is None:
                return frozenset()
            self._answers[key] = held
            if self._signatures.get(answer.signal) != answer.signature:
                # Of a rule set that is about to be swapped in, or of one that is gone.
                return frozenset()
            self._known_absent -= {answer.signal}
            return self._republish(answer.signal, before, held)

    def expire(self, now_s: float) -> frozenset[str]:
        """Return the rules with a filter for which the signal has become absent since the last call.

        No publication reports that, so call it now and then, e.g. each second.
        """
        published = self._published
        absent = frozenset(name for name, held in published.held.items() if not held.is_in_force(now_s))
        aged = frozenset(rule.name for rule in published.rules.judged if _is_aged(rule, published.held, now_s))
        with self._lock:
            newly, newly_aged = absent - self._known_absent, aged - self._known_aged
            self._known_absent, self._known_aged = absent, aged
            if absent and self._answers.expire(now_s):
                published = self._published
                held = self._cached()
                kept = {rule.name for rule in published.rules.judged if rule.signal in held}
                trips = {name: trips for name, trips in published.trips.items() if name in kept}
                self._published = replace(published, held=held, trips=trips, generation=published.generation + 1)
        judged = (rule for rule in published.rules.judged if rule.filter and rule.mode is not Mode.SHADOW)
        return frozenset(rule.name for rule in judged if rule.signal in newly or rule.name in newly_aged)

    def freeze(self, nodes: NodeView, now_s: float) -> SignalTable:
        """Return rules, columns, trips and open valves for one cycle; only for the deciding thread.

        Arrays are (n_rows,) of `nodes`, read-only and shared by cycles.
        """
        return self._freezer.freeze(self._published, nodes, now_s, self.learned.amounts)

    def drain_valve_changes(self) -> list[ValveChange]:
        """Return the valves that opened or closed in `freeze` since the last call: to be logged and counted."""
        return self._freezer.drain_changes()

    def _in_force(self, key: _Key) -> Held | None:
        held = self._answers.get(key)
        return held if held is not None and held.is_in_force(self._clock()) else None

    def _cached(self) -> dict[str, Held]:
        found = {key[0]: self._answers.get(key) for key in self._signatures.items()}
        return {name: held for name, held in found.items() if held is not None}

    def _held(self, answer: SignalAnswer, before: Held | None) -> Held | None:
        """Return what to keep for an answer, None where it changes nothing or cannot be read."""
        if before is not None and answer.evaluated_at_s < before.answer.evaluated_at_s:
            return None
        if before is not None and answer.is_suspect and not before.is_partial:
            return None if before.is_suspect else replace(before, is_suspect=True)
        keys: Keys
        if answer.value is not None:
            keys, values = CLUSTER_KEYS, np.array([answer.value])
        elif answer.keyed is not None:
            keys, values = read_keyed(answer, answer.keyed, self._names.get(answer.identity_generation, ()), before)
        elif answer.by_label:
            keys, values = tuple(answer.by_label), np.array(list(answer.by_label.values()))
        else:
            keys, values = self._names.get(answer.identity_generation, ()), answer.node_values()
        if len(keys) != len(values):
            details = {"signal": answer.signal, "identity_generation": answer.identity_generation}
            _LOG.error("an answer for unknown nodes was dropped", extra=details)
            return None
        values.flags.writeable = False
        as_of_s = answer.evaluated_at_s - answer.lag_s
        lags_s = None if isinstance(keys, CodedKeys) else key_lags(answer.lag_by_key, answer.lag_s, keys)
        held = Held(answer, keys, values, as_of_s, answer.is_suspect, is_partial=answer.is_suspect, lags_s=lags_s)
        return held.smoothed_from(before)

    def _republish(self, signal: str, before: Held | None, held: Held) -> frozenset[str]:
        old = self._published
        trips = dict(old.trips)
        changed = set()
        for rule in old.rules.judged:
            if rule.signal != signal or rule.filter is None:
                continue
            last = old.trips.get(rule.name)
            bits = last if before is not None else None
            trips[rule.name] = _advanced(rule.filter, held, bits, last)
            known = (before, bits) if before is not None and bits is not None else None
            if _is_aged(rule, old.held, self._clock()):
                known = None
            is_changed = has_verdict_changed(rule.filter, known, (held, trips[rule.name]))
            if is_changed and rule.mode is not Mode.SHADOW:
                changed.add(rule.name)
        held_by_signal = {**old.held, signal: held}
        asked = paced(old.rules, held_by_signal, old.asked)
        self._published = replace(old, held=held_by_signal, trips=trips, generation=old.generation + 1, asked=asked)
        return frozenset(changed)


def _kept_until(_key: _Key, held: Held, _now_s: float) -> float:
    return held.as_of_s + held.answer.max_age_s + GRACE_S


def _is_aged(rule: Rule, held: Mapping[str, Held], now_s: float) -> bool:
    """Whether the samples have ended for a rule, be it that they have not for others."""
    known = held.get(rule.signal)
    return rule.max_age_s > 0.0 and known is not None and now_s - known.as_of_s > rule.max_age_s


def _concerns_alike(known: Rule, rule: Rule) -> bool:
    before = (known.match, known.mode, known.canary, known.max_age_s)
    return before == (rule.match, rule.mode, rule.canary, rule.max_age_s)


def _refuses_alike(known: Rule | None, rule: Rule) -> bool:
    if known is None or known.label_match != rule.label_match:
        return False
    return (known.signal, known.filter) == (rule.signal, rule.filter)


def _advanced(limits: RuleFilter, held: Held, before: Trips | None, last: Trips | None) -> Trips:
    """Return the trip bits after a sample; a rule that is new or changed starts clear.

    `before` are the bits while their samples were in force, `last` those of whenever: a hold time outlasts samples.
    """
    wanted = advance(limits, held.values, None if before is None else before.along(held.keys))
    if limits.hold_s <= 0.0:
        return Trips(held.keys, wanted)
    memory = None if last is None else last.held
    return Trips(held.keys, *hold(limits.hold_s, wanted, held.keys, held.sampled_at_s, memory))
