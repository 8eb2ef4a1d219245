"""Pods that a rule alone refuses, until its signal falls."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from tests.e2e.world import INTERVAL_S, replace_file
from tests.faults.bench.bench import Bench, Setting
from tests.faults.bench.churn import GATE_SERIES, GATED
from tests.faults.bench.placing import placed_after_s, quantile
from tests.faults.bench.servers import NODES
from tests.faults.bench.told import Decisions
from tests.faults.checker.evidence import Allowance
from tests.faults.checker.processes import Flat
from tests.faults.row import Row
from tests.faults.rows import steps
from tests.support.manifests import Json

_LATEST_S = INTERVAL_S + 2.0
_MAX_BINDS_PER_S = 200
_MAX_TEXTS_PER_S = 50
_MAX_DECIDED_MS = 5.0
_BOUND_S = 0.4
"""As beside hostile Pods."""
_MAX_SPREAD = 2
_FRESH_PER_S = 5.0
_QUERY = f"max by (instance) ({GATE_SERIES})"
_PREFER_UNLOADED = f"""\
apiVersion: vane.dev/v1
kind: Rules
signals:
  load: {{expr: {_QUERY}, by: node, interval: 1s, max_age: 10s, range: [0, 1]}}
rules:
  - {{name: prefer-unloaded-nodes, signal: load, score: {{best: 0, worst: 1}}, weight: 3}}
