"""Vane reads each expression of the corpus as Prometheus does: whether it is valid, with which features, as which tree.

What Prometheus says stands in `data`, so that this needs no Prometheus; `test_same_as_prometheus` asks anew.
"""

from __future__ import annotations

import pytest

from tests.promql.corpus import load
from tests.promql.judging import Verdict, by_vane, differences

CORPUS = load()


@pytest.mark.parametrize("source", CORPUS)
def test_no_difference(source: str) -> None:
    exprs, verdicts = zip(*CORPUS[source], strict=True)
    assert differences(exprs, verdicts) == []


def test_the_corpus_is_large_and_holds_both() -> None:
    exprs = [expr for judged in CORPUS.values() for expr, _ in judged]
    verdicts = [verdict for judged in CORPUS.values() for _, verdict in judged]
    assert len(exprs) == len(set(exprs)) > 5_000
    assert len(CORPUS["prometheus"]) > 2_500
    assert sum(not verdict.is_valid for verdict in verdicts) > 1_000
    assert {need for verdict in verdicts for need in verdict.needs} == {
        "promql-experimental-functions",
        "promql-duration-expr",
        "promql-extended-range-selectors",
        "promql-binop-fill-modifiers",
    }


def test_nothing_is_too_large_to_be_compared() -> None:
    assert [expr for judged in CORPUS.values() for expr, _ in judged if by_vane(expr) is None] == []


@pytest.mark.parametrize(
    "wrong",
    [
        Verdict(False, error="no"),
        Verdict(True, "scalar", "x{}"),
        Verdict(True, "vector", "y{}"),
        Verdict(True, "vector", "x{}", ("promql-duration-expr",)),
    ],
)
def test_a_difference_shows(wrong: Verdict) -> None:
    assert differences(["x"], [Verdict(True, "vector", "x{}")]) == []
    assert len(differences(["x"], [wrong])) == 1


def test_errors_are_where_prometheus_has_them() -> None:
    """Not all: a mistake in a regular expression is shown in it, one at the end at the last word, others closer."""
    invalid = [(expr, theirs) for expr, theirs in CORPUS["prometheus"] if not theirs.is_valid]
    same = [expr for expr, theirs in invalid if (ours := by_vane(expr)) is not None and ours.at == theirs.at]
    assert len(same) > 0.9 * len(invalid)
