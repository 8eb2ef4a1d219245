from __future__ import annotations

import numpy as np
import pytest

from scheduler.plugins.shared.scores import scale_to_max, shape_scores


@pytest.mark.parametrize(
    ("raw", "scaled", "reversed_"),
    [([0, 0], [0, 0], [100, 100]), ([1, 3, 2], [33, 100, 66], [67, 0, 34]), ([], [], [])],
    ids=["nothing counted", "thirds", "no node"],
)
def test_counts_are_scaled_to_the_greatest_by_integer_division(
    raw: list[int], scaled: list[int], reversed_: list[int]
) -> None:
    counts = np.array(raw, dtype=np.int64)
    assert scale_to_max(counts).tolist() == scaled
    assert scale_to_max(counts, reverse=True).tolist() == reversed_


def test_a_falling_shape_rounds_towards_zero_as_go_does() -> None:
    table = shape_scores(((0, 10), (30, 0)))

    assert table[[0, 1, 15, 29, 30, 100]].tolist() == [100, 97, 50, 4, 0, 0]


def test_a_shape_without_points_gives_nothing() -> None:
    assert not shape_scores(()).any()
