"""Batch Pods without requests that come within one refresh spread over the nodes that have slack."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.builders import make_node, make_pod
from tests.loop.harness import Harness
from tests.packs.world import RULES

N_NODES, N_PODS = 20, 100
BATCH = {"vane.dev/class": "batch"}


@pytest.mark.parametrize("seed", range(10))
def test_pods_without_requests_do_not_herd(seed: int) -> None:
    chance = random.Random(seed)
    harness = Harness()
    names = [f"node-{i}" for i in range(N_NODES)]
    harness.list_nodes(*(make_node(name, cpu="8", memory="32Gi") for name in names))
    harness.list_pods()
    harness.load_rules((RULES / "batch-on-slack.yaml").read_text())
    use = {name: chance.uniform(0.1, 0.4) for name in names}
    requested = {name: chance.uniform(0.4, 0.8) for name in names}
    harness.answer("batch_cpu_use", use, 1e9)
    harness.answer("batch_memory_use", use, 1e9)
    harness.answer("batch_cpu_beyond_requests", {name: use[name] - requested[name] for name in names}, 1e9)
    for i in range(N_PODS):
        harness.see(make_pod(f"p-{i}", labels=BATCH))
    harness.run(N_PODS + 1)
    placed = Counter(harness.placed().values())
    assert placed.total() == N_PODS
    assert max(placed.values()) <= 8, placed
