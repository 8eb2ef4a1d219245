"""DecisionRecord: what every decision leaves behind, enough to explain it without the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scheduler.decision.decision import Decision, Shadow, WeighedTerm
from scheduler.decision.tenant_record import TenantUse, tenant_use
from scheduler.framework.diagnosis import Refusal
from scheduler.model.arrays import FloatArray, IntArray
from scheduler.model.pods import PodInfo
from scheduler.model.rules import Rule
from scheduler.model.snapshot import Snapshot
from scheduler.rules.compiled import compiled_rules
from scheduler.rules.compiled_rule import CompiledRule
from scheduler.rules.reading import NO_ANSWER

BEST_NODES = 20

_MOST_REFUSALS = 100
_LONGEST_MESSAGE = 4_096
"""A Pod may be refused for a thousand reasons; the first hundred, and so much text, explain it as well."""

_RECORD_BYTES, _TERM_BYTES, _SMALL_BYTES = 1_500, 320, 200
"""Measured: a record without anything, a term without its numbers, a refusal or a rule's use with its text."""

_FIRST_DEPTH = 1_000
_DEEPER = 8


@dataclass(frozen=True, slots=True)
class RefusalCount:
    """How many nodes one plugin turned away for one reason."""

    plugin: str
    rule: str
    code: str
    reason: str
    n_nodes: int


@dataclass(slots=True)
class TermRecord:
    """One term over the best nodes: normalised values 0..100, and contributions in thousandths.

    `weight` is what it weighed in this decision, `written_weight` what the rule or the profile says. Never written once
    it is made, and not frozen, as RuleUse: with 50 rules a record would take half as long again.
    """

    plugin: str
    name: str
    weight: float
    values: IntArray | FloatArray
    contribution: IntArray
    written_weight: float


@dataclass(slots=True)
class RuleUse:
    """The sample behind a rule: what was asked, how old the answer was, the chosen node's value (NaN: none).

    `inflight` is what placed Pods add to that value, NaN where they add nothing to this signal. `smoothing_s` is the
    half-life with which the value is smoothed, 0 where it is as measured. `acts` is False where the rule only watched
    the Pod, `is_valve_open` True where its filter was suspended, `is_soft` True where the Pod had waited too long for
    it. `key` says which Pods read this value, where not all do: their workload, their number of cards, the zone that
    they call.
    """

    rule: str
    signal: str
    expr: str
    freshness: str
    age_s: float
    value: float
    inflight: float
    smoothing_s: float
    acts: bool
    is_valve_open: bool = False
    key: str = ""
    is_soft: bool = False


@dataclass(frozen=True, slots=True)
class ShadowRecord:
    """What a rule that only watched the Pod would have done.

    n_refused, refuses_chosen
        How many of the feasible nodes it would have turned away, and whether the chosen one is among them.
    node
        The node that would have been chosen had it acted, empty for none; None: not known, since the Pod's nominated
        node was taken without looking at others.
    weight
        What its score would have weighed; 0 without one, and where nothing was scored.
    """

    rule: str
    n_refused: int
    refuses_chosen: bool
    node: str | None
    weight: float


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """One decision, explained.

    best_nodes
        Names of the best nodes, best first, at most 20; the chosen one stands first.
    total
        int64 (n_best,) thousandths; equals the sum of the terms' contributions there.
    shadows
        One for each rule that only watched the Pod. `shadow_fault`: why there are none, where asking them failed.
    tenant
        What its tenant could use; None where no node says what is real, or without tenants.
    refusals_left_out
        How many refusals there were beyond those listed.
    margin
        Thousandths between the chosen node and the runner-up; 0 among equals and without a runner-up.
    """

    pod: str
    uid: str
    profile: str
    seed: int
    state_generation: int
    signals_generation: int
    rules_generation: int
    n_nodes: int
    n_feasible: int
    node: str
    nominated: bool
    message: str
    refusals: tuple[RefusalCount, ...]
    best_nodes: tuple[str, ...]
    total: IntArray
    terms: tuple[TermRecord, ...]
    rules: tuple[RuleUse, ...]
    shadows: tuple[ShadowRecord, ...]
    shadow_fault: str
    tenant: TenantUse | None
    decided_in_s: float
    refusals_left_out: int = 0

    @property
    def margin(self) -> int:
        return int(self.total[0] - self.total[1]) if len(self.total) > 1 else 0


