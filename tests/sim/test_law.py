from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.sim.law import (
    MOST_BUSY,
    SERVICE_MS,
    Card,
    Shift,
    answered_within,
    background,
    choose_card,
    cpu_use,
    fill,
    fragments_mib,
    memory_use,
    waiting_ms,
)
from scheduler.sim.nodes import FRAMEBUFFER_MIB, make_nodes
from scheduler.sim.workloads import Behaviour

NODES = make_nodes()
SHIFT = Shift("zone-b", 10.0, 0.45)

shares = st.floats(0.0, 1.0)
seeds = st.integers(0, 1_000_000)
behaviours = st.builds(Behaviour, st.floats(0.0, 8.0), st.floats(0.0, 2.0**34))


@given(seeds, st.sampled_from(NODES), st.floats(0.0, 1e6))
def test_background_is_some_per_cent_and_depends_on_seed_and_time_alone(
    seed: int, node_spec: object, at_s: float
) -> None:
    node = next(one for one in NODES if one == node_spec)
    behind = background(node, at_s, seed, None)
    assert 0.01 <= behind <= 0.12
    assert behind == background(node, at_s, seed, None)


@pytest.mark.parametrize(("at_s", "extra"), [(0.0, 0.0), (10.0, 0.0), (11.0, 0.225), (12.0, 0.45), (99.0, 0.45)])
def test_the_shift_comes_within_two_seconds_on_its_zone_only(at_s: float, extra: float) -> None:
    for node in NODES:
        moved = background(node, at_s, 1, SHIFT) - background(node, at_s, 1, None)
        assert moved == pytest.approx(extra if node.zone == "zone-b" else 0.0)


def test_use_is_background_and_true_use_over_capacity() -> None:
    node = NODES[0]
    assert cpu_use(node, 0.1, [Behaviour(2.0, 0.0), Behaviour(1.2, 0.0)]) == pytest.approx(0.1 + 3.2 / 8)
    assert cpu_use(node, 0.5, [Behaviour(8.0, 0.0)]) == 1.0
    assert memory_use(node, [Behaviour(0.0, 2.0**33)]) == pytest.approx(0.08 + 8 / 32)


@given(st.lists(behaviours, max_size=8), behaviours, shares)
def test_one_more_pod_never_cools_a_node(pods: list[Behaviour], more: Behaviour, behind: float) -> None:
    node = NODES[0]
    assert 0.0 <= cpu_use(node, behind, pods) <= cpu_use(node, behind, [*pods, more]) <= 1.0
    assert memory_use(node, pods) <= memory_use(node, [*pods, more]) <= 1.0


def test_latency_rises_steeply_with_use() -> None:
    assert waiting_ms(0.0) == SERVICE_MS
    assert waiting_ms(0.5) == pytest.approx(2 * SERVICE_MS)
    assert waiting_ms(0.9) == pytest.approx(10 * SERVICE_MS)
    assert waiting_ms(1.0) == waiting_ms(MOST_BUSY)


@given(shares, st.floats(0.0, 50.0))
def test_the_share_answered_is_a_distribution_whose_quantiles_are_the_law(cpu: float, distance_ms: float) -> None:
    p99_ms = distance_ms + waiting_ms(cpu) * math.log(100.0)
    bounds = np.array([0.0, distance_ms, p99_ms, 1e9])
    within = answered_within(bounds, distance_ms, cpu)
    assert within[:2].tolist() == [0.0, 0.0]
    assert within[2] == pytest.approx(0.99)
    assert within[3] == 1.0


@given(shares, shares, st.floats(1.0, 1e4))
def test_a_busier_node_answers_fewer_in_time(one: float, other: float, bound_ms: float) -> None:
    idle, busy = sorted((one, other))
    bound = np.array([bound_ms])
    assert answered_within(bound, 2.0, busy)[0] <= answered_within(bound, 2.0, idle)[0]


def test_a_job_gets_the_fullest_card_with_room() -> None:
    cards = [Card(), Card(30_000.0), Card(35_000.0), Card(30_000.0)]
    assert choose_card(cards, 8_000.0) == 1
    assert choose_card(cards, 5_000.0) == 2
    assert choose_card(cards, 20_000.0) == 0
    assert choose_card([Card(40_000.0), Card(39_000.0)], 5_000.0) == 1


def test_fragments_lie_on_cards_in_use() -> None:
    assert fragments_mib([Card(), Card(512.0)]) == 0.0
    assert fragments_mib([Card(), Card(10_000.0)]) == FRAMEBUFFER_MIB - 10_000.0


@given(st.lists(st.floats(1_000.0, 10_000.0), max_size=20))
def test_a_card_never_holds_more_than_it_has(jobs: list[float]) -> None:
    card = Card()
    for job in jobs:
        card = fill(card, Behaviour(0.0, 0.0, framebuffer_mib=job, gpu_util_percent=20.0))
        assert 0.0 <= card.used_mib <= FRAMEBUFFER_MIB
        assert card.util_percent <= 100.0
