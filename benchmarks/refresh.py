"""What signals cost: 50 rules over 50 signals of 5,000 nodes each, asked every 15 s.

`python -m benchmarks.refresh` first takes one answer of 5,000 series from its bytes to columns and reads columns as a
cycle does, in this process, and prints CPU time. With `--running` it then starts a real kube-apiserver with 5,000
nodes, a real Prometheus and `vane run`, lets signals be asked, and prints what the refresher process and the deciding
process use, in percent of a core; the deciding process once with a single rule, and once with all of them. Last it
creates Pods, and prints how long each decision took meanwhile. Needs the programs of `make controlplane`.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from benchmarks.decide_alone import make_rules, make_state
from benchmarks.decide_running import create_pods, decided_in_s, measured
from benchmarks.usage import CpuSampler, wall_clock_s
from scheduler.framework.profile import Profile
from scheduler.model.identity import NodeIdentity
from scheduler.model.objects import Pod, decode_pod
from scheduler.model.pods import PodInfo
from scheduler.model.rules import (
    ByKind,
    Calls,
    Curve,
    PairKey,
    Rule,
    RuleFilter,
    RuleScore,
    RuleSet,
    Signal,
    WorkloadKey,
)
from scheduler.model.snapshot import Snapshot
from scheduler.model.views import NodeView
from scheduler.plugins import default_chain
from scheduler.rules.compiled import compiled_rules
from scheduler.signals.answers import SignalAnswer
from scheduler.signals.asking.asker import AskContext, SignalAsker
from scheduler.signals.asking.client import QueryResult
from scheduler.signals.asking.resolver import NodeResolver
from scheduler.signals.asking.session import parse_answer
from scheduler.signals.columns.store import SignalStore
from tests.controlplane.build import ensure_programs
from tests.support import manifests
from tests.support.controlplane import ControlPlane
from tests.support.vane import VaneProcess, grant_vane
from tests.support.waiting import wait_until

_REPEATS = 50
_READS = 1_000
_BATCHES = 31
_SETTLE_S = 20.0
_FILTER = RuleFilter(max=0.95, max_clear=0.9)
_SCORE = RuleScore(Curve((0.0, 1.0), (100.0, 0.0)))


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of signal, the rule over it, and the labels of one of its series."""

    signal: Signal
    labels: Callable[[int], dict[str, str]]

    @property
    def rule(self) -> Rule:
        """A new one with each call."""
        by = self.signal.by
        pod_label = "app" if by is ByKind.WORKLOAD else ""
        cards = ("nvidia.com/gpu",) if by is ByKind.GPU else ()
        return Rule(
            f"rule-{self.signal.name}",
            self.signal.name,
            filter=_FILTER,
            score=_SCORE,
            pod_label=pod_label,
            gpu_resources=cards,
            calls=Calls(pod_label="calls") if by is ByKind.PAIR else None,
        )


def node_name(i: int) -> str:
    return f"node-{i:05}"


