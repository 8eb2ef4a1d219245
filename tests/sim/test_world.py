from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.evaluator.evaluate import evaluate
from scheduler.evaluator.store import SeriesStore
from scheduler.evaluator.values import Vector
from scheduler.sim.exporters import Exporters
from scheduler.sim.law import Shift
from scheduler.sim.nodes import ZONES, make_nodes
from scheduler.sim.nodes import manifest as node_manifest
from scheduler.sim.workloads import BATCH, KINDS, TRAIN, WEB, Behaviour, arrivals, manifest
from scheduler.sim.world import NodeState, SimWorld, noise

SECOND_S = 1_000_000.0
WEB_POD = Behaviour(1.6, 2.0**30, requests_per_s=50.0)
GPU_POD = Behaviour(0.8, 2.0**30, framebuffer_mib=8_192.0, gpu_util_percent=20.0)


def test_nodes_stand_in_three_zones_and_one_of_each_has_cards() -> None:
    nodes = make_nodes()
    assert len({node.name for node in nodes}) == 12
    for zone in ZONES:
        assert sum(node.cards > 0 for node in nodes if node.zone == zone) == 1
    gpu = node_manifest(next(node for node in nodes if node.cards))
    assert gpu["status"]["allocatable"]["nvidia.com/gpu.shared"] == "16"


@given(st.integers(0, 10_000))
@settings(max_examples=25)
def test_the_same_seed_brings_the_same_pods(seed: int) -> None:
    found = arrivals(seed, 31.0, 10, 3.0)
    assert found == arrivals(seed, 31.0, 10, 3.0)
    assert found != arrivals(seed + 1, 31.0, 10, 3.0)
    assert found == arrivals(seed, 41.0, 10, 3.0)[:100]
    assert [one.at_s for one in found] == sorted(one.at_s for one in found)
    assert sum(one.at_s < 1.0 for one in found) == 10
    assert len({one.name for one in found}) == 100
    for one in found:
        kind = KINDS[one.kind]
        assert kind.use[0] <= one.behaviour.cpu_cores / (one.cpu_millis / 1000) <= kind.use[1]
        assert kind.life_s[0] <= one.life_s <= kind.life_s[1]


def test_every_kind_comes_and_says_what_it_asks_for() -> None:
    found = {one.kind: one for one in arrivals(1, 40.0, 10, 3.0)}
    assert set(found) == {WEB, BATCH, TRAIN}
    pod = manifest(found[TRAIN])
    assert pod["spec"]["schedulerName"] == "vane"
    assert pod["metadata"]["labels"] == {"tier": TRAIN}
    assert pod["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "500m", "memory": "1024Mi", "nvidia.com/gpu.shared": "1"},
        "limits": {"nvidia.com/gpu.shared": "1"},
    }


def test_pods_come_and_go() -> None:
    world = SimWorld(make_nodes(), seed=1)
    before = state_of(world, "gpu-a1")
    world.start("1", "web-1", "gpu-a1", WEB_POD)
    world.start("2", "train-1", "gpu-a1", GPU_POD)
    world.start("3", "train-2", "gpu-a1", GPU_POD)
    during = state_of(world, "gpu-a1")
    assert during.cpu - before.cpu == pytest.approx((1.6 + 0.8 + 0.8) / 8)
    assert during.n_pods == 3
    assert during.serving == (("web-1", 50.0),)
    assert [card.used_mib for card in during.cards] == [16_384.0, 0.0, 0.0, 0.0]
    world.stop("2")
    assert [card.used_mib for card in state_of(world, "gpu-a1").cards] == [8_192.0, 0.0, 0.0, 0.0]
    for uid in ("1", "3", "unknown"):
        world.stop(uid)
    assert state_of(world, "gpu-a1") == before


