"""The cluster of one test: nodes, Pods that come and go, signals asked at their intervals, and what rules say of a Pod.

The asker with its resolver, the store and the plugins are those of `vane run`; here is only the timetable.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from scheduler.cluster.cache import Cache
from scheduler.loop.rule_updates.verdicts import learn
from scheduler.model.arrays import BoolArray, FloatArray
from scheduler.model.identity import NodeIdentity
from scheduler.model.pods import PodInfo
from scheduler.model.rules import RuleSet
from scheduler.model.signals import SignalColumn
from scheduler.model.snapshot import Snapshot
from scheduler.model.views import NodeView
from scheduler.rule_tests.model import RuleTest
from scheduler.rules.compiled import compiled_rules, indexes_for
from scheduler.rules.compiled_rule import CompiledRule
from scheduler.signals.answers import SignalAnswer
from scheduler.signals.asking.asker import AskContext, SignalAsker
from scheduler.signals.asking.client import QueryClient
from scheduler.signals.asking.query_errors import QueryError
from scheduler.signals.asking.resolver import NodeResolver
from scheduler.signals.columns.store import SignalStore

# Pods move before signals are asked, at one and the same time.
_PODS, _SIGNALS = 0, 1


class StandingClock:
    """Seconds since the start of the test; stands until it is moved."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@dataclass(frozen=True, slots=True)
class RuleVerdict:
    """What one rule says of all nodes for one Pod, or would say of one that it only watches.

    refused
        bool (n_rows,).
    scores, weight
        float64 (n_rows,) and what they count; None without a score for this Pod.
    column
        What the rule reads, None where it never had an answer.
    """

    concerns: bool
    acts: bool
    is_valve_open: bool
    refused: BoolArray
    scores: FloatArray | None
    weight: float | None
    column: SignalColumn | None


class ClusterUnderTest:
    """Moves on from moment to moment; what lies between happens in the order of time."""

    def __init__(self, rules: RuleSet, test: RuleTest, client: QueryClient, clock: StandingClock) -> None:
        self._rules = rules
        self._client = client
        self._clock = clock
        self._cache = Cache(indexes_for(()))
        for node in test.nodes:
            self._cache.set_node(node)
        for namespace in test.namespaces:
            self._cache.state.set_object(namespace)
        self._store = SignalStore(clock)
        self._resolver = self._identify()
        self._store.set_rules(rules)
        self.answers: dict[str, SignalAnswer] = {}
        self._due: list[tuple[float, int, int, Callable[[], None]]] = []
        self._number = itertools.count()
        self._plan(test)

    @property
    def node_names(self) -> list[str]:
        return list(self._cache.state.nodes.names)

    def move_to(self, at_s: float) -> None:
        """Let everything happen that is due up to and with this time."""
        while self._due and self._due[0][0] <= at_s:
            due_s, _, _, happen = heapq.heappop(self._due)
            self._clock.now_s = max(due_s, 0.0)
            happen()
        self._clock.now_s = at_s

    def verdicts(self, pod: PodInfo) -> dict[str, RuleVerdict]:
        """Return what each rule says of this Pod now, by the rule's name."""
        now_s = self._clock.now_s
        table = self._store.freeze(NodeView(self._cache.state.nodes), now_s)
        snapshot = self._cache.snapshot(table, now_s)
        return {rule.name: _verdict(rule, pod, snapshot) for rule in compiled_rules(snapshot).rules}

    def _plan(self, test: RuleTest) -> None:
        for placed in test.pods:
            self._at(placed.placed_s, _PODS, functools.partial(self._place, placed.pod))
            if placed.gone_s < math.inf:
                self._at(placed.gone_s, _PODS, functools.partial(self._remove, placed.pod.uid))
        for signal in self._rules.asked.values():
            asker = SignalAsker(signal, self._clock, lambda: 0.5, self._clock)
            self._at(0.0, _SIGNALS, functools.partial(self._ask, asker, 1))

    def _at(self, at_s: float, kind: int, happen: Callable[[], None]) -> None:
        heapq.heappush(self._due, (at_s, kind, next(self._number), happen))

    def _place(self, pod: PodInfo) -> None:
        self._cache.add_pod(pod)

    def _remove(self, uid: str) -> None:
        gone = self._cache.remove_pod(uid)
        if gone is not None:
            self._cache.state.remember(gone.pod, gone.node_name, self._clock.now_s)

    def _ask(self, asker: SignalAsker, n_asked: int) -> None:
        """Ask for one signal as the refresher does, and plan the next time: one interval after another from 0 on."""
        context = AskContext(self._client, lambda: self._resolver, self._rules.generation)
        try:
            answer = asker.ask(context)
        except QueryError as error:
            answer = asker.failure(error, self._rules.generation)
        self.answers[asker.signal.name] = answer
        self._store.publish(answer)
        learn(self._store, self._cache, answer, self._clock.now_s)
        self._at(n_asked * asker.signal.interval_s, _SIGNALS, functools.partial(self._ask, asker, n_asked + 1))

    def _identify(self) -> NodeResolver:
        identity = NodeIdentity.of(1, self._cache.nodes())
        self._store.add_identity(identity)
        return NodeResolver(identity)


def _verdict(one: CompiledRule, pod: PodInfo, snapshot: Snapshot) -> RuleVerdict:
    is_concerned = one.concerns(pod, snapshot.catalog.namespace_labels(pod.namespace))
    rule, is_open = one.rule, one.reading.is_valve_open(pod, snapshot)
    refused = np.zeros(snapshot.nodes.n_rows, dtype=np.bool_)
    if is_concerned and rule.refuses and not is_open:
        for rejection in one.rejections(pod, snapshot):
            refused |= rejection.mask
    is_scored = is_concerned and rule.score is not None
    return RuleVerdict(
        concerns=is_concerned,
        acts=is_concerned and rule.acts_on(pod),
        is_valve_open=is_open,
        refused=refused,
        scores=one.scores(pod, snapshot) if is_scored else None,
        weight=one.weight(snapshot) if is_scored else None,
        column=one.reading.column(pod, snapshot),
    )
