from __future__ import annotations

import numpy as np
import pytest

from scheduler.model.arrays import IntArray, Rows
from scheduler.model.row_memo import RowMemo
from scheduler.model.state import ClusterState
from tests.builders import cluster_of, make_node, make_pod


class Counted:
    """The number of Pods on each node, and how many rows were computed."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self.computed: list[int] = []

    def __call__(self, rows: Rows) -> IntArray:
        found = self._state.nodes.n_pods[: self._state.nodes.n_rows][rows]
        self.computed.append(len(found))
        return found.copy()


def cluster(n_nodes: int = 8) -> tuple[ClusterState, Counted]:
    state = cluster_of(make_node(f"n{i}") for i in range(n_nodes))
    return state, Counted(state)


def test_only_changed_rows_are_computed_again() -> None:
    state, count = cluster()
    memo = RowMemo()
    first = memo.column("k", state.nodes, count)
    assert memo.column("k", state.nodes, count) is first
    state.place(make_pod("a"), 2)
    assert memo.column("k", state.nodes, count).tolist() == [0, 0, 1, 0, 0, 0, 0, 0]
    assert first.tolist() == [0] * 8, "a column that was handed out stays as it was"
    assert count.computed == [8, 1]


def test_many_changed_rows_are_computed_with_all_others() -> None:
    state, count = cluster()
    memo = RowMemo()
    memo.column("k", state.nodes, count)
    for row in range(3):
        state.place(make_pod(f"p{row}"), row)
    assert memo.column("k", state.nodes, count).tolist() == [1, 1, 1, 0, 0, 0, 0, 0]
    assert count.computed == [8, 8]


@pytest.mark.parametrize("change", ["add", "remove", "resource"])
def test_another_layout_is_another_column(change: str) -> None:
    state, count = cluster()
    memo = RowMemo()
    memo.column("k", state.nodes, count)
    match change:
        case "add":
            state.set_node(make_node("new"))
        case "remove":
            state.remove_node("n7")
        case _:
            state.set_node(make_node("n7", extended={"example.com/gpu": 1}))
    assert len(memo.column("k", state.nodes, count)) == state.nodes.n_rows
    assert count.computed == [8, state.nodes.n_rows]


def test_a_column_cannot_be_written() -> None:
    state, count = cluster()
    column = RowMemo().column("k", state.nodes, count)
    with pytest.raises(ValueError, match="read-only"):
        column += 1


def test_the_column_used_longest_ago_is_forgotten() -> None:
    state, count = cluster()
    memo = RowMemo(capacity=2)
    for key in ("a", "b", "a", "c"):
        memo.column(key, state.nodes, count)
    assert len(count.computed) == 3
    memo.column("a", state.nodes, count)
    assert len(count.computed) == 3
    memo.column("b", state.nodes, count)
    assert len(count.computed) == 4
    assert np.array_equal(memo.column("b", state.nodes, count), np.zeros(8))
