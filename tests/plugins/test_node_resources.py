from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.framework.intree_args import (
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    RequestedToCapacityRatio,
    ResourceSpec,
    ScoringStrategy,
    ShapePoint,
)
from scheduler.framework.status import SKIP
from scheduler.plugins.node_resources_balanced import NodeResourcesBalancedAllocation
from scheduler.plugins.node_resources_fit import NodeResourcesFit
from scheduler.plugins.shared.resource_strategies import Strategy
from scheduler.plugins.shared.scores import shape_scores
from tests.builders import make_node, make_pod, snapshot_of
from tests.plugins.run import raw_scores, refusals

U, UU = "Unschedulable", "UnschedulableAndUnresolvable"
GPU = "nvidia.com/gpu"


@pytest.mark.parametrize(
    ("requests", "used", "expected"),
    [
        pytest.param({"cpu": "1"}, {"cpu": "3"}, set(), id="exactly what is free"),
        pytest.param({"cpu": "1001m"}, {"cpu": "3"}, {(U, "Insufficient cpu")}, id="one millicore too many"),
        pytest.param({"cpu": "4001m"}, {}, {(UU, "Insufficient cpu")}, id="more than the whole node"),
        pytest.param(
            {"cpu": "2", "memory": "17Gi"},
            {"cpu": "3"},
            {(U, "Insufficient cpu"), (UU, "Insufficient memory")},
            id="every resource that is short is told",
        ),
        pytest.param({GPU: 1}, {}, {(UU, "Insufficient nvidia.com/gpu")}, id="a resource that no node has"),
        pytest.param({"cpu": "0"}, {"cpu": "9"}, set(), id="nothing is asked of an overcommitted node"),
        pytest.param({"memory": "9Ei"}, {"memory": "9Ei"}, {(UU, "Insufficient memory")}, id="sums beyond int64"),
        pytest.param({"made-up": 1}, {}, set(), id="a name that nothing counts"),
    ],
)
def test_what_fits(requests: dict[str, Any], used: dict[str, Any], expected: set[tuple[str, str]]) -> None:
    snapshot = snapshot_of([make_node("n")], [make_pod("placed", node="n", **used)])

    assert refusals(NodeResourcesFit(), make_pod(**requests), snapshot).get("n", set()) == expected


def test_a_node_takes_so_many_pods_and_no_more() -> None:
    snapshot = snapshot_of([make_node("n", pods=1), make_node("m", pods=2)], [make_pod("placed", node="n")])

    assert refusals(NodeResourcesFit(), make_pod(), snapshot) == {"n": {(U, "Too many pods")}}


def test_one_reason_with_two_codes_never_names_a_node_twice() -> None:
    nodes = [make_node("busy", cpu="4"), make_node("small", cpu="1")]
    snapshot = snapshot_of(nodes, [make_pod("placed", node="busy", cpu="3")])

    found = refusals(NodeResourcesFit(), make_pod(cpu="2"), snapshot)

    assert found == {"busy": {(U, "Insufficient cpu")}, "small": {(UU, "Insufficient cpu")}}


@pytest.mark.parametrize(
    "args",
    [
        pytest.param(NodeResourcesFitArgs(ignored_resources=(GPU,)), id="by name"),
        pytest.param(NodeResourcesFitArgs(ignored_resource_groups=("nvidia.com",)), id="by group"),
    ],
)
def test_ignored_extended_resources_are_left_to_others(args: NodeResourcesFitArgs) -> None:
    pod = make_pod(cpu="9", extended={GPU: 1})

    found = refusals(NodeResourcesFit(args), pod, snapshot_of([make_node("n")]))

    assert found == {"n": {(UU, "Insufficient cpu")}}


def test_a_pod_that_asks_for_nothing_counts_with_defaults_in_scores() -> None:
    snapshot = snapshot_of([make_node("n", cpu="1", memory="2000Mi")])

    assert raw_scores(NodeResourcesFit(), make_pod(), snapshot) == {"NodeResourcesFit": [90]}


SHAPE = ((10, 3), (40, 10), (90, 1))
AMOUNT = st.integers(0, 2**40)


@st.composite
def situations(draw: st.DrawFn) -> dict[str, Any]:
    """One node: capacity, what a placed Pod uses, what the Pod asks for, in millicores, bytes and cards."""
    return {
        "capacity": {"cpu": draw(st.integers(0, 64_000)), "memory": draw(AMOUNT), GPU: draw(st.integers(0, 8))},
        "used": {"cpu": draw(st.integers(0, 64_000)), "memory": draw(AMOUNT), GPU: draw(st.integers(0, 8))},
        "asked": {"cpu": draw(st.integers(0, 64_000)), "memory": draw(AMOUNT), GPU: draw(st.integers(0, 8))},
    }