"""


def signal_falls(bench: Bench) -> None:
    """Pods that only a rule refuses are placed once its signal falls, with no event of Kubernetes at all."""
    bench.churn.pause()
    bench.until(lambda: not bench.pending(), 30.0, "an end of all Pods")
    took_s = []
    with _gate_mended(bench):
        for i in range(int(bench.seconds(12, 3))):
            _set_gate(bench, 1.0, NODES)
            bench.last(2 * INTERVAL_S)
            refused = [f"held-{i}-{j}" for j in range(3)]
            steps.create(bench, refused, labels=GATED)
            steps.wait_refused(bench, refused)
            bench.last(0.3 * (i % 4))
            fallen_s = _set_gate(bench, 0.0, NODES)
            took_s.append(_placed_after_s(bench, refused, fallen_s))
    bench.figure("times that the signal fell", len(took_s))
    bench.figure("placed after the signal fell, longest, s", max(took_s), at_most=_LATEST_S)
    bench.figure("placed by the flush alone", _flushed(bench), at_most=0)


def signal_falls_meanwhile(bench: Bench) -> None:
    """The signal falls while Pods are tried: none misses that, between its try and where it waits."""
    took_s = []
    with _gate_mended(bench):
        for i in range(int(bench.seconds(12, 3))):
            _set_gate(bench, 1.0, NODES)
            bench.last(2 * INTERVAL_S)
            created: list[str] = []
            with _creating(bench, f"between-{i}", 40.0, created, GATED):
                bench.last(0.5)
                fallen_s = _set_gate(bench, 0.0, NODES)
                bench.last(1.0)
            last_s = max(fallen_s, steps.unix_clock())
            took_s.append(_placed_after_s(bench, created, last_s))
            steps.delete(bench, created)
    bench.figure("times that the signal fell", len(took_s))
    bench.figure("placed after the signal fell, longest, s", max(took_s), at_most=_LATEST_S)


def wave(bench: Bench) -> None:
    """Many Pods wait for one signal. It falls for one node, and then for all.

    No Pod is deleted meanwhile: that frees room, for which Vane, as kube-scheduler, tries all at once that wait for it.
    """
    bench.churn.pause()
    n_held = int(bench.seconds(1500, 250))
    for name in NODES[1:]:
        _set_pods(bench, name, n_held)
    with _gate_mended(bench):
        _set_gate(bench, 1.0, NODES)
        bench.last(2 * INTERVAL_S)
        held = [f"held-{i}" for i in range(n_held)]
        steps.create(bench, held, labels=GATED)
        steps.wait_refused(bench, held, 90.0)
        before, during, decisions = list[str](), list[str](), Decisions(bench.leader().vane)
        with _creating(bench, "before", _FRESH_PER_S, before):
            bench.last(bench.seconds(20.0, 5.0))
        steps.wait_placed(bench, before)
        begun_s = steps.unix_clock()
        with _creating(bench, "during", _FRESH_PER_S, during):
            _set_gate(bench, 0.0, NODES[:1])
            bench.last(bench.seconds(20.0, 5.0))
        steps.wait_placed(bench, during)
        _set_gate(bench, 0.0, NODES)
        steps.wait_placed(bench, held, 90.0)
    bench.last(1.0)
    since = [one for one in bench.asked() if one.at_s >= begun_s and one.name.startswith("held-")]
    asked = {key: [one.at_s for one in since if (one.verb, one.resource) == key] for key in (_BINDS, _TEXTS)}
    history = bench.watcher.history
    p99_before, p99_during = (quantile(placed_after_s(history, names).values(), 0.99) for names in (before, during))
    bench.figure("Pods that waited", n_held)
    bench.figure("binds in a second, most", steps.most_within(asked[_BINDS]), at_most=_MAX_BINDS_PER_S)
    bench.figure("conditions written in a second, most", steps.most_within(asked[_TEXTS]), at_most=_MAX_TEXTS_PER_S)
    bench.figure("fresh Pods bound before the wave, p99, s", p99_before)
    bench.figure("fresh Pods bound during the wave, p99, s", p99_during, at_most=_BOUND_S)
    taken = decisions.more()
    alone, beside = _decided_ms(taken, "before-"), _decided_ms(taken, "during-")
    bench.figure("decisions of fresh Pods before the wave, p90, ms", quantile(alone, 0.9))
    bench.figure("decisions of fresh Pods during the wave, p90, ms", quantile(beside, 0.9), at_most=_MAX_DECIDED_MS)
    bench.measure_recovery()


def _decided_ms(decisions: Iterable[Json], prefix: str) -> list[float]:
    return [1000 * one["decided_in_s"] for one in decisions if one["pod"].partition("/")[2].startswith(prefix)]


_BINDS, _TEXTS = ("create", "pods/binding"), ("patch", "pods/status")


def herd(bench: Bench) -> None:
    """Equal Pods come at once to nodes that are equally loaded: they must not all go to one."""
    bench.churn.pause()
    steps.delete(bench, [pod["metadata"]["name"] for pod in bench.pods()])
    replace_file(bench.rule_file, _PREFER_UNLOADED)
    with _gate_mended(bench):
        _set_gate(bench, 0.2, NODES)
        bench.until(lambda: '"load"' in bench.leader().vane.page("signals"), 20.0, "the rule that prefers nodes")
        bench.last(2 * INTERVAL_S)
        names = [f"equal-{i}" for i in range(10 * len(NODES))]
        steps.create(bench, names, cpu="10m", memory="16Mi")
        steps.wait_placed(bench, names)
    placements = bench.api.placements("default")
    n_of = Counter(placements[name] for name in names)
    bench.figure("Pods", len(names))
    bench.figure("most less fewest Pods of a node", max(n_of.values()) - min(n_of[name] for name in NODES), _MAX_SPREAD)


@contextlib.contextmanager
def _gate_mended(bench: Bench) -> Iterator[None]:
    try:
        yield
    finally:
        for name in NODES:
            bench.servers.exporter.set_gauge(name, GATE_SERIES, 0.0)


def _set_gate(bench: Bench, value: float, nodes: Collection[str]) -> float:
    """Set the signal of nodes; return when Prometheus says so of all, in Unix seconds."""
    for name in nodes:
        bench.servers.exporter.set_gauge(name, GATE_SERIES, value)

    def is_shown() -> bool:
        values = bench.servers.prometheus.values(_QUERY)
        return all(values.get(name) == value for name in nodes)

    bench.until(is_shown, 20.0, "the gate's signal in Prometheus")
    return steps.unix_clock()


def _placed_after_s(bench: Bench, names: Collection[str], since_s: float) -> float:
    """Wait until all are placed, and return how long after a moment the last of them was."""
    steps.wait_placed(bench, names)
    bound_s = steps.bound_at_s(bench)
    return max(bound_s[name] for name in names) - since_s


@contextlib.contextmanager
def _creating(
    bench: Bench, prefix: str, per_s: float, created: list[str], labels: dict[str, str] | None = None
) -> Iterator[None]:
    """Create Pods at a rate all the while; their names come into `created`."""
    ended = threading.Event()

    def run() -> None:
        due_s = time.monotonic()
        while not ended.wait(max(0.0, due_s - time.monotonic())):
            due_s += 1 / per_s
            name = f"{prefix}-{len(created)}"
            steps.create(bench, [name], labels=labels)
            created.append(name)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _flushed(bench: Bench) -> float:
    return bench.leader().vane.metric("scheduler_pod_scheduled_after_flush_total") or 0.0


def _set_pods(bench: Bench, node: str, n_pods: int) -> None:
    """Let a node take more Pods than the nodes of the bench do."""
    pods = {"pods": str(n_pods)}
    bench.api.patch(f"/api/v1/nodes/{node}/status", {"status": {"allocatable": pods, "capacity": pods}})


_QUIET = Setting(node_every_s=3600.0)
_WAVE = replace(_QUIET, allowance=Allowance(flat=Flat(n_descriptors=48)))
"""Connections over which a wave was bound stay open for half a minute."""

ROWS = (
    Row("F04", "a signal falls, and nothing else happens", signal_falls, _QUIET),
    Row("F04-between", "a signal falls while Pods are tried", signal_falls_meanwhile, _QUIET),
    Row("F06", "a wave of Pods freed by a refresh", wave, _WAVE),
    Row("F06-herd", "equal Pods, equal nodes, one refresh", herd, _QUIET),
)
