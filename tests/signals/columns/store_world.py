from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeVar

import msgspec
import numpy as np

from scheduler.model.identity import NodeIdentity
from scheduler.model.nodes import NodeTable
from scheduler.model.rules import ByKind, Curve, Rule, RuleFilter, RuleScore, RuleSet, Signal
from scheduler.model.signals import SignalTable
from scheduler.model.views import NodeView
from scheduler.signals.answers import SignalAnswer, signature
from scheduler.signals.columns.store import SignalStore
from tests.builders import make_node
from tests.signals.asking.scripted import Clock

T = TypeVar("T")

NAN = math.nan
CPU = Signal("cpu", "node_cpu", interval_s=15.0, max_age_s=60.0)
ZONE = Signal("zone", "zone_p99", by=ByKind.LABEL, label="zone")
BURN = Signal("burn", "slo_burn", by=ByKind.CLUSTER)
HOT = Rule("hot", "cpu", filter=RuleFilter(max=0.8, max_clear=0.7))
SCORED = Rule("scored", "cpu", score=RuleScore(Curve((0.0, 1.0), (100.0, 0.0))))


def rules_of(*rules: Rule, signals: tuple[Signal, ...] = (CPU, ZONE, BURN), generation: int = 1) -> RuleSet:
    return RuleSet({signal.name: signal for signal in signals}, rules, generation)


def crossed(value: T) -> T:
    """Return what the other process gets of it."""
    return msgspec.msgpack.decode(msgspec.msgpack.encode(value), type=type(value))


class World:
    """A store with its nodes and a clock."""

    def __init__(self, *names: str, rules: RuleSet | None = None) -> None:
        self.clock = Clock()
        self.store = SignalStore(self.clock)
        self.table = NodeTable()
        self.n_identities = 0
        for name in names:
            self.table.set_node(make_node(name))
        self.identify()
        if rules is not None:
            self.store.set_rules(rules)

    def identify(self) -> None:
        self.n_identities += 1
        nodes = [node for node in self.table.objects if node is not None]
        self.identity = NodeIdentity.of(self.n_identities, nodes)
        self.store.add_identity(self.identity)

    def answer(self, signal: Signal = CPU, values: Mapping[str, float] | None = None, **fields: object) -> SignalAnswer:
        given = values or {}
        kinds: dict[str, object] = {}
        if signal.by is ByKind.NODE:
            column = np.array([given.get(name, NAN) for name in self.identity.names])
            kinds = {"values": column.tobytes(), "identity_generation": self.identity.generation}
        elif signal.by is ByKind.LABEL:
            kinds = {"by_label": dict(given)}
        known: dict[str, object] = {
            "signal": signal.name,
            "signature": signature(signal),
            "rules_generation": 1,
            "max_age_s": signal.max_age_s,
            "evaluated_at_s": self.clock.now_s,
        }
        return crossed(SignalAnswer(**(known | kinds | fields)))  # type: ignore[arg-type]  # fields by name

    def publish(self, values: Mapping[str, float], signal: Signal = CPU, **fields: object) -> frozenset[str]:
        return self.store.publish(self.answer(signal, values, **fields))

    def freeze(self) -> SignalTable:
        return self.store.freeze(NodeView(self.table), self.clock.now_s)

    def values(self, signal: str = "cpu") -> list[float | None]:
        return [None if math.isnan(value) else value for value in self.freeze().columns[signal].values]

    def tripped(self, rule: str = "hot") -> list[bool]:
        return list(self.freeze().tripped[rule])