def quantities(amounts: Mapping[str, int]) -> dict[str, Any]:
    return {name: f"{amount}m" if name == "cpu" else amount for name, amount in amounts.items()}


def slow_fit_score(
    args: ScoringStrategy, capacity: Mapping[str, int], asked: Mapping[str, int], used: Mapping[str, int]
) -> int:
    """One node, one resource after the other, in exact integers: the proof of the columns."""
    total = weights = 0
    for resource in args.resources:
        name, weight = resource.name, resource.weight
        whole, requested = capacity[name], used[name] + asked[name]
        if whole == 0 or (name == GPU and asked[name] == 0):
            continue
        percent = min(requested, whole) * 100 // whole
        if args.type == Strategy.LEAST_ALLOCATED:
            score = 0 if requested > whole else (whole - requested) * 100 // whole
        elif args.type == Strategy.MOST_ALLOCATED:
            score = percent
        else:
            score = int(shape_scores(SHAPE)[percent])
            weight = weight if score > 0 else 0
        total += weight * score
        weights += weight
    if weights == 0:
        return 0
    if args.type == Strategy.REQUESTED_TO_CAPACITY_RATIO:
        return int(Fraction(total, weights) + Fraction(1, 2))
    return total // weights


@pytest.mark.parametrize("strategy", list(Strategy))
@settings(max_examples=100, deadline=None)
@given(several=st.lists(situations(), min_size=1, max_size=3), weights=st.tuples(*[st.integers(1, 100)] * 3))
def test_fit_scores_as_the_plain_loop(
    strategy: Strategy, several: list[dict[str, Any]], weights: tuple[int, int, int]
) -> None:
    resources = [
        ResourceSpec(name=name, weight=weight) for name, weight in zip(("cpu", "memory", GPU), weights, strict=True)
    ]
    ratio = RequestedToCapacityRatio(shape=tuple(ShapePoint(utilization=x, score=y) for x, y in SHAPE))
    args = ScoringStrategy(type=strategy, resources=tuple(resources), requested_to_capacity_ratio=ratio)
    asked = several[0]["asked"]
    nodes = [make_node(f"n{i}", **quantities(one["capacity"])) for i, one in enumerate(several)]
    pods = [make_pod(f"p{i}", node=f"n{i}", **quantities(one["used"])) for i, one in enumerate(several)]

    plugin = NodeResourcesFit(NodeResourcesFitArgs(scoring_strategy=args))
    found = raw_scores(plugin, make_pod(**quantities(asked)), snapshot_of(nodes, pods))

    expected = [slow_fit_score(args, one["capacity"], asked, one["used"]) for one in several]
    assert found == {"NodeResourcesFit": expected}


def slow_balance(capacity: Mapping[str, int], requested: Mapping[str, int], names: list[str]) -> int:
    shares = [min(requested[name] / capacity[name], 1.0) for name in names if capacity[name] > 0]
    if len(shares) < 2:
        deviation = 0.0
    elif len(shares) == 2:
        deviation = abs((shares[0] - shares[1]) / 2)
    else:
        mean = sum(shares) / len(shares)
        deviation = (sum((share - mean) ** 2 for share in shares) / len(shares)) ** 0.5
    return int((1 - deviation) * 100)


@pytest.mark.parametrize("names", [["cpu", "memory"], ["cpu", "memory", GPU]], ids=["two resources", "three"])
@settings(max_examples=100, deadline=None)
@given(several=st.lists(situations(), min_size=1, max_size=3))
def test_balance_scores_as_the_plain_loop(names: list[str], several: list[dict[str, Any]]) -> None:
    asked = several[0]["asked"]
    counted = [name for name in names if name != GPU or asked[name] > 0]
    nodes = [make_node(f"n{i}", **quantities(one["capacity"])) for i, one in enumerate(several)]
    pods = [make_pod(f"p{i}", node=f"n{i}", **quantities(one["used"])) for i, one in enumerate(several)]
    resources = tuple(ResourceSpec(name=name, weight=1) for name in names)
    plugin = NodeResourcesBalancedAllocation(NodeResourcesBalancedAllocationArgs(resources=resources))

    found = raw_scores(plugin, make_pod(**quantities(asked)), snapshot_of(nodes, pods))

    expected = []
    for one in several:
        full = {name: one["used"][name] + asked[name] for name in names}
        change = slow_balance(one["capacity"], full, counted) - slow_balance(one["capacity"], one["used"], counted)
        expected.append(50 + (50 + change) // 2)
    assert found == ({"NodeResourcesBalancedAllocation": expected} if any(asked[name] for name in names) else {})


def test_a_pod_without_cpu_and_memory_is_not_balanced() -> None:
    plugin = NodeResourcesBalancedAllocation()

    assert plugin.prescore(make_pod(extended={GPU: 1}), snapshot_of([make_node()]), slice(None)) is SKIP
