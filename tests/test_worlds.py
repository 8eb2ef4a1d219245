from __future__ import annotations

from random import Random

import pytest

from tests.worlds import each_seed, random_world


def test_a_failure_names_the_seed_that_draws_its_world_again() -> None:
    drawn: list[float] = []

    @each_seed(5)
    def fails_at_the_third(random: Random) -> None:
        drawn.append(random.random())
        assert len(drawn) < 3

    with pytest.raises(AssertionError) as failure:
        fails_at_the_third()

    seed = "fails_at_the_third  2"
    assert failure.value.__notes__ == [f"in the world of Random({seed!r})"]
    assert drawn[-1] == Random(seed).random()
    assert len(set(drawn)) == 3


def test_a_seed_is_a_world() -> None:
    first, again, other = (random_world(Random(seed), min_nodes=2) for seed in (7, 7, 8))

    assert first.nodes == again.nodes
    assert [one.pod for one in first.pods] == [one.pod for one in again.pods]
    assert first.nodes != other.nodes
