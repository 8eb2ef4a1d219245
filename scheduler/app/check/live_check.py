"""`vane check --prometheus`: each query asked once, within the limits of `vane run`, and what rules make of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

import numpy as np

from scheduler.app.check.effective_weights import EffectiveWeight, effective_weights
from scheduler.cluster.cache import Cache
from scheduler.model.identity import NodeIdentity
from scheduler.model.rules import Rule, RuleSet, Signal
from scheduler.model.signals import SignalColumn, SignalTable
from scheduler.model.snapshot import Snapshot
from scheduler.model.views import NodeView
from scheduler.rules.compiled import compiled_rules
from scheduler.rules.compiled_rule import CompiledRule
from scheduler.rules.score import rule_weight
from scheduler.signals.answers import SignalAnswer
from scheduler.signals.asking.asker import AskContext, SignalAsker
from scheduler.signals.asking.client import QueryClient, QueryResult
from scheduler.signals.asking.groupings import grouping_of
from scheduler.signals.asking.ingest import ingest
from scheduler.signals.asking.query_errors import PrometheusUnreachable, QueryError
from scheduler.signals.asking.resolver import NodeResolver
from scheduler.signals.asking.session import ResultSeries
from scheduler.signals.columns.store import SignalStore
from scheduler.signals.format.promql_matchers import NO_MATCHERS, Matchers

SHOWN_ORPHANS: Final = 3

_CONCURRENCY: Final = 4
_MAX_LOOKED_AT: Final = 20_000

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class AskedSignal:
    """One signal and what its server said.

    duration_s
        How long the query took, without the one for its lag.
    n_nodes
        Live nodes that get a value from it; None where that is no question, or where no node is known.
    age_s
        Of the newest samples.
    orphans
        Labels of some series that speak of nothing known; `strangers` are values of a node label that no node has.
    without_label
        Names of the labels of a series without the signal's `node_label`; `n_without_label` such series.
    """

    signal: Signal
    answer: SignalAnswer
    duration_s: float
    n_samples: int | None = None
    n_nodes: int | None = None
    age_s: float = 0.0
    orphans: tuple[Mapping[str, str], ...] = ()
    strangers: tuple[str, ...] = ()
    without_label: tuple[str, ...] = ()
    n_without_label: int = 0


@dataclass(frozen=True, slots=True)
class RuleNow:
    """What one rule would do with these answers.

    n_refused
        Live nodes; None for a rule that refuses nothing, or whose verdict depends on the Pod.
    """

    rule: Rule
    n_refused: int | None
    depends_on_pod: bool
    is_valve_open: bool
    weight: EffectiveWeight | None


@dataclass(frozen=True, slots=True)
class LiveReport:
    """All that was found; `n_nodes` is None where no cluster could be read."""

    signals: tuple[AskedSignal, ...]
    rules: tuple[RuleNow, ...]
    n_nodes: int | None

    @property
    def unanswered(self) -> tuple[AskedSignal, ...]:
        return tuple(one for one in self.signals if one.answer.error)


def check_live(
    rules: RuleSet,
    clients: Mapping[str, QueryClient],
    cache: Cache | None,
    fixed_weight: float,
    clock: Clock = time.monotonic,
    matchers: Mapping[str, Matchers] = NO_MATCHERS,
) -> LiveReport:
    """Ask for every signal that is not read from the cluster, and judge the nodes by the answers.

    Parameters
    ----------
    clients
        By the name of the server.
    cache
        The cluster with its nodes; None where it cannot be read.
    fixed_weight
        What the score plugins of the profile weigh together.
    matchers
        By the name of the server: what every selector of every query to it gets.
    """
    cluster = cache or Cache()
    identity = NodeIdentity.of(1, cluster.nodes())
    resolver = NodeResolver(identity)
    asked = list(rules.asked.values())
    queries = _SignalQueries(clients, resolver, clock, matchers)
    with ThreadPoolExecutor(_CONCURRENCY) as pool:
        results = list(pool.map(queries.ask, asked))

    store = SignalStore(clock)
    store.add_identity(identity)
    store.set_rules(rules)
    for one in results:
        store.publish(one.answer)
    now_s = clock()
    table = store.freeze(NodeView(cluster.state.nodes), now_s)
    snapshot = cluster.snapshot(table, now_s)
    cluster_wide = _cluster_wide(results)
    weights = effective_weights(
        rules.rules, fixed_weight, {rule.name: rule_weight(rule.weight, cluster_wide) for rule in rules.rules}
    )
    return LiveReport(
        tuple(_judged(one, table, snapshot, resolver) for one in results),
        tuple(_rule_now(one, snapshot, weights.get(one.name)) for one in compiled_rules(snapshot).rules),
        None if cache is None else cluster.state.nodes.n_alive,
    )


@dataclass(frozen=True, slots=True)
class _SignalResult:
    signal: Signal
    answer: SignalAnswer
    duration_s: float = 0.0
    found: QueryResult | None = None


@dataclass(slots=True)
class _SignalQueries:
    """Asks one signal after the other; a server that cannot be reached is not tried again."""

    clients: Mapping[str, QueryClient]
    resolver: NodeResolver
    clock: Clock
    matchers: Mapping[str, Matchers]
    unreachable: dict[str, QueryError] = field(default_factory=dict)

    def ask(self, signal: Signal) -> _SignalResult:
        asker = SignalAsker(signal, self.clock, lambda: 0.5, matchers=self.matchers.get(signal.server, ()))
        client = self.clients.get(signal.server)
        if client is None:
            return _SignalResult(signal, asker.failure(QueryError(_no_address(signal.server)), 0))
        if signal.server in self.unreachable:
            return _SignalResult(signal, asker.failure(self.unreachable[signal.server], 0))
        timed = _TimedClient(client, self.clock)
        try:
            answer = asker.ask(AskContext(timed, lambda: self.resolver, 0))
        except QueryError as error:
            if isinstance(error, PrometheusUnreachable):
                self.unreachable[signal.server] = error
            answer = asker.failure(error, 0)
        return _SignalResult(signal, answer, timed.duration_s, timed.first)


class _TimedClient:
    """A QueryClient that keeps the first answer and how long it took: what follows asks for the lag."""

    def __init__(self, client: QueryClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._is_first = True
        self.first: QueryResult | None = None
        self.duration_s = 0.0

    def query(self, expr: str, lookback_s: float | None = None) -> QueryResult:
        if not self._is_first:
            return self._client.query(expr, lookback_s)
        self._is_first = False
        begun_s = self._clock()
        try:
            self.first = self._client.query(expr, lookback_s)
        finally:
            self.duration_s = self._clock() - begun_s
        return self.first


def _cluster_wide(results: Sequence[_SignalResult]) -> SignalTable:
    """Return the signals of one number: they say what rules weigh, be there a cluster or none."""
    return SignalTable(
        columns={
            one.signal.name: SignalColumn(one.signal, np.array([one.answer.value]), 0.0)
            for one in results
            if one.answer.value is not None
        }
    )


def _no_address(server: str) -> str:
    if server:
        return f"no server named {server!r}. Write its address into a --config file, under prometheus.servers"
    return "no address. Write --prometheus URL"


def _judged(result: _SignalResult, table: SignalTable, snapshot: Snapshot, resolver: NodeResolver) -> AskedSignal:
    signal, answer = result.signal, result.answer
    if answer.error or result.found is None:
        return AskedSignal(signal, answer, result.duration_s)
    column = table.columns[signal.name]
    n_nodes = grouping_of(signal).n_nodes(answer, int(np.count_nonzero(column.has_sample & snapshot.nodes.alive)))
    unnamed = [one.metric for one in result.found.series if signal.node_label and not one.metric.get(signal.node_label)]
    strangers: tuple[str, ...] = ()
    if answer.by_label:
        codes, values = snapshot.nodes.label_codes(signal.label), snapshot.nodes.label_values(signal.label)
        used = set() if codes is None else set(codes[snapshot.nodes.alive].tolist())
        strangers = tuple(key for key in answer.by_label if values.get(key) not in used)
    return AskedSignal(
        signal,
        answer,
        result.duration_s,
        result.found.n_samples,
        n_nodes if resolver.identity.names else None,
        column.age_s,
        _orphans(signal, result.found.series, resolver) if answer.drops.unmapped and resolver.identity.names else (),
        strangers if resolver.identity.names else (),
        tuple(sorted(unnamed[0].keys() - {"__name__"})) if unnamed else (),
        len(unnamed),
    )


def _orphans(signal: Signal, series: Sequence[ResultSeries], resolver: NodeResolver) -> tuple[Mapping[str, str], ...]:
    """Return the labels of the first series that name nothing known."""
    looked_at = islice(series, _MAX_LOOKED_AT)
    orphans = (one.metric for one in looked_at if ingest(signal, [one], resolver).drops.unmapped)
    return tuple(islice(orphans, SHOWN_ORPHANS))


def _rule_now(one: CompiledRule, snapshot: Snapshot, weight: EffectiveWeight | None) -> RuleNow:
    depends, is_open = one.reading.depends_on_pod, one.name in snapshot.signals.open_valves
    is_told = one.rule.filter is not None and not depends
    n_refused = int(np.count_nonzero(one.refused(snapshot))) if is_told else None
    return RuleNow(one.rule, n_refused, depends, is_open, weight)
