"""Nodes, Pods and signals with two keys, from series through the real asker and the store to what Pods read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scheduler.model.identity import NodeIdentity
from scheduler.model.objects import Node
from scheduler.model.pods import PodInfo
from scheduler.model.rules import ByKind, Curve, PairKey, Rule, RuleFilter, RuleScore, RuleSet, Signal, WorkloadKey
from scheduler.model.signals import SignalTable
from scheduler.model.snapshot import Snapshot
from scheduler.model.views import NodeView
from scheduler.plugins.signals import SignalFilter, SignalScore
from scheduler.signals.asking.asker import AskContext, SignalAsker
from scheduler.signals.asking.client import QueryResult
from scheduler.signals.asking.resolver import NodeResolver
from scheduler.signals.asking.session import ResultSeries
from scheduler.signals.columns.store import SignalStore
from scheduler.signals.format.rule_keys import CARDS
from tests.builders import cluster_of, compiled, make_node, make_pod
from tests.plugins.run import raw_scores, refusals
from tests.signals.asking.scripted import Clock
from tests.signals.columns.store_world import crossed

GPU = Signal("util", "util", by=ByKind.GPU)
P99 = Signal("p99", "p99", by=ByKind.WORKLOAD, workload=WorkloadKey("app", "namespace"))
RTT = Signal("rtt", "rtt", by=ByKind.PAIR, label="zone", pair=PairKey("source", "target"))
ZONES = {"a": "z1", "b": "z1", "c": "z2", "d": "z3", "e": ""}
FALLING = RuleScore(Curve((0.0, 100.0), (100.0, 0.0)))
RISING = RuleScore(Curve((0.0, 100.0), (0.0, 100.0)))
CART = {"app": "cart"}

Sample = tuple[Mapping[str, str], float]


class Kept:
    """Nodes a to e in zones, Pods on them, and a store that is told of samples as the refresher tells it."""

    def __init__(
        self,
        *rules: Rule,
        pods: Iterable[PodInfo] = (),
        zones: Mapping[str, str] = ZONES,
        signals: Sequence[Signal] = (GPU, P99, RTT),
    ) -> None:
        self.clock = Clock()
        self.store = SignalStore(self.clock)
        self.nodes: list[Node] = [
            make_node(name, labels={"zone": zone} if zone else {}) for name, zone in zones.items()
        ]
        self.state = cluster_of(self.nodes, pods)
        self.signals = {rule.signal: signal for rule in rules for signal in signals if signal.name == rule.signal}
        self.rules = RuleSet(self.signals, rules, 1)
        self.store.set_rules(self.rules)
        self.n_identities = 0
        self.identify()
        self.askers = {signal.name: SignalAsker(signal, self.clock, lambda: 0.5) for signal in self.signals.values()}

    def identify(self) -> None:
        self.n_identities += 1
        identity = NodeIdentity.of(self.n_identities, self.nodes)
        self.resolver = NodeResolver(identity)
        self.store.add_identity(identity)

    def publish(self, signal: Signal, samples: Sequence[Sample]) -> frozenset[str]:
        series = [ResultSeries(dict(labels), (0.0, repr(value))) for labels, value in samples]
        answered = QueryResult(series, False, (), self.clock.now_s, 0.0)

        class Client:
            def query(self, expr: str, *_: Any, **__: Any) -> QueryResult:
                return answered

        answer = self.askers[signal.name].ask(AskContext(Client(), lambda: self.resolver, 1))
        self.clock.now_s += 1.0
        return self.store.publish(crossed(answer))

    def table(self) -> SignalTable:
        return self.store.freeze(NodeView(self.state.nodes), self.clock.now_s)

    def snapshot(self) -> Snapshot:
        return Snapshot(self.state, self.table(), self.clock.now_s)

    def values(self, pod: PodInfo, rule: str = "r") -> list[float | None]:
        snapshot = self.snapshot()
        column = compiled(next(one for one in self.rules.rules if one.name == rule), snapshot).reading.column(
            pod, snapshot
        )
        assert column is not None
        return [None if math.isnan(value) else value for value in column.values.tolist()]

    def refused(self, pod: PodInfo) -> str:
        return "".join(sorted(refusals(SignalFilter(), pod, self.snapshot())))

    def scores(self, pod: PodInfo) -> list[float]:
        return list(raw_scores(SignalScore(), pod, self.snapshot())["r"])


def cards(node: str, *values: float) -> list[Sample]:
    return [({"Hostname": node, "UUID": f"{node}-{i}"}, value) for i, value in enumerate(values)]


def workload(namespace: str, app: str, **by_node: float) -> list[Sample]:
    return [({"node": node, "app": app, "namespace": namespace}, value) for node, value in by_node.items()]


def pairs(**by_ends: float) -> list[Sample]:
    return [({"source": f"z{ends[1]}", "target": f"z{ends[3]}"}, value) for ends, value in by_ends.items()]


def wanting(n: int | str, resource: str = "nvidia.com/gpu") -> PodInfo:
    return make_pod(extended={resource: n})


def cart(node: str, number: int = 0, namespace: str = "default", **fields: Any) -> PodInfo:
    return make_pod(f"cart-{number}", namespace=namespace, labels=CART, node=node, **fields)


def over_cards(limits: RuleFilter | None = None, score: RuleScore | None = None) -> Rule:
    return Rule("r", "util", filter=limits, score=score, gpu_resources=CARDS)


CARD_SAMPLES = (*cards("a", 10, 20, 95, 96), *cards("b", 91, 99), *cards("c", 50))
PAIR_SAMPLES = pairs(z1z1=1.0, z1z2=20.0, z2z1=22.0, z2z2=2.0, z3z1=60.0)
