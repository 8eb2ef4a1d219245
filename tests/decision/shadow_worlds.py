"""Random clusters in which most Pods find several nodes, so that rules have a say: what others score varies too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from scheduler.model.objects import Node
from scheduler.model.pods import PodInfo
from scheduler.model.rules import (
    ByKind,
    Curve,
    FilterMissing,
    Rule,
    RuleFilter,
    RuleScore,
    RuleSet,
    ScoreMissing,
    Signal,
    WeightSignal,
)
from scheduler.model.signals import SignalColumn, SignalTable
from scheduler.model.snapshot import Snapshot
from tests.builders import cluster_of, make_node, make_pod

NAN = float("nan")
CURVES = (Curve((0.0, 1.0), (100.0, 0.0)), Curve((0.0, 1.0), (0.0, 100.0)), Curve((0.2, 0.5, 0.9), (100.0, 40.0, 0.0)))
ZONE = "topology.kubernetes.io/zone"
LOAD = Signal("load", "load", by=ByKind.CLUSTER)

Change = Callable[[Rule], Rule | None]


@dataclass(frozen=True)
class RuledWorld:
    nodes: tuple[Node, ...]
    pods: tuple[PodInfo, ...]
    pod: PodInfo
    table: SignalTable

    def snapshot(self, change: Change = lambda rule: rule) -> Snapshot:
        """Return a snapshot with other rules; None drops one."""
        rules = tuple(rule for rule in map(change, self.table.rules.rules) if rule is not None)
        table = SignalTable(
            RuleSet(self.table.rules.signals, rules),
            self.table.columns,
            self.table.tripped,
            self.table.open_valves,
        )
        return Snapshot(cluster_of(self.nodes, self.pods), table, 0.0)

    @property
    def names(self) -> list[str]:
        return [rule.name for rule in self.table.rules.rules]


def ruled_world(random: Random) -> RuledWorld:
    names = [f"n{i}" for i in range(random.randint(1, 14))]
    zones = random.choice(["a", "ab", "abc"])
    nodes = tuple(
        make_node(
            name,
            labels={ZONE: random.choice(zones), "disk": random.choice(["ssd", "hdd"])},
            taints=[{"key": "slow", "effect": "PreferNoSchedule"}] if random.random() < 0.3 else (),
            cpu=random.choice(["2", "4", "8"]),
        )
        for name in names
    )
    pods = tuple(
        make_pod(f"p{i}", node=random.choice(names), labels={"app": random.choice(["web", "db"])}, cpu="200m")
        for i in range(random.randint(0, 12))
    )
    pod = make_pod(
        uid=f"{random.getrandbits(64):x}",
        labels={"app": "web"},
        cpu=random.choice(["100m", "1"]),
        nominated=random.choice(names) if random.random() < 0.1 else "",
        spec=_wishes(random),
    )
    return RuledWorld(nodes, pods, pod, _table(random, len(names)))


def _wishes(random: Random) -> dict[str, Any]:
    """Return a spec with soft constraints, whose scores depend on who else is feasible."""
    affinity: dict[str, Any] = {}
    if random.random() < 0.5:
        wanted = (("disk", "ssd"), (ZONE, "a"), ("kubernetes.io/hostname", "n1"))
        preferred = [
            {
                "weight": random.randint(1, 100),
                "preference": {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]},
            }
            for key, value in wanted
        ]
        affinity["nodeAffinity"] = {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
    if random.random() < 0.5:
        term = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": ZONE}
        near = [{"weight": random.randint(1, 100), "podAffinityTerm": term}]
        kind = random.choice(["podAffinity", "podAntiAffinity"])
        affinity[kind] = {"preferredDuringSchedulingIgnoredDuringExecution": near}
    spread = [
        {
            "maxSkew": random.randint(1, 3),
            "topologyKey": key,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
        for key in (ZONE, "kubernetes.io/hostname")
        if random.random() < 0.4
    ]
    return {"affinity": affinity, "topologySpreadConstraints": spread}


def _table(random: Random, n: int) -> SignalTable:
    names = [f"s{i}" for i in range(random.randint(1, 4))]
    signals = {name: Signal(name, "up") for name in names} | {"load": LOAD}
    columns = {
        name: SignalColumn(
            signals[name],
            np.array([NAN if random.random() < 0.1 else random.random() for _ in range(n)]),
            random.choice([0.0, 0.0, 45.0, 61.0]),
        )
        for name in names
    }
    columns["load"] = SignalColumn(LOAD, np.full(n, random.random()), 0.0)
    rules = tuple(_rule(random, f"r{i}", random.choice(names)) for i in range(random.randint(1, 5)))
    tripped = {rule.name: columns[rule.signal].values > 0.7 for rule in rules if rule.filter is not None}
    valves = frozenset(rule.name for rule in rules if random.random() < 0.05)
    return SignalTable(RuleSet(signals, rules), columns, tripped, valves)


def _rule(random: Random, name: str, signal: str) -> Rule:
    kind = random.choice(["filter", "score", "both"])
    missing = FilterMissing.REJECT if random.random() < 0.1 else FilterMissing.ALLOW
    fixed = random.choice([0.0, 0.5, 1.0, 3.0, 20.0])
    moving = WeightSignal("load", Curve((0.0, 1.0), (1.0, 30.0)), 2.0)
    return Rule(
        name,
        signal,
        filter=RuleFilter(max=0.7, missing=missing) if kind != "score" else None,
        score=RuleScore(random.choice(CURVES), random.choice(list(ScoreMissing))) if kind != "filter" else None,
        weight=moving if random.random() < 0.2 else fixed,
        max_share=random.choice([0.1, 0.3, 1.0]),
    )
