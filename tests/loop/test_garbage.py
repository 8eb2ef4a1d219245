from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator

import pytest

from scheduler.kube.watch_stream import Changed, Replaced
from scheduler.loop.garbage import GarbageCollection
from scheduler.loop.messages import PageAsked, Stop
from scheduler.loop.pages.pages import HealthQuery
from scheduler.loop.pages.signals import SignalsQuery
from tests.builders import make_node, make_pod
from tests.loop.harness import Harness


class Counted:
    def __init__(self) -> None:
        self.n = 0

    def __call__(self) -> None:
        self.n += 1


@pytest.mark.parametrize(
    ("busy_s", "idle_s", "collects"),
    [
        pytest.param([30.0], 61.0, True, id="quiet for a while, a minute after the last time"),
        pytest.param([30.0], 59.0, False, id="within the minute"),
        pytest.param([30.0, 60.5], 61.0, False, id="a Pod has only just been decided"),
        pytest.param([30.0, 60.5], 62.5, True, id="two seconds after the last Pod"),
        pytest.param([], 300.0, False, id="nothing has happened"),
    ],
)
def test_it_collects_while_nothing_waits(busy_s: list[float], idle_s: float, *, collects: bool) -> None:
    collect = Counted()
    collecting = GarbageCollection(collect)
    collecting.idle(0.0)
    assert collect.n == 0, "not before the first lists are in"
    collecting.begin(0.0)
    for now_s in busy_s:
        collecting.busy(now_s)

    collecting.idle(idle_s)
    collecting.idle(idle_s + 0.1)

    assert collect.n == 1 + collects


def test_the_first_lists_are_frozen_as_they_come() -> None:
    collect, freeze = Counted(), Counted()
    collecting = GarbageCollection(collect, freeze)
    collecting.start()
    assert freeze.n == 1, "what has been imported"
    for _ in range(100):
        collecting.listed(100)
    assert (collect.n, freeze.n) == (0, 6)

    collecting.begin(0.0)
    for _ in range(100):
        collecting.listed(100)
    assert (collect.n, freeze.n) == (1, 6), "later lists may leave garbage"


def test_the_collector_runs_while_a_kind_cannot_be_listed(restored_collector: None) -> None:
    harness = Harness()
    seen: list[bool] = []
    harness.inbox.put(Replaced("Node", [make_node("a")]))  # Pods never come
    harness.inbox.put(
        PageAsked(HealthQuery("livez"), lambda _: seen.append(gc.isenabled()), harness.page_faults.append)
    )
    harness.inbox.put(Stop(1, "enough"))
    gc.disable()
    harness.loop.run()
    assert seen == [True]


@pytest.fixture
def restored_collector() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.enable()
    gc.set_threshold(*thresholds)


SIGNALS = """
apiVersion: vane.dev/v1
kind: Rules
signals:
  use: {{expr: use, by: node, unit: ratio, inflight: {{cpu: request}}}}
  more: {{expr: more, by: node, unit: ratio}}
rules:
  - {{name: hot, signal: use, filter: {{max: 0.8}}, score: {{best: 0, worst: 1}}, weight: {weight}}}
  - {{name: warm, signal: more, score: {{best: 0, worst: 1}}, weight: 1}}
"""
FOR_SOME = """
  - {name: few, signal: more, filter: {max: 0.9}, canary: {percent: 10}}
  - {name: some, signal: more, match: {namespaces: [x*]}, score: {best: 0, worst: 1}, weight: 1, mode: shadow}
"""
APART: dict[str, object] = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "x"}}}
NODES = [f"node-{i}" for i in range(10)]


def _lived_through(harness: Harness, turn: int) -> None:
    """Other rules, other samples, nodes that come and go, Pods that are placed, refused, preempted and deleted."""
    harness.load_rules(SIGNALS.format(weight=1 + turn % 3) + FOR_SOME * (turn % 2), turn + 1)
    for signal in ("use", "more"):
        harness.answer(signal, {name: 0.85 - 0.03 * i for i, name in enumerate(NODES)}, 1e9 + turn)
    spread = {**APART, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    specs: list[dict[str, object]] = [
        {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [APART]}}},
        {"topologySpreadConstraints": [spread]},
        {"nodeName": NODES[turn % len(NODES)]},
        {},
    ]
    for i, name in enumerate(NODES):
        harness.see(make_pod(f"full-{turn - 1}-{i}", node=NODES[i], cpu="3500m"), "DELETED")
        harness.see(make_pod(f"full-{turn}-{i}", node=name, cpu="3500m", priority=-1))
    for i in range(24):
        is_large, name = i % 6 == 0, f"p-{turn}-{i}"
        cpu, priority = ("3", 100) if is_large else ("100m", 0)
        harness.see(make_pod(name, labels={"app": "x"}, priority=priority, spec=specs[i % 4], cpu=cpu))
    harness.run()
    harness.settle()
    harness.run()
    for i in range(12):
        harness.see(make_pod(f"p-{turn}-{i}"), "DELETED")
    harness.loop.apply(Changed("Node", "ADDED", make_node(f"extra-{turn}", cpu="4")))
    harness.loop.apply(Changed("Node", "DELETED", make_node(f"extra-{turn - 1}", cpu="4")))
    harness.metrics_page()
    harness.listing(SignalsQuery(limit=5))
    harness.now_s += 15.0


def test_nothing_that_is_dropped_waits_for_the_collector(restored_collector: None) -> None:
    # While Pods come all the time there is no full collection, and what is frozen is never collected at all.
    harness = Harness()
    harness.list_nodes(*(make_node(name, cpu="4") for name in NODES))
    harness.list_pods()
    for turn in range(4):
        _lived_through(harness, turn)
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        for turn in range(4, 10):
            _lived_through(harness, turn)
        gc.collect()
        left = Counter(f"{type(one).__module__}.{type(one).__qualname__}" for one in gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
    assert {name: n for name, n in left.items() if name.startswith("scheduler.")} == {}
    assert harness.binder.evictions, "some Pod was preempted"
