"""Ten nodes measured by a Prometheus, and the parts of Vane from its client to a decision."""

from __future__ import annotations

import itertools
import os
import time
from typing import Any

from prometheus_client import CollectorRegistry

from scheduler.app.observers import CountingRefresher
from scheduler.decision.decide import decide
from scheduler.exposition import render
from scheduler.metrics import Metrics
from scheduler.model.identity import NodeIdentity
from scheduler.model.rules import Curve, Rule, RuleFilter, RuleScore, RuleSet, Signal
from scheduler.model.signals import Freshness, SignalTable
from scheduler.model.snapshot import Snapshot
from scheduler.model.views import NodeView
from scheduler.signals.answers import SignalAnswer
from scheduler.signals.asking.client import ClientSettings, PrometheusClient
from scheduler.signals.asking.refresher import Refresher
from scheduler.signals.asking.session import Bounds
from scheduler.signals.columns.store import SignalStore
from scheduler.signals.problems import SignalProblem, problems_of
from tests.builders import cluster_of, compiled, default_profile, make_node, make_pod
from tests.signals.columns.store_world import crossed
from tests.support.clocks import OwnTime
from tests.support.exporter import NodeExporter
from tests.support.fault_proxy import FaultProxy
from tests.support.prometheus import PrometheusServer

unix_clock = time.time  # noqa: TID251  # exporters and push gateways stamp by the wall

NODES = tuple(f"n{i}" for i in range(10))
BAD = ("n0", "n1")
"""The nodes whose data goes bad: those that are best as long as it is good."""

INTERVAL_S, MAX_AGE_S = 1.0, 3.0
BOUNDS = Bounds(connect_s=0.5, read_s=0.8, deadline_s=1.2)


def signal_of(name: str, expr: str, **more: Any) -> Signal:
    return Signal(name, expr, interval_s=INTERVAL_S, max_age_s=MAX_AGE_S, **more)


LOAD = signal_of("load", "max by (instance) (node_load1)", range=(0.0, 1000.0))
BUSY = signal_of("busy", '1 - avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[10s]))')
PUSHED = signal_of("pushed", "max by (instance) (pushed_load)", lag="time() - max by (instance) (push_time_seconds)")
STEADY = signal_of("steady", "max by (instance) (node_load5)")
SIGNALS = {signal.name: signal for signal in (LOAD, BUSY, PUSHED, STEADY)}
HIGHEST = {"load": 100.0, "busy": 1.0, "pushed": 100.0, "steady": 100.0}
RULES = RuleSet(
    SIGNALS,
    tuple(
        Rule(
            name,
            name,
            filter=RuleFilter(max=2 * HIGHEST[name], max_clear=2 * HIGHEST[name]),
            score=RuleScore(Curve((0.0, HIGHEST[name]), (100.0, 0.0))),
        )
        for name in SIGNALS
    ),
    1,
)
PUSH_TIME = "push_time_seconds"


class Measured:
    """Ten nodes under load that a Prometheus measures; n0 has least to do."""

    def __init__(self, server: PrometheusServer, exporter: NodeExporter) -> None:
        self.server = server
        self.exporter = exporter
        self.pushing = set(NODES)

    def own_time(self) -> OwnTime:
        """Return the time from now on that this process and Prometheus get to run."""
        return OwnTime([os.getpid(), self.server.process.pid])

    def push(self) -> None:
        """Do what jobs do that push: say when they last did."""
        for name in self.pushing:
            self.exporter.set_gauge(name, PUSH_TIME, unix_clock())


class Parts:
    """The parts from the client to a decision, put together as the processes do."""

    def __init__(self, measured: Measured) -> None:
        self.measured = measured
        self.proxy = FaultProxy(measured.server.url)
        self.proxy.start()
        self.metrics = Metrics(CollectorRegistry())
        self.store = SignalStore()
        self.state = cluster_of(make_node(name, cpu="64", memory="256Gi", pods="110") for name in NODES)
        identity = NodeIdentity.of(1, [node for node in self.state.nodes.objects if node is not None])
        self.store.add_identity(identity)
        self.store.set_rules(RULES)
        client = PrometheusClient(ClientSettings(self.proxy.url, bounds=BOUNDS))
        self.refresher = Refresher(client, self._publish, observer=CountingRefresher(self.metrics))
        self.refresher.set_identity(identity)
        self.refresher.set_rules(RULES)
        self._profile = default_profile()
        self._pod_numbers = itertools.count()
        self.decision_s: list[float] = []

    def stop(self) -> None:
        self.refresher.stop()
        self.proxy.stop()

    def _publish(self, answer: SignalAnswer) -> None:
        self.store.publish(crossed(answer))

    def frozen(self) -> SignalTable:
        return self.store.freeze(NodeView(self.state.nodes), time.monotonic())

    def decided(self) -> str:
        """Decide for one more Pod, and return its node."""
        begun_s = time.perf_counter()
        table = self.frozen()
        snapshot = Snapshot(self.state, table, time.monotonic())
        decision = decide(make_pod(f"pod-{next(self._pod_numbers)}", cpu="10m"), snapshot, self._profile)
        self.decision_s.append(time.perf_counter() - begun_s)
        return decision.node_name

    def scores(self, rule: str, table: SignalTable) -> dict[str, float]:
        snapshot = Snapshot(self.state, table, time.monotonic())
        scores = compiled(next(one for one in table.rules.rules if one.name == rule), snapshot).scores(None, snapshot)
        return dict(zip(NODES, scores.tolist(), strict=True))

    def freshness(self, signal: str, table: SignalTable) -> dict[str, Freshness]:
        """Return the state of each node's sample, absent where there is none."""
        column = table.columns[signal]
        return {
            name: column.freshness_at(row) if column.has_sample[row] else Freshness.ABSENT
            for row, name in enumerate(NODES)
        }

    def is_well(self, signal: str, since_s: float) -> bool:
        """Whether all nodes have a fresh sample, of an answer since then, and nothing is wrong with the last."""
        answer, last = self.store.answer(signal), self.refresher.query_health()[signal].last
        return (
            answer is not None
            and last is not None
            and answer.evaluated_at_s >= since_s
            and not problems_of(last)
            and set(self.freshness(signal, self.frozen()).values()) == {Freshness.FRESH}
        )

    def named(self, signal: str) -> set[str]:
        """Return what `vane top` and `/metrics` both say is wrong, `outage` where the server is at fault."""
        health = self.refresher.query_health()[signal]
        shown = {problem.value for problem in problems_of(health.last)} if health.last is not None else set()
        page = render(self.metrics.registry).decode().splitlines()
        exposed = {problem for problem in SignalProblem if _series("vane_signal_problem", problem, signal) in page}
        is_paused = f'vane_signal_paused{{signal="{signal}"}} 1.0' in page
        is_down = 'vane_prometheus_up{server=""} 0.0' in page
        return shown & exposed | ({"outage"} if health.pause == "outage" and is_paused and is_down else set())


def _series(name: str, problem: str, signal: str) -> str:
    return f'{name}{{problem="{problem}",signal="{signal}"}} 1.0'
