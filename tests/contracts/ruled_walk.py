"""Walks of `decisions`: one random world each, what happens in it, and each decision told to the last bit."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

import msgspec
import numpy as np

# What the package calls all this may move: these lines are all that another version has to be told of.
from scheduler.decision.decide import decide
from scheduler.decision.decision import Decision
from scheduler.decision.record import DecisionRecord, record_of
from scheduler.errors import UnsupportedPodError
from scheduler.model.identity import NodeIdentity
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from scheduler.model.views import NodeView
from scheduler.signals.asking.asker import AskContext, SignalAsker
from scheduler.signals.asking.client import QueryResult
from scheduler.signals.asking.resolver import NodeResolver
from scheduler.signals.asking.session import ResultSeries
from scheduler.signals.columns.store import SignalStore
from scheduler.signals.format.rule_files import parse_rule_files
from tests.builders import cluster_of, default_profile, make_node, object_of, pod_of
from tests.contracts.ruled_worlds import (
    EPOCH_S,
    NAMES,
    NAMESPACES,
    SIGNALS,
    Drawn,
    RuleText,
    bound,
    nominated,
    random_answer,
    random_node_fields,
    random_pod_fields,
    random_rules,
)
from tests.worlds import CHANGED_OBJECTS, EPHEMERAL, OBJECTS, random_node, random_pod

PROFILE = default_profile()
STEPS: Final = 6
DECISIONS_EACH_STEP: Final = 8
DECISIONS_EACH: Final = STEPS * DECISIONS_EACH_STEP
"""In one world."""


@dataclass
class Prometheus:
    """Answers one signal with what has been drawn, and its lag by timestamps or by seconds."""

    expr: str
    drawn: Drawn
    now_s: float

    def query(self, expr: str, lookback_s: float | None = None) -> QueryResult:
        if expr == self.expr:
            return self._result([ResultSeries(dict(labels), (0.0, text)) for labels, text in self.drawn.series])
        if expr.endswith("(late_s)"):
            late = {labels["node"]: lag_s for labels, lag_s in self.drawn.late}
            lags = ((labels, late.get(labels["node"], self.drawn.lag_s)) for labels, _ in self.drawn.series)
            return self._result([ResultSeries(dict(labels), (0.0, repr(lag_s))) for labels, lag_s in lags])
        at_s = EPOCH_S + self.now_s
        newest = ResultSeries({"vane_selector": "0"}, (0.0, repr(at_s - self.drawn.lag_s)))
        behind = (
            ResultSeries({"vane_selector": "0", **labels}, (0.0, repr(at_s - lag))) for labels, lag in self.drawn.late
        )
        return self._result([newest, *behind])

    def _result(self, series: list[ResultSeries]) -> QueryResult:
        return QueryResult(series, False, self.drawn.warnings, self.now_s, EPOCH_S + self.now_s)


@dataclass(frozen=True)
class Waiting:
    """A Pod that is not placed yet; `fields` are None for one that is decided about once and no more."""

    pod: PodInfo
    fields: Mapping[str, Any] | None = None


class Walk:
    """One world and the decisions in it; `hash` takes in what was decided, `drawn` what it was decided from."""

    def __init__(self, seed: str) -> None:
        self._random = random = Random(seed)
        self.seen: Counter[str] = Counter()
        self.hash = hashlib.blake2b(digest_size=16)
        self.drawn = hashlib.blake2b(digest_size=16)
        self._now_s = 1_000.0
        self._n_pods = self._n_identities = self._n_rule_sets = 0
        self._running: dict[str, Mapping[str, Any]] = {}
        self._nominated: list[tuple[str, Waiting]] = []
        self._askers: dict[str, SignalAsker] = {}
        self._samples: dict[str, dict[str, float]] = {}
        self._store = SignalStore(lambda: self._now_s)
        self._state = cluster_of((), objects=OBJECTS)
        self._state.unix_ahead_s = EPOCH_S
        for name, team in zip(NAMESPACES, ("red", "red", "blue"), strict=True):
            self._state.set_object(object_of("Namespace", {"metadata": {"name": name, "labels": {"team": team}}}))
        for name in NAMES[: random.randint(2, len(NAMES))]:
            self._set_node(name)
        self._identify()
        for _ in range(random.randint(0, 12)):
            self._place(self._new_pod(), random.choice(self._names()), random.choice((500.0, 3.0)))
        self._load()

    def carry_out(self) -> None:
        for _ in range(STEPS):
            if self._random.random() < 0.9:
                self._run()
                self._now_s += self._random.choice((0.0, 6.0))
            for name in self._text.signals:
                if SIGNALS[name].is_asked and self._random.random() < (0.95 if name == "taught" else 0.6):
                    self._ask(name)
            for change, chance in self._changes():
                if self._random.random() < chance:
                    change()
            for _ in range(DECISIONS_EACH_STEP):
                self._decide()
            self._now_s += self._random.choice((0.0, 0.02, 1.0, 15.0, 15.0, 31.0, 62.0))

    def _changes(self) -> Sequence[tuple[Callable[[], None], float]]:
        return (
            (self._load, 0.15),
            (self._change_node, 0.2),
            (self._leave, 0.3),
            (self._change_object, 0.2),
            (self._expire, 0.3),
        )

    # -- what happens ----------------------------------------------------------------------------------------

    def _names(self) -> list[str]:
        return [name for name in NAMES if self._state.nodes.row_of(name) is not None]

    def _row(self, name: str) -> int:
        return self._state.nodes.ensure_row(name)

    def _set_node(self, name: str) -> None:
        if self._random.random() < 0.08:
            node = random_node(self._random, name, image_bytes=300_000_000)
        else:
            node = make_node(**random_node_fields(self._random, name))
        self._draw(node)
        self._state.set_node(node)

    def _change_node(self) -> None:
        name = self._random.choice(NAMES)
        if self._random.random() < 0.3 and len(self._names()) > 2:
            self._state.remove_node(name)
        else:
            self._set_node(name)
        self._identify()

    def _identify(self) -> None:
        self._n_identities += 1
        nodes = [node for node in self._state.nodes.objects if node is not None]
        identity = NodeIdentity.of(self._n_identities, nodes)
        self._store.add_identity(identity)
        self._resolver = NodeResolver(identity)

    def _load(self) -> None:
        """Put a rule file in force, often one that is like the one before."""
        self._n_rule_sets += 1
        self._text: RuleText = random_rules(self._random)
        self._draw(self._text.text)
        self._rules = parse_rule_files({"rules.yaml": self._text.text.encode()}, self._n_rule_sets)
        self._store.set_rules(self._rules)
        self._store.learned.keep(self._rules.signals)

    def _ask(self, name: str) -> None:
        drawn = random_answer(self._random, name, self._names())
        self._draw((name, drawn.series, drawn.late, drawn.lag_s, drawn.warnings))
        signal = self._rules.signals[name]
        if name not in self._askers:
            self._askers[name] = SignalAsker(signal, lambda: self._now_s, lambda: 0.5, lambda: EPOCH_S + self._now_s)
        client = Prometheus(signal.expr, drawn, self._now_s)
        answer = self._askers[name].ask(AskContext(client, lambda: self._resolver, self._n_rule_sets))
        self._store.publish(answer)
        if name == "load" and not answer.is_suspect:
            self._samples[name] = {labels["node"]: float(text) for labels, text in drawn.series}
        if SIGNALS[name].pending == "learned" and not answer.is_suspect:
            self._store.learned.observe(name, self._snapshot())
            self.seen["effect learned"] += bool(self._store.learned.amounts.get(name))

    def _expire(self) -> None:
        self._store.expire(self._now_s)

    def _change_object(self) -> None:
        self._state.set_object(self._random.choice((*OBJECTS, *CHANGED_OBJECTS)))

    def _place(self, waiting: Waiting, node: str, since_s: float) -> None:
        """Bind a Pod; one that was bound long ago runs."""
        if waiting.fields is None:
            return
        bound_s = self._now_s - since_s
        runs_s = bound_s + 2.0 if since_s > 2.0 else None
        self._state.place(pod_of(bound(waiting.fields, node, bound_s, runs_s)), self._row(node))
        self._running[waiting.pod.uid] = waiting.fields

    def _placed(self) -> list[tuple[PodInfo, int]]:
        return [(pod, row) for row in sorted(self._state.pods) for pod in self._state.pods_on(row)]

    def _leave(self) -> None:
        for pod, row in self._random.sample(there := self._placed(), min(len(there), self._random.randint(1, 4))):
            self._remove(pod, row)

    def _remove(self, pod: PodInfo, row: int) -> None:
        self._state.displace(pod, row)
        self._state.remember(pod, self._state.nodes.names[row], self._now_s)

    def _run(self) -> None:
        """Let Pods that were bound begin to run."""
        for pod, row in self._placed():
            if pod.running_s == np.inf and self._random.random() < 0.9:
                node, bound_s = self._state.nodes.names[row], pod.bound_s - EPOCH_S
                running = bound(self._running[pod.uid], node, bound_s, self._now_s)
                self._state.renew(pod_of(running), row)

    def _new_pod(self) -> Waiting:
        self._n_pods += 1
        if self._random.random() < 0.06:
            pod = random_pod(self._random, f"guest-{self._n_pods % 6}", more_volumes=EPHEMERAL)
            self._draw(pod.pod)
            return Waiting(pod)
        fields = random_pod_fields(self._random, f"pod-{self._n_pods}")
        self._draw(fields)
        return Waiting(pod_of(fields), fields)

    def _snapshot(self) -> Snapshot:
        return Snapshot(self._state, self._store.freeze(NodeView(self._state.nodes), self._now_s), self._now_s)

    def _draw(self, what: object) -> None:
        self.drawn.update(msgspec.json.encode(what))

    # -- decisions -------------------------------------------------------------------------------------------

    def _decide(self) -> None:
        again = bool(self._nominated) and self._random.random() < 0.4
        waiting = self._nominated[0][1] if again else self._new_pod()
        pod, snapshot = waiting.pod, self._snapshot()
        if self._random.random() < 0.5:
            for plugin in PROFILE.followers:
                plugin.follow(snapshot)
        try:
            decision = decide(pod, snapshot, PROFILE)
        except UnsupportedPodError as error:
            self.seen["not built"] += 1
            self._hash(str(error))
            return
        record = record_of(pod, snapshot, decision, "vane", 0.0)
        self._hash(told(decision, record, snapshot))
        self._count(decision, record, snapshot)
        if decision.row >= 0 or again:
            self._forget_nomination(waiting)
        if decision.row >= 0:
            self._place(waiting, decision.node_name, 0.0)
        elif decision.nomination and not again:
            self._preempt(waiting, decision)

    def _preempt(self, waiting: Waiting, decision: Decision) -> None:
        node = decision.nomination or ""
        if waiting.fields is None or node not in self._names():
            return
        if self._random.random() < 0.8:
            for victim in decision.victims:
                self._remove(victim, self._row(node))
        fields = nominated(waiting.fields, node)
        promised = Waiting(pod_of(fields), waiting.fields)
        self._state.nominated.setdefault(node, {})[promised.pod.uid] = promised.pod
        self._state.epoch += 1
        self._nominated.append((node, promised))

    def _forget_nomination(self, waiting: Waiting) -> None:
        for node, one in [found for found in self._nominated if found[1] is waiting]:
            self._nominated.remove((node, one))
            del self._state.nominated[node][waiting.pod.uid]
            self._state.epoch += 1

    def _hash(self, what: object) -> None:
        self.hash.update(repr(what).encode())

    # -- what it was good for --------------------------------------------------------------------------------

    def _count(self, decision: Decision, record: DecisionRecord, snapshot: Snapshot) -> None:
        seen, rules = self.seen, self._text
        seen["placed" if decision.row >= 0 else "refused"] += 1
        seen["taken: the nominated node"] += decision.nominated
        seen["victims"] += bool(decision.victims)
        seen["victims, beside a rule's refusal"] += bool(decision.victims and decision.diagnosis.rules)
        seen["the record has a tenant"] += record.tenant is not None
        for refusal in decision.diagnosis.refusals:
            if refusal.rule:
                seen[f"refused by {rules.kind(refusal.rule)}"] += 1
                seen["refused for want of a sample"] += "without a sample" in refusal.reason
                seen["refused within limits, by clear or hold"] += self._is_within(refusal.rule, refusal.mask, snapshot)
        for term in decision.terms:
            if term.name in rules.signal:
                seen[f"scored by {rules.kind(term.name)}"] += len(set(term.contribution.tolist())) > 1
                seen["weighs as a signal says"] += "signal: burn, points" in rules.options[term.name]
                seen["capped by max_share"] += term.weight != term.written_weight
        for shadow in decision.shadows:
            if shadow.n_refused or shadow.row != decision.row:
                seen[f"only watched, and would change: {rules.kind(shadow.rule)}"] += 1
        for use in record.rules:
            options, signal = rules.options[use.rule], rules.signal[use.rule]
            seen[f"samples {use.freshness}"] += bool(signal)
            seen["a valve is open"] += use.is_valve_open
            seen["max_age is over"] += "max_age" in options and use.freshness != "fresh"
            if "canary" in options:
                seen["canary acts" if use.acts else "canary watches"] += 1
            if use.inflight > 0.0:
                seen[f"pending load, {SIGNALS[signal].pending}"] += 1

    def _is_within(self, rule: str, mask: Any, snapshot: Snapshot) -> bool:
        """Whether the rule refuses a node whose last sample is within its limit."""
        samples = self._samples.get(self._text.signal.get(rule, ""), {})
        which, limit = self._text.limit.get(rule, ("", 0.0))
        values = [samples.get(snapshot.nodes.names[row], np.nan) for row in np.flatnonzero(mask).tolist()]
        return any(0.0 <= value < limit if which == "max" else limit < value <= 1.0 for value in values)


def told(decision: Decision, record: DecisionRecord, snapshot: Snapshot) -> tuple[object, ...]:
    """Return what a decision and its record say, by names of nodes, as what `repr` writes out to the last bit."""
    names = snapshot.nodes.names

    def of(rows: Any) -> list[str]:
        return [names[row] for row in rows.tolist()]

    diagnosis = decision.diagnosis
    return (
        (decision.node_name, decision.seed, decision.nominated, of(decision.feasible), of(decision.best)),
        decision.total.tolist(),
        [(t.plugin, t.name, t.weight, t.values.tolist(), t.contribution.tolist()) for t in decision.terms],
        [(r.plugin, r.rule, int(r.code), r.reason, of(np.flatnonzero(r.mask))) for r in diagnosis.refusals],
        (diagnosis.prefilter_plugins, diagnosis.message(), record.n_nodes, record.best_nodes),
        (decision.nomination, [pod.key for pod in decision.victims], decision.preempted_by),
        [
            (s.rule, s.n_refused, s.refuses_chosen, None if s.row is None else of(np.array([s.row])), s.weight)
            for s in decision.shadows
        ],
        decision.shadow_fault,
        [(s.rule, s.n_refused, s.refuses_chosen, s.node, s.weight) for s in record.shadows],
        [
            (u.rule, u.signal, u.expr, u.freshness, u.age_s, u.value, u.inflight, u.smoothing_s, u.acts, u.key)
            for u in record.rules
        ],
        [(t.plugin, t.name, t.written_weight) for t in record.terms],
        [use.is_valve_open for use in record.rules],
        _told_of_tenant(record),
    )


def _told_of_tenant(record: DecisionRecord) -> object:
    use = record.tenant
    if use is None:
        return None
    bounds = [(one.signal, one.freshness, one.age_s, one.n_holding, one.value) for one in use.bounds]
    figures = [(one.resource, one.requested, one.request, one.most) for one in use.figures]
    return use.tenant, use.overcommit, use.n_publishing, bounds, use.node, figures
