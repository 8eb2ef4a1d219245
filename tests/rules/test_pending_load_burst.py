"""Many Pods between two refreshes: pending load keeps them from all going where the last samples were lowest.

50 nodes whose load is drawn between 0.2 and 0.4, 250 Pods that ask for 50m and use 200m, one rule of weight 20 over
`rate[2m]`. Samples go from the counters of an exporter through PromQL, the resolver, the store and `decide`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import numpy as np
import pytest

from scheduler.evaluator.evaluate import evaluate
from scheduler.evaluator.store import SeriesStore
from scheduler.evaluator.values import Vector
from scheduler.loop.pages.signals import Figures, LearnedFigures, SignalListing, SignalsQuery
from scheduler.model.pods import PodInfo
from scheduler.model.views import NodeView
from tests.builders import compiled, make_node, pod_of
from tests.loop.harness import Harness
from tests.support.openmetrics import load_openmetrics
from tests.support.prometheus import PrometheusServer, import_samples, openmetrics_text

NODES = [f"n{i:02}" for i in range(50)]
CORES, PODS, USED = 4.0, 250, 0.2
MANY = 3 * len(NODES)
"""More Pods than nodes have room for, each as good as 800m."""
START_S = 1_767_225_600.0
STEP_S = 15.0
IDLE = 'node_cpu_seconds_total{{cpu="0",mode="idle",instance="{}"}}'
EXPR = '1 - avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[2m]))'

Samples = Mapping[str, Iterable[tuple[float, float]]]
Ask = Callable[[Samples, float], dict[str, float]]
"""Samples by series and a time in, node -> value of EXPR out."""


def rules(inflight: str) -> str:
    return f"""
apiVersion: vane.dev/v1
kind: Rules
signals:
  cpu:
    expr: {EXPR}
    unit: ratio
    {inflight}
rules:
  - name: cool
    signal: cpu
    score: {{best: 0, worst: 1}}
    weight: 20
"""


def evaluated(samples: Samples, at_s: float) -> dict[str, float]:
    store = SeriesStore()
    load_openmetrics(store, openmetrics_text(samples))
    found = evaluate(EXPR, store, at_s)
    assert isinstance(found, Vector)
    return {labels["instance"]: float(value) for labels, value in zip(found.labels, found.values, strict=True)}


def asking_prometheus(programs: Path, folder: Path) -> Ask:
    """Have a real Prometheus of its own answer each question, from imported samples."""

    def ask(samples: Samples, at_s: float) -> dict[str, float]:
        server = PrometheusServer(programs, folder / f"{at_s:.0f}")
        import_samples(programs, server.data, samples)
        server.start()
        try:
            return server.values(EXPR, time=at_s)
        finally:
            server.stop()

    return ask


@dataclass
class Cluster:
    """What is true of the nodes, whatever their samples say; a Pod uses what it uses from its first second on."""

    seed: int
    running: list[tuple[str, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        random = Random(self.seed)
        self.base = {name: random.uniform(0.2, 0.4) for name in NODES}

    def loads(self) -> dict[str, float]:
        loads = dict(self.base)
        for node, _ in self.running:
            loads[node] += USED / CORES
        return loads

    def samples(self, until_s: float) -> Samples:
        """Return the idle seconds of each node's one counter as an exporter shows them every 15 s."""
        times = np.arange(START_S - 300.0, until_s + 1.0, STEP_S)
        idle = {name: (1.0 - base) * (times - times[0]) for name, base in self.base.items()}
        for node, since_s in self.running:
            idle[node] = idle[node] - USED / CORES * np.maximum(times - since_s, 0.0)
        return {IDLE.format(name): list(zip(times.tolist(), idle[name].tolist(), strict=True)) for name in idle}


def pod(number: int, node: str = "", bound_s: float = 0.0, running_s: float | None = None) -> PodInfo:
    owner = {"kind": "ReplicaSet", "name": "web-7c9", "uid": "web", "controller": True}
    status: dict[str, Any] = {}
    if node:
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": time_text(bound_s)}
        state = {"waiting": {}} if running_s is None else {"running": {"startedAt": time_text(running_s)}}
        status = {"conditions": [scheduled], "containerStatuses": [{"name": "c", "state": state}]}
    return pod_of(
        {
            "metadata": {
                "name": f"p{number}",
                "namespace": "default",
                "uid": f"uid-{number}",
                "labels": {"pod-template-hash": "7c9"},
                "ownerReferences": [owner],
            },
            "spec": {
                "schedulerName": "vane",
                "containers": [{"name": "c", "image": "web", "resources": {"requests": {"cpu": "50m"}}}],
                **({"nodeName": node} if node else {}),
            },
            "status": status,
        }
    )


