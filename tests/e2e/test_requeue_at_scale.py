"""Pods that only a metric holds back: tried again as soon as it recovers, and never all at once.

`REQUEUE=full pytest tests/e2e/test_requeue_at_scale.py --log-cli-level INFO` holds 5,000 Pods back instead of 300 and
tells what it has measured. The bounds are those of a refresh that frees many: 200 Pods tried and 50 texts of conditions
written in any one second, and Pods that no rule concerns are decided as fast as before: their p99 at most
doubles, which only the full form judges, on an idle machine.
"""

from __future__ import annotations

import datetime
import json
import logging
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.e2e.conftest import StartVane
from tests.e2e.world import CPU_EXPR, INTERVAL_S, MeasuredCluster, rules
from tests.support import manifests
from tests.support.audit import AuditLog
from tests.support.clocks import OwnTime
from tests.support.controlplane import ControlPlane
from tests.support.exporter import NodeExporter
from tests.support.kubeapi import KubeApi
from tests.support.manifests import Json
from tests.support.plugin import StartPrometheus
from tests.support.vane import VaneProcess
from tests.support.waiting import wait_until

log = logging.getLogger(__name__)

IS_FULL = os.environ.get("REQUEUE") == "full"
N_HELD = 5_000 if IS_FULL else 300
N_ON_FIRST = 40
"""How many Pods the node takes that recovers first."""
N_FRESH = 300 if IS_FULL else 60
LOOK_S = 5.0 if IS_FULL else 0.2
"""How often the API server is asked for all Pods."""
LATEST_S = INTERVAL_S + 2.0
MAX_TRIES_PER_S = 200
MAX_TEXTS_PER_S = 50

HOT, COOL = 0.95, 0.2
LIMIT = 0.8
HELD = {"tier": "held"}
RULE = f"""\
  - name: avoid-hot-nodes
    match: {{labels: {{tier: held}}}}
    signal: node_cpu
    filter: {{max: {LIMIT}, missing: reject}}
"""
FIRST, FREE = "node-00", "node-free"


@pytest.fixture
def cluster(api: KubeApi, exporter: NodeExporter, start_prometheus: StartPrometheus) -> MeasuredCluster:
    """Twenty measured nodes that together take all Pods, the first of them few, and one for Pods of no rule."""
    measured = [f"node-{i:02}" for i in range(20)]
    for name in measured:
        api.create_node(name, cpu="1000", memory="1000Gi", pods=str(N_ON_FIRST if name == FIRST else N_HELD))
        exporter.add_node(name, cores=1)
    api.create_node(FREE, cpu="1000", memory="1000Gi", pods=str(10 * N_FRESH), taints=[_ONLY_FRESH])
    prometheus = start_prometheus([exporter.scrape_config()], scrape_interval="500ms")
    return MeasuredCluster(api, exporter, prometheus, measured)


_ONLY_FRESH = {"key": "fresh", "value": "yes", "effect": "NoSchedule"}


def held_pods(count: int) -> Iterable[Json]:
    for i in range(count):
        yield manifests.pod(f"held-{i}", cpu="10m", memory="1Mi", scheduler_name="vane", labels=HELD)


def fresh_pod(name: str) -> Json:
    spec = {"tolerations": [{"key": "fresh", "operator": "Exists"}], "nodeSelector": {"kubernetes.io/hostname": FREE}}
    return manifests.pod(name, cpu="10m", memory="1Mi", scheduler_name="vane", spec=spec)


def begin(cluster: MeasuredCluster, start_vane: StartVane, folder: Path, count: int) -> VaneProcess:
    """Start Vane on a hot cluster and have so many Pods held back by the rule alone."""
    cluster.set_cpu(cluster.nodes, HOT)
    rule_file = folder / "rules.yaml"
    rule_file.write_text(rules(RULE))
    vane = start_vane(rules=[rule_file], prometheus=cluster.prometheus.url)
    cluster.api.create_pods(held_pods(count))
    vane.wait_for_metric('scheduler_pending_pods{queue="unschedulable"}', count, timeout=30 + count / 50)
    return vane


def cool(cluster: MeasuredCluster, nodes: Sequence[str]) -> float:
    """Take the load off nodes; return when Prometheus said so of the last of them, in Unix seconds."""
    for name in nodes:
        cluster.exporter.set_cpu(name, COOL)

    def is_seen() -> bool:
        values = cluster.prometheus.values(CPU_EXPR)
        return all(values.get(name, 1.0) <= LIMIT for name in nodes)

    wait_until(is_seen, 20.0, "the recovery in Prometheus", interval=0.02)
    return time.time()  # noqa: TID251  # compared with the API server's log


def times_of(events: Iterable[Json]) -> list[float]:
    """Return when requests of the audit log came in, ascending, in Unix seconds."""
    return sorted(datetime.datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp() for event in events)


def most_in_a_second(times: Sequence[float]) -> int:
    """Return the most of the ascending times that lie within any one second."""
    ends = np.searchsorted(times, np.array(times) + 1.0, side="left")
    return int((ends - np.arange(len(times))).max(initial=0))


def binds(audit: AuditLog) -> dict[str, float]:
    """Return when each Pod was bound by Vane."""
    events = audit.events(verb="create", resource="pods", subresource="binding", user="vane")
    good = [event for event in events if event["responseStatus"]["code"] == 201]
    return {event["objectRef"]["name"]: times_of([event])[0] for event in good}


def tried(vane: VaneProcess) -> float:
    return vane.metric('scheduler_queue_incoming_pods_total{event="SignalsRefreshed",queue="active"}') or 0.0


