from __future__ import annotations

import numpy as np

from scheduler.model.memo import Memo


def test_the_same_sources_are_computed_once_and_others_anew() -> None:
    memo, column = Memo(), np.zeros(3)
    calls: list[int] = []

    def compute() -> int:
        calls.append(1)
        return len(calls)

    assert [memo.get("k", (column,), compute) for _ in range(3)] == [1, 1, 1]
    assert memo.get("k", (column.copy(),), compute) == 2
    assert memo.get("other", (column,), compute) == 3


def test_one_other_source_among_several_is_enough() -> None:
    memo, column, other = Memo(), np.zeros(3), np.zeros(3)
    memo.get("k", (column, other), lambda: 1)

    assert memo.get("k", (column, other), lambda: 2) == 1
    assert memo.get("k", (column, other.copy()), lambda: 2) == 2
    assert memo.get("k", (column.copy(), other), lambda: 3) == 3
    assert memo.get("k", (column,), lambda: 4) == 4


def test_it_is_bounded() -> None:
    memo, column = Memo(capacity=8), np.zeros(1)
    for key in range(1_000):
        memo.get(key, (column,), lambda: 0)

    assert len(memo) <= 8
    assert memo.get(0, (column,), lambda: 1) == 1
    assert memo.get(999, (column,), lambda: 1) == 0


def test_what_is_asked_for_all_the_time_outlasts_what_passes_through() -> None:
    memo, column = Memo(capacity=8), np.zeros(1)
    memo.get("each decision", (column,), lambda: 0)
    for key in range(1_000):
        memo.get(key, (column,), lambda: 0)
        assert memo.get("each decision", (column,), lambda: 1) == 0


def test_a_result_of_another_source_is_not_known() -> None:
    memo, column = Memo(), np.zeros(1)
    memo.get("k", (column,), lambda: 5)

    assert memo.known("k", column) == 5
    assert memo.known("k", np.zeros(1)) is None
    assert memo.known("other", column) is None