def time_text(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Burst:
    """A scheduler on such a cluster; the clock of both is UNIX time."""

    def __init__(self, seed: int, inflight: str, ask: Ask = evaluated) -> None:
        self.cluster = Cluster(seed)
        self.ask = ask
        self.now_s = START_S
        self.numbers: Iterator[int] = iter(range(100_000))
        self.bound: list[PodInfo] = []
        self.answered: dict[str, float] = {}
        self.leader = self.started(inflight)
        self.inflight = inflight

    def started(self, inflight: str) -> Harness:
        """Return a scheduler that has just listed what there is."""
        harness = Harness()
        harness.now_s = self.now_s
        harness.list_nodes(*(make_node(name, cpu=str(int(CORES)), pods=500) for name in NODES))
        harness.list_pods(*self.bound)
        harness.load_rules(rules(inflight))
        return harness

    def refresh(self) -> None:
        self.answered = self.ask(self.cluster.samples(self.now_s), self.now_s)
        self.leader.now_s = self.now_s
        self.leader.answer("cpu", self.answered, unix_s=self.now_s)

    def place(self, count: int) -> None:
        """Have so many Pods come, be bound within the second and run two seconds later."""
        pods = {f"p{number}": number for number in (next(self.numbers) for _ in range(count))}
        for number in pods.values():
            self.leader.see(pod(number))
        assert self.leader.run(count + 1) == count
        placed = self.leader.placed()
        assert placed.keys() == pods.keys()
        self.leader.settle()
        for name, number in pods.items():
            self.leader.see(pod(number, placed[name], self.now_s), "MODIFIED")
            self.bound.append(pod(number, placed[name], self.now_s, self.now_s + 2.0))
            self.leader.see(self.bound[-1], "MODIFIED")
            self.cluster.running.append((placed[name], self.now_s + 2.0))

    def spread(self) -> float:
        """Return how far the hottest node is above the mean."""
        loads = list(self.cluster.loads().values())
        return max(loads) - sum(loads) / len(loads)

    def expected(self, harness: Harness | None = None) -> dict[str, float]:
        """Return what the rule goes by: samples and pending load."""
        world = (harness or self.leader).world
        table = world.signals.freeze(NodeView(world.cache.state.nodes), self.now_s)
        snapshot = world.cache.snapshot(table, self.now_s)
        column = compiled(table.rules.rules[0], snapshot).reading.column(None, snapshot)
        assert column is not None
        return dict(zip(snapshot.nodes.names, column.expected.tolist(), strict=True))

    def error(self) -> float:
        """Return how far what the rule goes by is from the truth, at worst, relative to it."""
        expected, loads = self.expected(), self.cluster.loads()
        return max(abs(expected[name] - loads[name]) / loads[name] for name in NODES)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_burst_spreads_by_what_is_in_flight(seed: int) -> None:
    without, with_it = Burst(seed, ""), Burst(seed, "inflight: {cpu: 200m}")
    for burst in (without, with_it):
        burst.refresh()
        burst.place(PODS)

    assert without.spread() >= 0.2
    assert with_it.spread() <= 0.05


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_nothing_is_counted_twice_when_the_samples_show_it(seed: int) -> None:
    burst = Burst(seed, "inflight: {cpu: 200m}")
    burst.refresh()
    burst.place(PODS)
    errors = []
    for _ in range(12):
        burst.now_s += STEP_S
        burst.refresh()
        errors.append(burst.error())

    assert max(errors[:2]) <= 0.05, "two refreshes later"
    # `rate` goes by what lies between the first and the last sample in its range: up to a step less than the range.
    assert max(errors) <= 0.08
    assert max(errors[8:]) <= 0.005, "the samples show all"


def test_a_new_leader_goes_by_the_same() -> None:
    burst = Burst(1, "inflight: {cpu: 200m}")
    burst.refresh()
    burst.place(PODS)
    for _ in range(4):
        burst.now_s += STEP_S
        burst.refresh()
        successor = burst.started(burst.inflight)
        successor.answer("cpu", burst.answered, unix_s=burst.now_s)

        assert burst.expected(successor) == burst.expected()
        for harness in (burst.leader, successor):
            for number in range(90_000, 90_020):
                harness.see(pod(number))
            harness.run(20)
        assert successor.placed() == burst.leader.placed()
        for number in range(90_000, 90_020):
            burst.leader.settle("failed")
            burst.leader.see(pod(number), "DELETED")


def test_what_pods_add_is_learned_in_calm_times() -> None:
    burst = Burst(1, "inflight: {cpu: learned}")
    burst.refresh()
    burst.place(20)
    for _ in range(11):
        burst.now_s += STEP_S
        burst.refresh()
    signals = burst.leader.world.signals
    (learned,) = signals.learned.told(signals.rules.signals["cpu"]).values()
    assert learned.n >= 3
    assert learned.low <= learned.median <= learned.high
    assert learned.median == pytest.approx(200.0, rel=0.05), "in millicores"
    listing = SignalListing(burst.leader.world.cache, signals, burst.leader.clock, SignalsQuery())
    told = msgspec.msgpack.Decoder(list[Figures]).decode(listing.slice())
    (shown,) = (one for one in told if isinstance(one, LearnedFigures))
    assert (shown.workload, shown.resource, shown.n) == ("ReplicaSet/web", "cpu", learned.n)
    assert shown.median == pytest.approx(0.2, rel=0.05), "in cores"

    burst.place(PODS)

    assert burst.spread() <= 0.05


def test_before_it_is_learned_a_pod_counts_as_what_it_asks_for() -> None:
    learned, requested = Burst(1, "inflight: {cpu: learned}"), Burst(1, "inflight: {cpu: request}")
    for burst in (learned, requested):
        burst.refresh()
        burst.place(50)

    assert learned.expected() == requested.expected()


def test_a_burst_as_a_real_prometheus_sees_it(programs: Path, tmp_path: Path) -> None:
    burst = Burst(4, "inflight: {cpu: 200m}", asking_prometheus(programs, tmp_path))
    burst.refresh()
    burst.place(PODS)
    assert burst.spread() <= 0.05
    for _ in range(2):
        burst.now_s += STEP_S
        burst.refresh()
        assert burst.error() <= 0.05


def with_too_many_pods() -> tuple[Burst, dict[str, str]]:
    """Return a cluster whose nodes are full of pending load, and name -> node of those who have found room.

    No verdict of samples alone changes: all nodes are below the limit all the time.
    """
    burst = Burst(1, "inflight: {cpu: 800m}")
    harness = burst.leader
    harness.load_rules(rules(burst.inflight).replace("    score", "    filter: {max: 0.6}\n    score"), generation=2)
    burst.refresh()
    for number in range(MANY):
        harness.see(pod(number))
    harness.run(MANY + 1)
    placed = harness.placed()
    assert 0 < len(placed) < MANY, "one or two to a node, each as good as 800m"
    harness.settle()
    return burst, placed


def test_a_pod_that_waits_for_room_in_flight_comes_back_with_the_samples_that_show_it() -> None:
    burst, placed = with_too_many_pods()
    harness, waiting = burst.leader, MANY - len(placed)
    for name, node in placed.items():
        harness.see(pod(int(name[1:]), node, burst.now_s, burst.now_s + 2.0), "MODIFIED")
        burst.cluster.running.append((node, burst.now_s + 2.0))
    assert harness.run() == 0

    back = dict[str, str]()
    for _ in range(10):
        burst.now_s += STEP_S
        burst.refresh()
        harness.now_s += 3.0
        while harness.run(waiting + 1):
            back |= harness.placed()
            harness.settle()

    assert len(back) == waiting


def test_a_pod_that_waits_for_room_in_flight_comes_back_when_a_placed_one_goes() -> None:
    burst, placed = with_too_many_pods()
    harness = burst.leader
    harness.loop.look_after()
    for name, node in list(placed.items())[:5]:
        harness.see(pod(int(name[1:]), node, burst.now_s), "MODIFIED")
        harness.see(pod(int(name[1:]), node, burst.now_s), "DELETED")
    assert harness.run() == 0, "each that goes would bring all back"

    burst.now_s += STEP_S
    burst.refresh()
    harness.now_s += 3.0
    harness.run(MANY)

    assert len(harness.placed()) == 5