def record_of(
    pod: PodInfo, snapshot: Snapshot, decision: Decision, profile: str, decided_in_s: float
) -> DecisionRecord:
    """Return the record of a decision that was made on `snapshot`."""
    top = _best(decision)
    names = snapshot.nodes.names
    diagnosis, signals = decision.diagnosis, snapshot.signals
    rules = compiled_rules(snapshot).concerning(pod, snapshot).rules
    return DecisionRecord(
        pod=pod.key,
        uid=pod.uid,
        profile=profile,
        seed=decision.seed,
        state_generation=snapshot.generation,
        signals_generation=signals.generation,
        rules_generation=signals.rules.generation,
        n_nodes=diagnosis.n_nodes,
        n_feasible=len(decision.feasible),
        node=decision.node_name,
        nominated=decision.nominated,
        message="" if decision.is_scheduled else diagnosis.message()[:_LONGEST_MESSAGE],
        refusals=tuple(_count(refusal) for refusal in diagnosis.refusals[:_MOST_REFUSALS]),
        best_nodes=tuple(names[row] for row in decision.feasible[top]),
        total=decision.total[top],
        terms=tuple(_term(term, top) for term in decision.terms),
        rules=tuple(_rule_use(rule, pod, snapshot, decision.row) for rule in rules),
        shadows=_shadows([one.rule for one in rules if not one.rule.acts_on(pod)], decision, names),
        shadow_fault=decision.shadow_fault,
        tenant=tenant_use(pod, snapshot, decision),
        decided_in_s=decided_in_s,
        refusals_left_out=max(0, len(diagnosis.refusals) - _MOST_REFUSALS),
    )


def size_of(record: DecisionRecord) -> int:
    """Return about how many bytes a record keeps, in a few steps; names of nodes, which all share, are left out."""
    tenant = record.tenant
    n_small = len(record.refusals) + len(record.rules) + len(record.shadows)
    n_small += 0 if tenant is None else len(tenant.bounds) + len(tenant.figures)
    per_term = _TERM_BYTES + 2 * record.total.nbytes
    return _RECORD_BYTES + len(record.message) + len(record.terms) * per_term + n_small * _SMALL_BYTES


def _best(decision: Decision) -> IntArray:
    """Return indices into `feasible`: the chosen node, then the others by falling total."""
    total = decision.total
    top = _highest(total)
    is_other = decision.feasible[top] != decision.row
    order: IntArray = top[np.lexsort((is_other, -total[top]))]
    if decision.is_scheduled and (len(order) == 0 or decision.feasible[order[0]] != decision.row):
        chosen = np.flatnonzero(decision.feasible == decision.row)
        order = np.concatenate([chosen, order[:-1]])
    return order


def _highest(total: IntArray) -> IntArray:
    """Return the indices of the 20 highest totals, in no order, or of all if there are no more.

    Totals lie close together at the top, so a few looks at what is near the highest find a handful to sort: a
    fraction of what partitioning all of them costs.
    """
    if len(total) <= BEST_NODES:
        return np.arange(len(total))
    highest, depth = int(total.max()), 0
    near: IntArray = np.flatnonzero(total >= highest)
    while len(near) < BEST_NODES:
        depth = _FIRST_DEPTH if depth == 0 else _DEEPER * depth
        near = np.flatnonzero(total >= highest - depth)
    return near[np.argpartition(-total[near], BEST_NODES - 1)[:BEST_NODES]] if len(near) > BEST_NODES else near


def _count(refusal: Refusal) -> RefusalCount:
    n_nodes = int(np.count_nonzero(refusal.mask))
    return RefusalCount(refusal.plugin, refusal.rule, refusal.code.label, refusal.reason, n_nodes)


def _term(term: WeighedTerm, top: IntArray) -> TermRecord:
    values, contribution = term.at(top)
    return TermRecord(term.plugin, term.name, term.weight, values, contribution, term.written_weight)


def _shadows(watching: Sequence[Rule], decision: Decision, names: Sequence[str]) -> tuple[ShadowRecord, ...]:
    """Return what each rule would have done; one that had nothing to say of any node changes nothing."""
    if not watching or decision.shadow_fault:
        return ()
    found = {shadow.rule: shadow for shadow in decision.shadows}
    return tuple(_shadow(rule, found.get(rule.name), decision.node_name, names) for rule in watching)


def _shadow(rule: Rule, shadow: Shadow | None, node: str, names: Sequence[str]) -> ShadowRecord:
    if shadow is None:
        return ShadowRecord(rule.name, 0, False, node, 0.0)
    instead = None if shadow.row is None else names[shadow.row] if shadow.row >= 0 else ""
    return ShadowRecord(rule.name, shadow.n_refused, shadow.refuses_chosen, instead, shadow.weight)


def _rule_use(compiled: CompiledRule, pod: PodInfo, snapshot: Snapshot, row: int) -> RuleUse:
    rule, reading = compiled.rule, compiled.reading
    sample = reading.sample(pod, snapshot, row)
    freshness, age_s, value, pending, key = sample
    is_open = rule.filter is not None and sample is not NO_ANSWER and reading.is_valve_open(pod, snapshot)
    return RuleUse(
        rule.name,
        rule.signal,
        reading.source,
        freshness,
        age_s,
        value,
        pending,
        reading.smoothing_s,
        rule.acts_on(pod),
        is_open,
        key,
        compiled.is_soft(snapshot),
    )