def kinds(n_nodes: int) -> list[Kind]:
    """Return the kinds of signals whose answers have a series for each node, or as many by two keys."""
    n_far = max(n_nodes // 8, 1)
    return [
        Kind(Signal("node", "max by (node) (use)", range=(0.0, 1.0)), lambda i: {"node": node_name(i)}),
        Kind(Signal("instance", "max by (instance) (use)"), lambda i: {"instance": f"{node_name(i)}:9100"}),
        Kind(
            Signal("gpu", "max by (Hostname, gpu) (use)", by=ByKind.GPU),
            lambda i: {"Hostname": node_name(i % n_far), "gpu": str(i // n_far)},
        ),
        Kind(
            Signal("workload", "max by (app, node) (use)", by=ByKind.WORKLOAD, workload=WorkloadKey("app")),
            lambda i: {"app": f"app-{i // n_far}", "node": node_name(i % n_far)},
        ),
        Kind(
            Signal("pair", "max by (a, b) (use)", by=ByKind.PAIR, label="zone", pair=PairKey("a", "b")),
            lambda i: {"a": f"z{i // 71}", "b": f"z{i % 71}"},
        ),
    ]


class Recorded:
    """A QueryClient that reads the bytes of answers, one after the other; nothing lags."""

    def __init__(self, kind: Kind, n_series: int) -> None:
        random = np.random.default_rng(7)
        self._bodies = [_body(kind, n_series, random.random(n_series)) for _ in range(4)]
        self._expr = kind.signal.expr
        self._turn = 0

    def query(self, expr: str, lookback_s: float | None = None) -> QueryResult:
        if expr != self._expr:
            return QueryResult([], False, (), time.monotonic(), 1000.0)
        self._turn += 1
        answer = parse_answer(self._bodies[self._turn % len(self._bodies)])
        return QueryResult(answer.series, False, answer.warnings, time.monotonic(), 1000.0)


def _body(kind: Kind, n_series: int, values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> bytes:
    result = [{"metric": kind.labels(i), "value": [1000.0, repr(float(values[i]))]} for i in range(n_series)]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()


@dataclass(frozen=True, slots=True)
class Costs:
    """CPU seconds of one answer in the refresher process and in the deciding one, and of reading it once."""

    asked_s: float
    published_s: float
    read_s: float
    judged_s: float


def measure_kind(kind: Kind, n_nodes: int) -> Costs:
    profile = Profile.build("vane", default_chain())
    state = make_state(n_nodes, profile)
    identity = NodeIdentity.of(1, [node for node in state.nodes.objects if node is not None])
    store, rule = SignalStore(), kind.rule
    store.add_identity(identity)
    store.set_rules(RuleSet({kind.signal.name: kind.signal}, (rule,), 1))
    asker = SignalAsker(kind.signal, time.monotonic, lambda: 0.5)
    client, resolver = Recorded(kind, n_nodes), NodeResolver(identity)
    encoder, decoder = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder(SignalAnswer)
    view, pod = NodeView(state.nodes), _asking_pod()
    asked, published = [], []
    for _ in range(_REPEATS):
        began = time.process_time()
        message = encoder.encode(asker.ask(AskContext(client, lambda: resolver, 1)))
        crossed = time.process_time()
        store.publish(decoder.decode(message))
        table = store.freeze(view, time.monotonic())
        asked.append(crossed - began)
        published.append(time.process_time() - crossed)
    snapshot = Snapshot(state, table, time.monotonic())
    reading = compiled_rules(snapshot).by_name[rule.name].reading
    reads = _each_s(lambda: reading.column(pod, snapshot))
    judged = _each_s(lambda: reading.tripped(pod, snapshot))
    return Costs(float(np.median(asked)), float(np.median(published)), reads, judged)


def _asking_pod() -> PodInfo:
    """Return a Pod of a workload that is measured, which asks for cards and calls a domain."""
    container = {"name": "app", "image": "app:1", "resources": {"requests": {"cpu": "100m", "nvidia.com/gpu": "2"}}}
    metadata = {"name": "pod", "namespace": "default", "uid": "uid", "labels": {"app": "app-3", "calls": "z7"}}
    pod = decode_pod(msgspec.json.encode({"metadata": metadata, "spec": {"containers": [container]}}))
    assert isinstance(pod, Pod)
    return PodInfo(pod)


def _each_s(read: Callable[[], object]) -> float:
    """Return CPU seconds of one call, the median of batches."""
    batches = []
    for _ in range(_BATCHES):
        began = time.process_time()
        for _ in range(_READS):
            read()
        batches.append((time.process_time() - began) / _READS)
    return float(np.median(batches))


def show_answers(n_nodes: int) -> None:
    print(f"One answer of {n_nodes} series, from bytes to columns; CPU time of one thread, median of {_REPEATS}")
    print(f"{'by':10}{'refresher':>12}{'deciding':>12}{'together':>12}{'column':>12}{'tripped':>12}")
    for kind in kinds(n_nodes):
        costs = measure_kind(kind, n_nodes)
        steps = (costs.asked_s, costs.published_s, costs.asked_s + costs.published_s)
        figures = "".join(f"{seconds * 1e3:9.2f} ms" for seconds in steps)
        figures += "".join(f"{seconds * 1e6:9.2f} µs" for seconds in (costs.read_s, costs.judged_s))
        print(f"{kind.signal.name:10}{figures}", flush=True)


def show_running(arguments: argparse.Namespace, folder: Path) -> None:
    programs = ensure_programs()
    names = [node_name(i) for i in range(arguments.nodes)]
    control_plane = ControlPlane(programs, folder)
    control_plane.start()
    sampler = CpuSampler(0.25)
    sampler.start()
    expr = "max by (node) (use) + 0.001 * {i}"
    try:
        api = control_plane.client()
        api.create_nodes(manifests.node(name, cpu="4") for name in names)
        grant_vane(api, "vane")
        rules = folder / "rules.yaml"
        rules.write_bytes(make_rules(1, expr))
        for part in ("prometheus", "vane"):
            (folder / part).mkdir()
        with measured(programs, folder / "prometheus", names) as prometheus:
            flags = ["-v", "4", "--logging-format", "json"]
            kubeconfig = control_plane.make_kubeconfig("vane")
            vane = VaneProcess(folder / "vane", kubeconfig, [rules], prometheus.url, flags, is_audited=False)
            vane.start(120.0)
            _show_usage(f"with 1 rule, for {arguments.seconds:g} s", sampler, arguments.seconds)
            rules.write_bytes(make_rules(arguments.rules, expr))
            wait_until(lambda: _n_fresh(vane) == arguments.rules, 60.0, "all signals fresh")
            _show_usage(f"with {arguments.rules} rules, for {arguments.seconds:g} s", sampler, arguments.seconds)
            create_pods(api, arguments.pods, arguments.rate)
            wait_until(lambda: len(decided_in_s(vane.process.log_text())) >= arguments.pods, 60.0, "all decided")
            took = np.array(decided_in_s(vane.process.log_text())) * 1e3
            vane.stop()
        p50, p99, worst = np.percentile(took, [50, 99, 100])
        print(f"{len(took)} decisions meanwhile: p50 {p50:.2f} ms, p99 {p99:.2f} ms, worst {worst:.2f} ms")
    finally:
        sampler.stop()
        control_plane.stop()


def _n_fresh(vane: VaneProcess) -> int:
    return sum(
        line.startswith("vane_signal_state{") and 'state="fresh"' in line and line.endswith(" 1.0")
        for line in vane.page("metrics").splitlines()
    )


def _show_usage(what: str, sampler: CpuSampler, seconds: float) -> None:
    """Print the CPU time of Vane's processes once all has settled, in percent of a core."""
    time.sleep(_SETTLE_S)
    from_s = wall_clock_s()
    time.sleep(seconds)
    to_s = wall_clock_s()
    used = sampler.cpu_s(from_s, to_s)
    ours = {name: 100.0 * cpu_s / (to_s - from_s) for name, cpu_s in used.items() if name.startswith("scheduler")}
    shown = ", ".join(f"{name} {percent:.2f} %" for name, percent in sorted(ours.items()))
    print(f"{what}: {shown} of a core; others took {sampler.strangers(from_s, to_s):.0%} of the machine", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--rules", type=int, default=50)
    parser.add_argument("--running", action="store_true", help="also in the running processes")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long CPU time is counted")
    parser.add_argument("--pods", type=int, default=1_500)
    parser.add_argument("--rate", type=float, default=25.0, help="Pods created a second")
    arguments = parser.parse_args()
    show_answers(arguments.nodes)
    if arguments.running:
        with tempfile.TemporaryDirectory() as folder:
            show_running(arguments, Path(folder))


if __name__ == "__main__":
    main()
