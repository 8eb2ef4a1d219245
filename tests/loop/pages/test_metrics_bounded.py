"""How many series the metrics page has: it grows with plugins, rules and signals, never with Pods or namespaces."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from scheduler.app.observers import CountingRefresher
from scheduler.exposition import merge, render
from scheduler.framework.plugin import FilterPlugin
from scheduler.framework.status import Rejection
from scheduler.kube.binder.messages import Outcome, RequestsDone
from scheduler.loop.messages import BinderSaid
from scheduler.metrics import Metrics
from scheduler.model.arrays import Rows
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from scheduler.signals.answers import Drops, SignalAnswer
from scheduler.signals.asking import query_errors
from tests.builders import make_node, make_pod
from tests.loop.harness import Harness

N_RULES = 100
LIMIT = 5_000
NODES = [f"node-{i}" for i in range(20)]
DROPS = Drops(nan=1, inf=1, parse=1, range=1, unmapped=1, duplicate=1, stale=1)
OUTCOMES: Sequence[Outcome] = ("conflict_other_node", "gated", "failed", "expired", "conflict_same_node")
VERBS = ("GET", "POST", "PATCH", "PUT")
CODES = ("200", "201", "403", "404", "409", "422", "429", "500", "503", "504", "<error>")
ERROR_KINDS = {
    error.kind
    for error in vars(query_errors).values()
    if isinstance(error, type) and issubclass(error, query_errors.QueryError)
}


class Fragile(FilterPlugin):
    """Raises for some Pods."""

    def filter(self, state: Any, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[Rejection]:
        if pod.pod.metadata.name.startswith("fragile-"):
            raise RuntimeError("it broke")
        return ()


def rule_file() -> str:
    signals = [f"  s{i}: {{expr: max by (node) (m{i}), by: node, interval: 10s, max_age: 40s}}" for i in range(N_RULES)]
    rules = [f"  - {{name: r{i}, signal: s{i}, filter: {{max: 0.8}}}}" for i in range(N_RULES)]
    return "\n".join(["apiVersion: vane.dev/v1", "kind: Rules", "signals:", *signals, "rules:", *rules, ""])


def refresher_page() -> bytes:
    """Return the page of a refresher to which everything has happened, with every signal."""
    metrics = Metrics(CollectorRegistry())
    refresher = CountingRefresher(metrics)
    for i in range(N_RULES):
        for kind in ("", *ERROR_KINDS):
            refresher.query_done(f"s{i}", 0.1, kind)
        for reason in ("running", "breaker", "outage"):
            refresher.query_skipped(f"s{i}", reason)
        refresher.answered(SignalAnswer(f"s{i}", "", 1, 40.0, 0.0, n_series=26, n_mapped=20, drops=DROPS))
    return render(metrics.registry)


def pod_of(i: int) -> PodInfo:
    """Return one of the Pods: most fit, the others fail in every way, often enough to be among those sampled."""
    spec: dict[str, Any] = {}
    if i % 19 == 7:
        spec = {"resourceClaims": [{}]}
    elif i % 23 == 2:
        spec = {"schedulingGates": [{"name": "g"}]}
    cpu = "many" if i % 13 == 3 else "640" if i % 7 == 5 else "10m"
    name = f"fragile-{i}" if i % 11 == 1 else f"pod-{i}"
    return make_pod(name, namespace=f"team-{i}", cpu=cpu, spec=spec)


def schedule_wave(harness: Harness, first: int) -> None:
    """Have 1,000 Pods come and go, each in a namespace of its own."""
    pods = [pod_of(i) for i in range(first, first + 1000)]
    for pod in pods:
        harness.see(pod)
    harness.run(2_000)
    for outcome in OUTCOMES:
        others = harness.binder.binds[5:]
        del harness.binder.binds[5:]
        harness.settle(outcome)
        harness.binder.binds = others
    harness.settle()
    harness.loop.apply(
        BinderSaid([RequestsDone(verb=verb, code=code, durations_s=[0.01]) for verb in VERBS for code in CODES])
    )
    for pod in pods:
        harness.see(pod, "DELETED")
    harness.now_s += 60
    harness.run(2_000)
    harness.settle("deleted")


def page(harness: Harness, refresher: bytes) -> bytes:
    return merge({"deciding": harness.metrics_page().encode(), "refresher": refresher})


def series(page: bytes) -> set[str]:
    return {line.rpartition(" ")[0] for line in page.decode().splitlines() if not line.startswith("#")}


def test_three_thousand_pods_add_no_series_to_those_of_a_thousand(programs: Path) -> None:
    harness = Harness(extra_plugins=[Fragile()])
    harness.list_nodes(*(make_node(name, cpu="64", memory="256Gi", pods=1_000) for name in NODES))
    harness.list_pods()
    harness.load_rules(rule_file())
    for i in range(N_RULES):
        # Two nodes are too hot for the rule.
        harness.answer(f"s{i}", {name: 0.9 if name in NODES[:2] else 0.1 for name in NODES})
    refresher = refresher_page()
    schedule_wave(harness, 0)
    before = series(page(harness, refresher))

    for wave in (1, 2):
        schedule_wave(harness, wave * 1_000)

    after = page(harness, refresher)
    assert series(after) == before
    assert len(before) <= LIMIT
    names = {
        name for family in text_string_to_metric_families(after.decode()) for s in family.samples for name in s.labels
    }
    assert not names & {"pod", "uid", "namespace", "node"}
    checked = subprocess.run([programs / "promtool", "check", "metrics"], input=after, capture_output=True, check=False)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, b"")
