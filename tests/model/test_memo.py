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


def test_it_is_bounded() -> None:
    memo, column = Memo(capacity=2), np.zeros(1)
    for key in "abc":
        memo.get(key, (column,), lambda: 0)

    assert memo.get("a", (column,), lambda: 1) == 1
    assert memo.get("c", (column,), lambda: 1) == 0