def test_the_load_shifts() -> None:
    world = SimWorld(make_nodes(), seed=1, shift=Shift("zone-b", 5.0, 0.45))
    assert state_of(world, "node-b1", 0.0).cpu < 0.13
    assert state_of(world, "node-b1", 8.0).cpu > 0.45
    assert state_of(world, "node-a1", 8.0).cpu < 0.13


def test_noise_has_the_same_shape_and_says_nothing_of_the_nodes() -> None:
    world = SimWorld(make_nodes(), seed=1)
    world.start("1", "web-1", "node-a1", WEB_POD)
    true = world.states(0.0)
    made = noise(true, 0.0, seed=1)
    assert [one.node for one in made] == [one.node for one in true]
    assert [one.serving for one in made] == [one.serving for one in true]
    assert made == noise(true, 3.9, seed=1)
    assert made != noise(true, 4.0, seed=1)
    values = [one.cpu for at_s in range(0, 400, 4) for one in noise(true, float(at_s), seed=1)]
    assert min(values) >= 0.0
    assert max(values) <= 1.0
    assert sum(values) / len(values) == pytest.approx(0.5, abs=0.05)
    world.start("2", "batch-1", "node-a1", Behaviour(6.0, 0.0))
    assert [one.cpu for one in noise(world.states(0.0), 0.0, seed=1)] == [one.cpu for one in made]


def test_series_say_what_the_law_says() -> None:
    store, world = SeriesStore(), SimWorld(make_nodes(), seed=1)
    world.start("1", "web-1", "node-a1", WEB_POD)
    world.start("2", "train-1", "gpu-c1", GPU_POD)
    exporters = Exporters(store.append)
    states = world.states(0.0)
    for second in range(6):
        exporters.count(states, 1.0)
        exporters.write(states, SECOND_S + second)
    busy = 'clamp_min(1 - avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[4s])), 0)'
    cpu = values(store, busy, "instance")
    assert cpu == pytest.approx({f"{one.node.address}:9100": one.cpu for one in states})
    memory = values(store, "1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes", "instance")
    assert memory == pytest.approx({f"{one.node.address}:9100": one.memory for one in states})
    rate = "rate(istio_request_duration_milliseconds_bucket"
    assert values(store, rate + '{le="+Inf"}[4s])', "topology_kubernetes_io_zone") == pytest.approx({"zone-a": 50.0})
    p99 = f"histogram_quantile(0.99, sum by (topology_kubernetes_io_zone, le) ({rate}[4s])))"
    assert 25.0 < values(store, p99, "topology_kubernetes_io_zone")["zone-a"] <= 100.0
    free = values(store, "sum by (Hostname) (DCGM_FI_DEV_FB_FREE * (DCGM_FI_DEV_FB_USED > bool 512))", "Hostname")
    assert free == {"gpu-a1": 0.0, "gpu-b1": 0.0, "gpu-c1": 40_960.0 - 8_192.0}


def test_a_pod_that_has_gone_is_no_longer_scraped() -> None:
    written: list[Mapping[str, str]] = []
    world = SimWorld(make_nodes(), seed=1)
    world.start("1", "web-1", "node-a1", WEB_POD)
    exporters = Exporters(lambda labels, _at_s, _value: written.append(labels))
    exporters.count(world.states(0.0), 1.0)
    exporters.write(world.states(0.0), SECOND_S)
    assert any(labels.get("pod") == "web-1" for labels in written)
    world.stop("1")
    written.clear()
    exporters.count(world.states(1.0), 1.0)
    exporters.write(world.states(1.0), SECOND_S + 1)
    assert written
    assert not any("pod" in labels for labels in written)


def state_of(world: SimWorld, name: str, at_s: float = 0.0) -> NodeState:
    return next(state for state in world.states(at_s) if state.node.name == name)


def values(store: SeriesStore, expr: str, label: str) -> dict[str, float]:
    answer = evaluate(expr, store, SECOND_S + 5)
    assert isinstance(answer, Vector)
    return {labels[label]: float(value) for labels, value in zip(answer.labels, answer.values, strict=True)}
