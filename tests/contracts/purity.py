"""Random decisions under rules of every kind, told by the names of nodes: the same inputs have to give the same answer.

    python -m tests.contracts.purity --number 20 --seed 1

prints a digest for each seed, which another process, with other hashes of texts, has to print too. A seed draws a
world, answers to every signal, twice, and a few Pods. The order in which nodes and series arrive is not part of that.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import msgspec
import numpy as np

from scheduler.decision.decide import decide
from scheduler.decision.decision import Decision
from scheduler.decision.record import record_of
from scheduler.errors import PluginError, UnsupportedPodError
from scheduler.model.identity import NodeIdentity
from scheduler.model.objects import Node
from scheduler.model.pods import PodInfo
from scheduler.model.real_allocatable import ANNOTATION
from scheduler.model.rules import Signal
from scheduler.model.snapshot import Snapshot
from scheduler.model.views import NodeView
from scheduler.signals.answers import SignalAnswer, signature
from scheduler.signals.asking.ingest import ingest
from scheduler.signals.asking.resolver import NodeResolver
from scheduler.signals.asking.session import ResultSeries
from scheduler.signals.columns.store import SignalStore
from scheduler.signals.format.rule_files import parse_rule_files
from tests.builders import cluster_of, default_profile, make_node, make_pod
from tests.worlds import FIGURES, OBJECTS, random_node, random_pod

RULES = """\
apiVersion: vane.dev/v1
kind: Rules
signals:
  use: {expr: max by (node) (use), unit: ratio, inflight: {cpu: request}}
  smooth: {expr: max by (node) (smooth), unit: ratio, smoothing: 30s}
  zone_p99: {expr: max by (zone) (p99), by: zone, unit: ms}
  burn: {expr: sum(burn), by: cluster}
  cards: {expr: 'max by (node, UUID) (card)', by: gpu, unit: percent}
  mine: {expr: 'max by (node, app) (mine)', by: workload, workload: {label: app}, unit: ms}
  trip: {expr: 'max by (source, target) (trip)', by: pair, pair: {label: zone, from: source, to: target}, unit: ms}
  mates: {count: {same: [app], window: 1h}}
  taught: {expr: max by (node) (taught), unit: ratio, inflight: {cpu: learned}}
  full: {requested: cpu, unit: ratio}
  crowd: {pods: {}, by: zone}
rules:
  - {name: use, signal: use, filter: {max: 90%, clear: 60%, valve: 0.9}, score: {best: 0, worst: 1}, weight: 3}
  - {name: smooth, signal: smooth, filter: {max: 95%, hold: 60s}, score: {best: 0, worst: 1, missing: worst}}
  - name: zone
    signal: zone_p99
    match: {labels: {app: web}}
    score: {points: [[10ms, 100], [50ms, 40], [90ms, 0]]}
    weight: {signal: burn, points: [[0, 1], [2, 10]]}
  - {name: burning, signal: burn, filter: {max: 1.9}}
  - {name: cards, signal: cards, filter: {max: 90%}, score: {best: 0, worst: 100}, weight: 2, max_share: 50%}
  - {name: mine, signal: mine, workload: app, score: {best: 1ms, worst: 90ms}, weight: 2}
  - {name: trip, signal: trip, calls: {labels: {app: db}}, score: {best: 1ms, worst: 90ms}, weight: 2}
  - {name: mates, signal: mates, filter: {max: 3}, score: {best: 0, worst: 5}}
  - {name: taught, signal: taught, score: {best: 0, worst: 1}, max_age: 32s}
  - {name: own-zone, label_match: {pod: wanted-zone, node: zone}}
  - {name: full, signal: full, score: {best: 1, worst: 0}}
  - {name: crowd, signal: crowd, mode: shadow, filter: {max: 1}, score: {best: 0, worst: 9}, weight: 9}
  - {name: few, signal: use, canary: {percent: 50}, filter: {max: 50%}, score: {best: 1, worst: 0}}
tenants:
  - name: red
    match: {namespace_labels: {team: red}}
    overcommit: 125%
    while: [{signal: use, max: 80%, clear: 60%}, {signal: burn, max: 1.5}]
  - {name: rest, overcommit: 50%, resources: [cpu]}
