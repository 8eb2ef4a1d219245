"""How long one decision takes: 5,000 nodes, a basic Pod, some rules, nothing else in the process.

`python -m benchmarks.decide_alone [--nodes N] [--rules N] [--inflight N] [--pods N]` prints p50, p99 and the worst in
milliseconds; placed Pods add to the first `--inflight` signals until samples show them. Each Pod is assumed on its node
before the next is decided, as in the loop.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time

import msgspec
import numpy as np

from scheduler.app.run import SWITCH_INTERVAL_S
from scheduler.decision.decide import decide
from scheduler.decision.record import record_of
from scheduler.framework.profile import Profile
from scheduler.model.identity import NodeIdentity
from scheduler.model.objects import Node, Pod, decode_node, decode_pod
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from scheduler.model.state import ClusterState
from scheduler.model.views import NodeView
from scheduler.plugins import default_chain
from scheduler.rules.compiled import indexes_for
from scheduler.signals.answers import SignalAnswer, signature
from scheduler.signals.columns.store import SignalStore
from scheduler.signals.format.rule_files import parse_rule_files

_SIGNAL = """\
  use_{i}:
    expr: {expr}
    by: node
    unit: ratio
"""
_INFLIGHT = """\
    inflight: {cpu: request}
"""
_RULE = """\
  - name: rule-{i}
    signal: use_{i}
    filter: {{max: 0.95, clear: 0.9}}
    score: {{best: 0, worst: 1}}
    weight: 2
"""


def make_rules(n_rules: int, expr: str = "max by (node) (use_{i})", n_inflight: int = 0) -> bytes:
    """Return a rule file of `n_rules` rules that filter and score, each over a signal of its own."""
    signals = "".join(
        _SIGNAL.format(i=i, expr=expr.format(i=i)) + (_INFLIGHT if i < n_inflight else "") for i in range(n_rules)
    )
    rules = "".join(_RULE.format(i=i) for i in range(n_rules))
    return f"apiVersion: vane.dev/v1\nkind: Rules\nsignals:\n{signals}rules:\n{rules}".encode()


def make_state(n_nodes: int, profile: Profile) -> ClusterState:
    state = ClusterState(indexes=indexes_for([profile]))
    for i in range(n_nodes):
        name = f"node-{i:05}"
        node = {
            "metadata": {
                "name": name,
                "labels": {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"z{i % 3}"},
            },
            "spec": {"taints": [{"key": "dedicated", "effect": "NoSchedule"}] if i % 50 == 0 else []},
            "status": {"allocatable": {"cpu": "4", "memory": "32Gi", "pods": "110"}},
        }
        decoded = decode_node(msgspec.json.encode(node))
        assert isinstance(decoded, Node)
        state.set_node(decoded)
    return state


def make_store(n_rules: int, state: ClusterState, now_s: float, n_inflight: int = 0) -> SignalStore:
    """Return a store in which every signal has just been answered for every node."""
    store = SignalStore(lambda: now_s)
    rules = (
        parse_rule_files({"benchmark.yaml": make_rules(n_rules, n_inflight=n_inflight)})
        if n_rules
        else parse_rule_files({})
    )
    store.set_rules(rules)
    identity = NodeIdentity.of(1, [node for node in state.nodes.objects if node is not None])
    store.add_identity(identity)
    random = np.random.default_rng(7)
    for name, signal in rules.signals.items():
        store.publish(
            SignalAnswer(
                signal=name,
                signature=signature(signal),
                rules_generation=rules.generation,
                max_age_s=signal.max_age_s,
                evaluated_at_s=now_s,
                evaluated_unix_s=0.0,
                identity_generation=1,
                values=random.random(len(identity.names)).tobytes(),
                n_series=len(identity.names),
                n_mapped=len(identity.names),
            )
        )
    return store


def make_pod(i: int) -> PodInfo:
    pod = decode_pod(
        msgspec.json.encode(
            {
                "metadata": {"name": f"pod-{i}", "namespace": "default", "uid": f"uid-{i}"},
                "spec": {
                    "schedulerName": "vane",
                    "containers": [
                        {"name": "app", "image": "app:1", "resources": {"requests": {"cpu": "100m", "memory": "500Mi"}}}
                    ],
                },
            }
        )
    )
    assert isinstance(pod, Pod)
    return PodInfo(pod)


def settle_as_running() -> None:
    """Have the interpreter as the deciding thread of `vane run` has it, once the first lists are in."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.collect()
    gc.freeze()


def measure(n_nodes: int, n_rules: int, n_pods: int, n_inflight: int = 0) -> dict[str, list[float]]:
    """Return seconds per Pod of each step."""
    profile = Profile.build("vane", default_chain())
    state = make_state(n_nodes, profile)
    now_s = 1_000.0
    store = make_store(n_rules, state, now_s, n_inflight)
    pods = [make_pod(i) for i in range(n_pods + 50)]
    settle_as_running()
    took: dict[str, list[float]] = {"freeze": [], "decide": [], "record": [], "assume": []}
    for pod in pods:
        began = time.perf_counter()
        signals = store.freeze(NodeView(state.nodes), now_s)
        snapshot = Snapshot(state, signals, now_s)
        frozen = time.perf_counter()
        decision = decide(pod, snapshot, profile)
        decided = time.perf_counter()
        record_of(pod, snapshot, decision, "vane", 0.0)
        recorded = time.perf_counter()
        state.place(pod, decision.row)
        placed = time.perf_counter()
        for step, seconds in zip(
            took, (frozen - began, decided - frozen, recorded - decided, placed - recorded), strict=True
        ):
            took[step].append(seconds)
    return {step: seconds[50:] for step, seconds in took.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--rules", type=int, default=5)
    parser.add_argument("--inflight", type=int, default=0)
    parser.add_argument("--pods", type=int, default=5_000)
    arguments = parser.parse_args()
    took = measure(arguments.nodes, arguments.rules, arguments.pods, arguments.inflight)
    what = f"{arguments.rules} rules, {arguments.inflight} with pending load"
    print(f"{arguments.nodes} nodes, {what}, {arguments.pods} Pods; milliseconds")
    for step, seconds in took.items():
        p50, p99, worst = np.percentile(np.array(seconds) * 1e3, [50, 99, 100])
        print(f"{step:8} p50 {p50:.3f}  p99 {p99:.3f}  max {worst:.3f}")


if __name__ == "__main__":
    main()
