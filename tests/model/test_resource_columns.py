from __future__ import annotations

from random import Random

import numpy as np
import pytest

from scheduler.model.requests import MAX_ADVERTISED, MAX_NAMES_OF_NODE
from scheduler.model.resource_columns import MAX_NAMES, SATURATED, ResourceColumns, RowSums
from scheduler.model.state import ClusterState
from tests.builders import make_node, make_pod

NAMES = {f"example.com/x{i:05d}": "1" for i in range(3_000)}


def requested(state: ClusterState, name: str) -> list[int]:
    nodes = state.nodes
    return [int(amount) for amount in nodes.requested[nodes.resources[name], : nodes.n_rows]]


def test_sums_neither_wrap_nor_forget() -> None:
    random, sums = Random(7), RowSums(2, 3)
    true = [[0] * 3 for _ in range(2)]
    amounts = [2**62, 2**63 - 1, 1, 9 * 10**15]
    added: list[tuple[int, int, int]] = []
    for _ in range(3_000):
        if added and random.random() < 0.5:
            column, row, amount = added.pop(random.randrange(len(added)))
            sign = -1
        else:
            column, row, amount = random.randrange(2), random.randrange(3), random.choice(amounts)
            added.append((column, row, amount))
            sign = 1
        sums.add(column, row, sign * amount)
        true[column][row] += sign * amount
        assert sums.cells.tolist() == [[min(total, SATURATED) for total in totals] for totals in true]
        assert sums.total(column, row) == true[column][row]


def test_names_that_no_node_advertises_take_no_column() -> None:
    state = ClusterState()
    row = state.set_node(make_node("n1"))
    room = state.nodes.room.requested.nbytes, state.nodes.room.version
    pod = make_pod("many", extended=NAMES)
    state.place(pod, row)

    assert (state.nodes.room.requested.nbytes, state.nodes.room.version) == room
    state.displace(pod, row)
    assert vars(state.nodes.room)["_without_column"] == {}


def test_a_resource_that_is_advertised_later_counts_the_pods_that_are_there() -> None:
    state = ClusterState()
    rows = [state.set_node(make_node(f"n{i}")) for i in range(3)]
    pods = [make_pod(f"p{i}", extended={"example.com/gpu": 2**i}) for i in range(3)]
    for pod, row in zip(pods, rows, strict=True):
        state.place(pod, row)
    state.set_node(make_node("n1", extended={"example.com/gpu": 8}))
    assert requested(state, "example.com/gpu") == [1, 2, 4]

    state.set_node(make_node("n1"))
    assert "example.com/gpu" not in state.nodes.resources
    state.displace(pods[2], rows[2])
    state.set_node(make_node("n0", extended={"example.com/gpu": 8}))
    assert requested(state, "example.com/gpu") == [1, 2, 0]


def test_columns_that_nobody_advertises_any_more_are_released() -> None:
    columns = ResourceColumns(64)
    small = columns.allocatable.nbytes
    for row in range(8):
        columns.advertise(row, {f"example.com/{row}-{i}": 1 for i in range(100)})
    assert columns.allocatable.shape == (804, 64)
    for row in range(1, 8):
        columns.withdraw(row)
    assert columns.allocatable.shape == (104, 64)
    columns.withdraw(0)
    assert columns.allocatable.nbytes == small
    assert list(columns.index) == ["cpu", "memory", "ephemeral-storage", "pods"]


def test_one_node_cannot_fill_the_table_and_all_together_have_a_bound() -> None:
    state = ClusterState()
    row = state.set_node(make_node("vast", extended=NAMES))
    assert len(state.nodes.resources) == MAX_NAMES_OF_NODE + 1  # ephemeral-storage has its column without any node
    assert "3003 resources, of which the first 128 count" in state.nodes.cut["vast"]
    for i in range(12):
        state.set_node(make_node(f"n{i}", extended={f"example.com/{i}-{j}": 1 for j in range(120)}))
    assert len(state.nodes.resources) == MAX_NAMES
    assert state.nodes.room.allocatable.shape[0] <= MAX_NAMES
    assert "are beyond the number that can be counted" in state.nodes.cut["n11"]
    cpu = state.nodes.allocatable[state.nodes.resources["cpu"]]
    assert cpu[row] == 4_000
    assert np.count_nonzero(cpu) == 13


@pytest.mark.parametrize(("amount", "counts"), [("9E", MAX_ADVERTISED), ("-1", 0)])
def test_what_a_node_advertises_beyond_any_figure_is_cut(amount: str, counts: int) -> None:
    state = ClusterState()
    row = state.set_node(make_node("n1", extended={"example.com/x": amount}))
    assert state.nodes.allocatable[state.nodes.resources["example.com/x"], row] == counts
    assert f"allocatable 'example.com/x': got '{amount}', which counts as {counts}" in state.nodes.cut["n1"]
    state.set_node(make_node("n1", extended={"example.com/x": "1"}))
    assert state.nodes.cut == {}