"""
PROFILE = default_profile()
GPU = "nvidia.com/gpu"

_EPOCH_S = 1_767_225_600.0

_OF_ROWS = ("state_generation", "signals_generation", "best_nodes", "total", "terms")
"""What of a record counts changes, or lists nodes, of which equal ones stand in any order: told by name instead."""


@dataclass(frozen=True)
class Scene:
    """What a seed has drawn: nodes, placed Pods, Pods to place, and per moment (seconds) the series by signal.

    `lags` are the seconds by which the samples of some nodes are further behind than the others.
    """

    nodes: tuple[Node, ...]
    placed: tuple[PodInfo, ...]
    pods: tuple[PodInfo, ...]
    answers: tuple[tuple[float, dict[str, list[ResultSeries]]], ...]
    lags: dict[str, float]
    now_s: float

    @classmethod
    def of(cls, seed: int) -> Scene:
        random = Random(f"purity {seed}")
        image_bytes = random.randint(0, 10**10)
        names = [f"n{i}" for i in range(random.randint(2, 7))]
        nodes = tuple(_node(random, name, image_bytes) for name in names)
        placed = tuple(_pod(random, f"placed-{i}", random.choice(names)) for i in range(random.randint(0, 9)))
        pods = tuple(_pod(random, f"pod-{i}") for i in range(4))
        answers = tuple((1_000.0 + 15.0 * i, _series(random, names)) for i in range(2))
        lags = {name: random.choice((10.0, 50.0, 200.0)) for name in names if random.random() < 0.2}
        return cls(nodes, placed, pods, answers, lags, 1_015.0 + random.choice([0.0, 20.0, 70.0]))

    def shuffled(self, random: Random) -> Scene:
        """Return the scene with its nodes and all series in another order."""
        answers = tuple(
            (at_s, {name: _mixed(random, several) for name, several in by.items()}) for at_s, by in self.answers
        )
        return replace(self, nodes=tuple(_mixed(random, self.nodes)), answers=answers)

    def snapshot(self) -> Snapshot:
        state = cluster_of(self.nodes, self.placed, objects=OBJECTS)
        rules = parse_rule_files({"rules.yaml": RULES.encode()}, 1)
        now_s = self.answers[0][0]
        store = SignalStore(lambda: now_s)
        store.set_rules(rules)
        identity = NodeIdentity.of(1, list(self.nodes))
        store.add_identity(identity)
        for at_s, by_signal in self.answers:
            now_s = at_s
            for name, series in by_signal.items():
                answer = _answer(rules.signals[name], series, NodeResolver(identity), at_s)
                lags = self.lags if name == "use" else {}
                store.publish(msgspec.structs.replace(answer, lag_by_key=lags))
            store.freeze(NodeView(state.nodes), at_s)
        now_s = self.now_s
        return Snapshot(state, store.freeze(NodeView(state.nodes), now_s), now_s)


def _node(random: Random, name: str, image_bytes: int) -> Node:
    """Return a node that has room, most often; now and then one that has anything."""
    if random.random() < 0.1:
        return random_node(random, name, image_bytes)
    return make_node(
        name,
        labels={"zone": random.choice("ab")},
        annotations={ANNOTATION: random.choice(FIGURES)} if random.random() < 0.5 else None,
        extended={"cpu": random.choice(("2", "4")), GPU: 4},
    )


def _pod(random: Random, name: str, node: str = "") -> PodInfo:
    """Return a Pod that asks for little, so that rules decide; now and then one that asks for anything."""
    if random.random() < 0.1:
        return random_pod(random, name, node=node)
    requests: dict[str, str | int] = {"cpu": random.choice(("100m", "500m", "1500m"))}
    if random.random() < 0.5:
        requests[GPU] = random.randint(1, 3)
    labels = {"app": random.choice(("web", "db"))}
    if random.random() < 0.2:
        labels["wanted-zone"] = random.choice("ab")
    return make_pod(name, node=node, labels=labels, priority=random.choice((0, 0, 10)), extended=requests)


def _mixed(random: Random, items: Sequence[Any]) -> list[Any]:
    return random.sample(list(items), len(items))


def _series(random: Random, names: Sequence[str]) -> dict[str, list[ResultSeries]]:
    """Return series of every signal that is asked, some missing, some no number."""

    def draw(keys: Sequence[dict[str, str]], highest: float) -> list[ResultSeries]:
        texts = [random.choice([f"{random.uniform(0.0, highest):.3f}"] * 6 + ["NaN"]) for _ in keys]
        return [ResultSeries(key, (0.0, text)) for key, text in zip(keys, texts, strict=True) if random.random() < 0.9]

    by_node = [{"node": name} for name in names]
    zones = ("a", "b", "7", "-3")
    return {
        "use": draw(by_node, 1.0),
        "smooth": draw(by_node, 1.0),
        "taught": draw(by_node, 1.0),
        "zone_p99": draw([{"zone": zone} for zone in zones], 100.0),
        "burn": draw([{}], 2.0),
        "cards": draw([{"node": name, "UUID": f"{name}-{i}"} for name in names for i in range(4)], 100.0),
        "mine": draw([{"node": name, "app": app} for name in names for app in ("web", "db")], 100.0),
        "trip": draw([{"source": one, "target": other} for one in zones for other in zones], 100.0),
    }


def _answer(signal: Signal, series: Sequence[ResultSeries], resolver: NodeResolver, at_s: float) -> SignalAnswer:
    """Return what the refresher would send."""
    found = ingest(signal, series, resolver)
    return SignalAnswer(
        signal.name,
        signature(signal),
        1,
        signal.max_age_s,
        at_s,
        evaluated_unix_s=_EPOCH_S + at_s,
        smoothing_s=signal.smoothing_s,
        **found.keys.packed(found.values),
    )


def told(pod: PodInfo, snapshot: Snapshot) -> dict[str, Any]:
    """Return all that a decision and its record say, by names of nodes, as what JSON makes of it."""
    try:
        decision = decide(pod, snapshot, PROFILE)
    except (PluginError, UnsupportedPodError) as error:
        return {"failed": str(error)}
    record = msgspec.to_builtins(record_of(pod, snapshot, decision, "vane", 0.0), enc_hook=lambda array: array.tolist())
    for name in _OF_ROWS:
        del record[name]
    found = {"record": record, **_columns(decision, snapshot)}
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(found, order="deterministic"))
    return plain


def _columns(decision: Decision, snapshot: Snapshot) -> dict[str, Any]:
    names = snapshot.nodes.names
    feasible = [names[row] for row in decision.feasible.tolist()]
    return {
        "victims": [pod.key for pod in decision.victims],
        "nomination": decision.nomination,
        "best": sorted(names[row] for row in decision.best.tolist()),
        "total": dict(zip(feasible, decision.total.tolist(), strict=False)),
        "refused": {
            f"{one.plugin} {one.code} {one.reason}": sorted(names[row] for row in np.flatnonzero(one.mask).tolist())
            for one in decision.diagnosis.refusals
        },
        "terms": {
            f"{term.plugin} {term.name}": [term.weight, dict(zip(feasible, term.contribution.tolist(), strict=True))]
            for term in decision.terms
        },
    }


def decisions(scene: Scene, snapshot: Snapshot | None = None) -> list[dict[str, Any]]:
    """Return what is decided about each Pod of the scene, none of which is placed."""
    snapshot = snapshot or scene.snapshot()
    return [told(pod, snapshot) for pod in scene.pods]


def digest(seed: int) -> str:
    """Return a hash of all decisions of a seed."""
    found = msgspec.json.encode(decisions(Scene.of(seed)), order="deterministic")
    return hashlib.blake2b(found, digest_size=16).hexdigest()


def main(argv: Sequence[str] | None = None, write: Callable[[str], object] = sys.stdout.write) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.contracts.purity", description="Digests of decisions.")
    parser.add_argument("--number", type=int, default=20, help="seeds (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="the first of them (default: 1)")
    arguments = parser.parse_args(argv)
    for seed in range(arguments.seed, arguments.seed + arguments.number):
        write(f"{seed} {digest(seed)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