def test_a_pod_is_placed_within_an_interval_and_two_seconds_of_the_recovery_without_any_other_event(
    cluster: MeasuredCluster, control_plane: ControlPlane, start_vane: StartVane, tmp_path: Path, audit: AuditLog
) -> None:
    vane = begin(cluster, start_vane, tmp_path, 20)
    since, time_ = audit.from_now(), own_time(vane, cluster, control_plane)

    recovered_s = cool(cluster, cluster.nodes[1:])
    wait_until(lambda: len(cluster.placements()) == 20, 10.0, "all bound")

    bound = binds(since)
    assert len(bound) == 20
    assert max(bound.values()) - recovered_s <= LATEST_S + time_.waited_s
    first_bind_s = min(bound.values())
    changes = [event for event in since.events() if event["verb"] not in ("get", "list", "watch")]
    others = [
        event for event in changes if event["user"]["username"] != "vane" and times_of([event])[0] <= first_bind_s
    ]
    assert [event["requestURI"] for event in others if "/leases/" not in event["requestURI"]] == []
    log.info(
        "20 Pods bound %.2f to %.2f s after the recovery", first_bind_s - recovered_s, max(bound.values()) - recovered_s
    )


def own_time(vane: VaneProcess, cluster: MeasuredCluster, control_plane: ControlPlane) -> OwnTime:
    pids = [*vane.pids(), *control_plane.pids.values(), cluster.prometheus.process.pid, os.getpid()]
    return OwnTime(pids)


def decided_in_ms(vane: VaneProcess, after: int, prefix: str) -> tuple[int, list[float]]:
    """Return the number of the newest decision, and how long those about Pods of this name took that come after one."""
    found: list[float] = []
    while True:
        page = json.loads(vane.page(f"decisions?after={after}&limit=50"))
        found += [
            1000.0 * one["decided_in_s"] for one in page["decisions"] if one["pod"].startswith(f"default/{prefix}")
        ]
        if not page["decisions"]:
            return after, found
        after = page["next"]


def place_fresh(cluster: MeasuredCluster, prefix: str) -> None:
    """Create Pods that no rule concerns, one after the other, for as long as a wave of the small form takes."""
    for i in range(N_FRESH):
        cluster.api.post("/api/v1/namespaces/default/pods", fresh_pod(f"{prefix}-{i}"))
        time.sleep(0.05)


@pytest.mark.timeout(1_500 if IS_FULL else 300)
def test_thousands_of_pods_come_back_one_after_the_other(
    cluster: MeasuredCluster, control_plane: ControlPlane, start_vane: StartVane, tmp_path: Path, audit: AuditLog
) -> None:
    vane = begin(cluster, start_vane, tmp_path, N_HELD)
    number, _ = decided_in_ms(vane, 0, "none")
    place_fresh(cluster, "before")
    wait_until(lambda: _n_bound(cluster, "before") == N_FRESH, 60.0, "the Pods of no rule", LOOK_S)
    number, before_ms = decided_in_ms(vane, number, "before")

    # One node recovers, for few of them: the others are tried, and refused with another text.
    since, tried_before, began_s = audit.from_now(), tried(vane), time.monotonic()
    cool(cluster, [FIRST])
    place_fresh(cluster, "during")
    wait_until(lambda: tried(vane) - tried_before >= N_HELD, 60 + N_HELD / 50, "every Pod tried", LOOK_S)
    took_s = time.monotonic() - began_s
    wait_until(lambda: _n_bound(cluster, "during") == N_FRESH, 60.0, "the Pods of no rule", LOOK_S)
    number, during_ms = decided_in_ms(vane, number, "during")
    held = {name: at for name, at in binds(since).items() if name.startswith("held")}
    assert len(held) == N_ON_FIRST
    wait_until(
        lambda: _n_with_text(cluster, "Too many pods") >= N_HELD - N_ON_FIRST, 60 + N_HELD / 10, "the texts", LOOK_S
    )
    texts = times_of(since.events(verb="patch", resource="pods", subresource="status", user="vane"))
    assert took_s >= (N_HELD - MAX_TRIES_PER_S) / MAX_TRIES_PER_S
    assert most_in_a_second(texts) <= MAX_TEXTS_PER_S
    before, during = (np.quantile(took, (0.5, 0.9, 0.99)) for took in (before_ms, during_ms))
    took = (N_HELD, took_s, most_in_a_second(texts), texts[-1] - texts[0])
    log.info("one node: %d tried in %.1f s, at most %d texts a second, over %.0f s", *took)
    log.info("Pods of no rule, decided in ms (p50, p90, p99): %s before, %s during the wave", before, during)
    assert len(during_ms) == N_FRESH

    # All recover.
    since, time_ = audit.from_now(), own_time(vane, cluster, control_plane)
    recovered_s = cool(cluster, cluster.nodes)
    wait_until(lambda: _n_bound(cluster, "held") == N_HELD, 60 + N_HELD / 50, "all bound", LOOK_S)
    times = sorted(binds(since).values())
    assert times[-1] - times[0] >= (len(times) - MAX_TRIES_PER_S) / MAX_TRIES_PER_S - 1.0
    assert times[0] - recovered_s <= LATEST_S + time_.waited_s
    log.info(
        "all nodes: %d bound %.2f to %.2f s after the recovery, at most %d a second",
        len(times), times[0] - recovered_s, times[-1] - recovered_s, most_in_a_second(times),
    )  # fmt: skip
    assert not IS_FULL or during[-1] <= 2 * before[-1]


def _n_bound(cluster: MeasuredCluster, prefix: str) -> int:
    return sum(name.startswith(prefix) for name in cluster.placements())


def _n_with_text(cluster: MeasuredCluster, text: str) -> int:
    conditions = (pod["status"].get("conditions", []) for pod in cluster.api.pods())
    return sum(any(text in one.get("message", "") for one in of_pod) for of_pod in conditions)
