from __future__ import annotations

from itertools import islice

from tests.promql.generator import expressions


def test_a_seed_makes_the_same_expressions_however_many_are_asked_for() -> None:
    many = list(expressions(7, 200))
    assert list(islice(expressions(7, 50), 50)) == many[:50]
    assert len(set(many)) == 200
    assert list(expressions(8, 200)) != many
