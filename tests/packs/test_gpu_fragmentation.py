"""The pack gpu-cards keeps nodes whole for Pods that need all cards of one, as neither no rule nor noise does."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.builders import make_node, make_pod
from tests.loop.harness import Harness
from tests.packs.world import RULES

GPU = "nvidia.com/gpu"
N_NODES, N_CARDS, N_PODS = 16, 8, 600
SIZES, WEIGHTS = (1, 2, 4, 8), (0.55, 0.2, 0.15, 0.1)
NOISE = """
apiVersion: vane.dev/v1
kind: Rules
signals:
  noise: {expr: noise, by: node, unit: ratio}
rules:
  - {name: noise, signal: noise, score: {best: 1, worst: 0}, weight: 3}
"""


def nodes(harness: Harness, *names: str) -> None:
    cards = {GPU: N_CARDS}
    harness.list_nodes(*(make_node(name, cpu="96", memory="768Gi", extended=cards) for name in names))
    harness.list_pods()


def left_waiting(rules: Path | str | None, seed: int) -> int:
    """Return how many Pods of eight cards found no node, of a stream of Pods that come and go at 70 % of all cards."""
    chance = random.Random(seed)
    harness = Harness()
    names = [f"node-{i}" for i in range(N_NODES)]
    nodes(harness, *names)
    if rules is not None:
        harness.load_rules(rules.read_text() if isinstance(rules, Path) else rules)
    placed: list[tuple[str, int]] = []
    n_waiting = 0
    for i in range(N_PODS):
        if rules == NOISE and i % 4 == 0:
            harness.answer("noise", {name: chance.random() for name in names})
        size = chance.choices(SIZES, WEIGHTS)[0]
        while placed and sum(n for _, n in placed) + size > 0.7 * N_NODES * N_CARDS:
            gone, _ = placed.pop(chance.randrange(len(placed)))
            harness.see(make_pod(gone), "DELETED")
        harness.see(make_pod(f"p-{i}", cpu="1", memory="4Gi", extended={GPU: size}))
        harness.run()
        if f"p-{i}" in harness.placed():
            placed.append((f"p-{i}", size))
        else:
            n_waiting += size == N_CARDS
            harness.see(make_pod(f"p-{i}"), "DELETED")
        harness.settle()
        harness.now_s += 1.0
    return n_waiting


def test_fewer_whole_nodes_are_missing_than_without_rules_and_than_with_noise() -> None:
    arms: dict[str, Callable[[int], int]] = {
        "pack": lambda seed: left_waiting(RULES / "gpu-cards.yaml", seed),
        "none": lambda seed: left_waiting(None, seed),
        "noise": lambda seed: left_waiting(NOISE, seed),
    }
    found = {name: np.array([arm(seed) for seed in range(3)]) for name, arm in arms.items()}
    assert (found["pack"] < found["none"]).all(), found
    assert (found["pack"] < found["noise"]).all(), found


@pytest.mark.parametrize("rules", [RULES / "gpu-cards.yaml", None], ids=["pack", "no rules"])
def test_four_pods_of_one_card_go_to_the_node_in_use(rules: Path | None) -> None:
    harness = Harness()
    nodes(harness, "half-used", "idle")
    if rules is not None:
        harness.load_rules(rules.read_text())
    harness.see(make_pod("training", node="half-used", cpu="1", extended={GPU: 4}))
    for i in range(4):
        harness.see(make_pod(f"p-{i}", cpu="1", extended={GPU: 1}))
    harness.run()
    is_idle_used = "idle" in harness.placed().values()
    assert is_idle_used == (rules is None)


def test_pods_without_cards_are_not_concerned() -> None:
    harness = Harness()
    nodes(harness, "a")
    for pack in ("gpu.yaml", "gpu-cards.yaml"):
        harness.load_rules((RULES / pack).read_text())
        harness.see(make_pod(pack, cpu="1"))
        harness.run()
        record = harness.world.records.latest(f"default/{pack}")
        assert record is not None
        assert record.rules == ()
