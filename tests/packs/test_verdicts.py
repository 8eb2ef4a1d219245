"""What every pack says of every node, on recorded samples in a real Prometheus."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from scheduler.decision.decide import decide
from scheduler.model.pods import PodInfo
from tests.builders import default_profile, make_pod
from tests.packs.record import BURN_RATES, NODES, PHASE_S
from tests.packs.recording import END_S
from tests.packs.world import PACKS, RULES, RecordedCluster, Verdict, load
from tests.support.prometheus import PrometheusServer

# Pack -> rule -> points of node-1 to node-6; `x` where the rule refuses the node, None where it has no score. A node
# without a sample gets the median of the others.
POINTS: dict[str, dict[str, list[str | float | None]]] = {
    "node-utilisation": {
        # In use: 0.25, 0.85, 0, 0.5, 0.78, nobody knows.
        "node-cpu-use": [75, "x 15", 100, 50, 22, 50],
        "node-memory-use": [75, 60, "x 15", 50, 90, 60],
    },
    "service-latency": {
        # 75 ms, 375 ms and 1.75 s by zone.
        "istio-zone-p99": [100, 100, 65.625, 65.625, "x 0", "x 0"],
        # 87.5 ms, 0.375 s, and a zone without traffic.
        "otel-zone-p99": [100, 100, 65.625, 65.625, 82.8125, 82.8125],
    },
    "gpu": {
        # 0, 91, 25 and 90 percent on average, 0 again, no GPU.
        "gpu-utilisation": [100, "x 9", 75, 10, 100, 75],
        # MiB free on the freest card, of 80 GiB: 81033, 21037, 81033, 500, 22563.
        "gpu-memory-free": [98.917, 25.680, 98.917, "x 0.610", 27.543, 27.543],
        # Idle; all in use; one card of four in use; all in use; idle.
        "gpu-fragmentation": [100, 0, 85.557, 0, 100, 85.557],
    },
    "energy": {
        "node-cpu-power": [75, 25, 0, 90, 50, 50],
    },
    "temperature": {
        # 65, 92, 40 and 85 °C.
        "node-cpu-temperature": [50, "x 0", 100, 10, 30, 30],
        # 62.5 and 86 °C, a card that does not answer, 40 °C.
        "gpu-temperature": [50, "x 0", 50, 100, 50, 50],
    },
    "service-health": {
        # The worse of two endpoints counts: all well, one dead, every fourth probe lost, all well.
        "node-probe-success": [100, "x 0", 75, 100, 87.5, 87.5],
        "consul-node-critical": [None, None, "x", None, None, None],
        "consul-services-healthy": [100, 75, 62.5, "x 25", 50, 62.5],
    },
    "kubelet": {
        "kubelet-cpu-use": [75, "x 15", 100, 50, 22, 50],
        "kubelet-memory-use": [75, 60, "x 15", 50, 90, 60],
    },
    "batch-on-slack": {
        # In use as above; 0.65, 0.85, 0.6, 0.8 and 0.6 are requested. Nobody measures node-6, so batch keeps away.
        "batch-below-cpu-use": [None, "x", None, None, "x", "x"],
        "batch-below-memory-use": [None, None, "x", None, None, "x"],
        "batch-to-cpu-slack": [66.6667, 0, 100, 50, 0, 50],
    },
    "gpu-cards": {
        # The fourth card of node-3 is busy; nobody else has so many, and the worst of those that there are counts.
        "gpu-card-utilisation": [100, "x 9", "x 0", 10, 100, 10],
        # MiB free: 81033, 21037, 41037, 500, 22563.
        "gpu-card-memory-free": [98.917, 25.680, 50.094, "x 0.610", 27.543, 27.543],
        # None of these nodes advertises cards.
        "gpu-cards-gather": [50, 50, 50, 50, 50, 50],
    },
    "workload-latency": {
        # 75, 375 and 1750 ms; 45, 250 and 750 ms; 87.5 and 375 ms, and a Pod without traffic.
        "istio-workload-p99": [93.75, 41.6667, 41.6667, 41.6667, 0, 41.6667],
        "linkerd-workload-p99": [50, 100, 50, 50, 50, 16.6667],
        "otel-workload-p99": [90.625, 66.1458, 41.6667, 66.1458, 66.1458, 66.1458],
    },
    "zone-latency": {
        # 0.5, 10 and 55 ms to zone-a.
        "near-called-zone": [100, 100, 50, 50, 25, 25],
    },
    "slo-burn": {
        # 0, 1.8 and 7.2 % of the requests fail.
        "error-free-zones-while-burning": [100, 100, 64, 64, 0, 0],
    },
}


# Who is asked about, where rules do not concern every Pod.
ASKING: dict[str, PodInfo] = {
    "batch-on-slack": make_pod(labels={"vane.dev/class": "batch"}),
    "gpu": make_pod(extended={"nvidia.com/gpu": 1}),
    "gpu-cards": make_pod(extended={"nvidia.com/gpu": 4}),
    "workload-latency": make_pod(
        namespace="shop",
        labels={
            "service.istio.io/canonical-name": "checkout",
            "linkerd.io/proxy-deployment": "web",
            "app.kubernetes.io/name": "checkout",
        },
    ),
    "zone-latency": make_pod(labels={"vane.dev/calls-zone": "zone-a"}),
}


def expected(cell: str | float | None) -> Verdict:
    words = cell.split() if isinstance(cell, str) else [cell]
    is_refused = words[0] == "x"
    points = words[1:] if is_refused else words
    return Verdict(is_refused, float(points[0]) if points and points[0] is not None else None)


@pytest.mark.parametrize("pack", POINTS)
def test_every_node_gets_its_verdict_and_its_points(pack: str, every_exporter: PrometheusServer) -> None:
    cluster = RecordedCluster(every_exporter, load(RULES / f"{pack}.yaml"))

    assert {rule.name for rule in cluster.rules.rules} == POINTS[pack].keys()
    for rule, cells in POINTS[pack].items():
        found = cluster.verdicts(rule, ASKING.get(pack))
        wanted = [expected(cell) for cell in cells]
        assert [one.is_refused for one in found] == [one.is_refused for one in wanted], rule
        assert [one.score for one in found] == pytest.approx([one.score for one in wanted], abs=5e-4), rule


def test_every_pack_is_in_the_table() -> None:
    assert {path.stem for path in PACKS if load(path).asked} == POINTS.keys()


def test_the_numbers_that_are_promised(every_exporter: PrometheusServer) -> None:
    cluster = RecordedCluster(every_exporter, load(RULES))

    cpu, gpu = cluster.values("node_cpu_use"), cluster.values("gpu_utilisation")
    cpu_verdicts, gpu_verdicts = cluster.verdicts("node-cpu-use"), cluster.verdicts("gpu-utilisation", ASKING["gpu"])
    assert cpu["node-2"] == pytest.approx(0.85)
    assert cpu_verdicts[1].is_refused
    assert cpu["node-1"] == pytest.approx(0.25)
    assert cpu_verdicts[0].score == pytest.approx(75.0)
    assert gpu["node-2"] == 91.0
    assert gpu_verdicts[1].is_refused
    assert gpu["node-4"] == 90.0
    assert not gpu_verdicts[3].is_refused
    assert cluster.values("gpu_fragmentation")["node-1"] == 0.0


@pytest.mark.parametrize("label", ["Hostname", "hostname"])
def test_fragmentation_is_the_same_for_both_spellings(label: str, every_exporter: PrometheusServer) -> None:
    """The pack reads both labels in one expression; here is the one that each exporter alone would take."""
    free, used = f'DCGM_FI_DEV_FB_FREE{{{label}!=""}}', f'DCGM_FI_DEV_FB_USED{{{label}!=""}}'
    alone = f"sum by ({label})({free} * ({used} > bool 512)) / sum by ({label})({free})"
    pack = load(RULES / "gpu.yaml").signals["gpu_fragmentation"].expr

    wanted = every_exporter.values(alone, label, END_S)
    found = every_exporter.values(pack, label, END_S)
    assert len(wanted) >= 2
    assert found.items() >= wanted.items()


def test_the_weight_grows_with_the_burn_rate(every_exporter: PrometheusServer) -> None:
    rules = load(RULES / "slo-burn.yaml")
    ends = [END_S - PHASE_S * i for i in reversed(range(len(BURN_RATES)))]
    phases = [RecordedCluster(every_exporter, rules, time_s) for time_s in ends]

    # The burn rises from phase to phase, so that the last hour's is the lower: all phases up to this one.
    burns = [sum(BURN_RATES[: i + 1]) / (i + 1) for i in range(len(BURN_RATES))]
    assert [phase.answers["error_budget_burn"].value for phase in phases] == pytest.approx(burns, rel=1e-6)
    weights = [phase.weight("error-free-zones-while-burning") for phase in phases]
    assert weights == pytest.approx(np.interp(burns, [1.0, 6.0, 14.4], [0.0, 2.0, 10.0]).tolist(), rel=1e-6)


def test_all_packs_together_leave_the_node_that_none_refuses(every_exporter: PrometheusServer) -> None:
    cluster = RecordedCluster(every_exporter, load(RULES))

    decision = decide(make_pod(), cluster.snapshot, default_profile())

    # node-2 is hot, node-3 full, node-4 has no framebuffer, node-5 and node-6 stand in the slow zone.
    assert [NODES[row][0] for row in decision.feasible] == ["node-1"]
    assert decision.node_name == "node-1"


@pytest.mark.parametrize(
    "pack",
    [path for path in PACKS if path.stem not in ("node-utilisation", "batch-on-slack") and load(path).asked],
    ids=lambda path: path.stem,
)
def test_a_pack_without_its_metrics_is_neutral(pack: Path, only_node_exporter: PrometheusServer) -> None:
    cluster = RecordedCluster(only_node_exporter, load(pack))

    assert {answer.n_series for answer in cluster.answers.values()} == {0}
    for rule in (one for one in cluster.rules.rules if one.signal in cluster.rules.asked):
        verdicts = cluster.verdicts(rule.name, ASKING.get(pack.stem))
        assert not any(verdict.is_refused for verdict in verdicts)
        assert {verdict.score for verdict in verdicts} == ({50.0} if rule.score else {None})


def test_without_its_metrics_batch_waits_and_nobody_else(only_node_exporter: PrometheusServer) -> None:
    cluster = RecordedCluster(only_node_exporter, load(RULES / "batch-on-slack.yaml"))

    for rule in ("batch-below-cpu-use", "batch-below-memory-use"):
        assert all(verdict.is_refused for verdict in cluster.verdicts(rule, ASKING["batch-on-slack"]))
        assert not any(verdict.is_refused for verdict in cluster.verdicts(rule))


@pytest.mark.parametrize("pack", ASKING)
def test_a_pack_for_some_pods_says_nothing_of_others(pack: str, every_exporter: PrometheusServer) -> None:
    cluster = RecordedCluster(every_exporter, load(RULES / f"{pack}.yaml"))

    for rule in cluster.rules.rules:
        assert set(cluster.verdicts(rule.name)) == {Verdict(False, None)}


def test_packs_without_metrics_do_not_change_where_pods_go(only_node_exporter: PrometheusServer) -> None:
    """Whoever starts with the whole folder and only node_exporter gets what that pack alone would give."""
    whole = RecordedCluster(only_node_exporter, load(RULES))
    alone = RecordedCluster(only_node_exporter, load(RULES / "node-utilisation.yaml"))
    profile = default_profile()

    for i in range(20):
        pod = make_pod(f"pod-{i}")
        found, wanted = decide(pod, whole.snapshot, profile), decide(pod, alone.snapshot, profile)
        assert found.node_name == wanted.node_name
        assert found.feasible.tolist() == wanted.feasible.tolist()
        assert (found.total - found.total.max()).tolist() == (wanted.total - wanted.total.max()).tolist()
