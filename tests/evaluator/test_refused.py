"""What lies outside the subset is refused by the name of its node, before anything is computed."""

from __future__ import annotations

import pytest

from scheduler.evaluator.evaluate import evaluate
from scheduler.evaluator.expression import MAX_DEPTH
from scheduler.evaluator.store import SeriesStore
from scheduler.evaluator.values import PromQLSyntaxError, Scalar, UnsupportedPromQLError

REFUSED = {
    "deriv(x[5m])": "Call deriv",
    "sum(predict_linear(x[5m], 60))": "Call predict_linear",
    "1 + -(sort(x))": "Call sort",
    "topk(scalar(deriv(x[5m])), x)": "Call deriv",
    "nothing_here / deriv(x[5m])": "Call deriv",
    "rate(x[5m:])": "SubqueryExpr",
    "x[5m:1m]": "SubqueryExpr",
    "x[5m]": "MatrixSelector",
    "(x[5m])": "MatrixSelector",
    '"text"': "StringLiteral",
    'count_values("v", x)': "AggregateExpr count_values",
    "limitk(2, x)": "AggregateExpr limitk",
    "a * fill (0) b": "BinaryExpr fill",
    "a + fill_left (0) b": "BinaryExpr fill",
    "x </ 3": "BinaryExpr </",
    "rate(x[2 * 5m])": "Expr",
    "rate(x[5m] smoothed)": "Expr",
    "+".join(["x"] * (MAX_DEPTH + 1)): "BinaryExpr",
    "(" * 200 + "x" + ")" * 200: "Expr",
    r'x{a=~"\\pL"}': "regular expression",
    r'x{a=~"\\x{41}"}': "regular expression",
    'x{a=~"[[:alpha:]]+"}': "regular expression",
    'x{a=~"[a&&b]"}': "regular expression",
    'x{a=~"(?U)a+"}': "regular expression",
    'x{a=~"(?i)a|(?s)b"}': "regular expression",
    'label_replace(x, "a", "$1", "b", "[[:digit:]]")': "regular expression",
}


@pytest.fixture
def store() -> SeriesStore:
    store = SeriesStore()
    for name in ("x", "a", "b"):
        store.append({"__name__": name, "a": "1", "b": "2"}, 1000.0, 1.0)
    return store


@pytest.mark.parametrize("expr", REFUSED)
def test_a_node_outside_the_subset(store: SeriesStore, expr: str) -> None:
    with pytest.raises(UnsupportedPromQLError) as refused:
        evaluate(expr, store, 1000.0)
    assert refused.value.node == REFUSED[expr]
    assert str(refused.value).startswith(REFUSED[expr])
    assert "query a full Prometheus" in str(refused.value)


def test_as_deep_as_it_may_be(store: SeriesStore) -> None:
    result = evaluate("+".join(["1"] * (MAX_DEPTH - 1)), store, 1000.0)
    assert result == Scalar(MAX_DEPTH - 1)


@pytest.mark.parametrize("at", ["-1", "1e12", "1e15"])
def test_nothing_is_there_at_times_without_samples(store: SeriesStore, at: str) -> None:
    assert evaluate_vector(f"x @ {at}", store) == ()
    assert evaluate_vector(f"sum(rate(x[1m] @ {at}))", store) == ()


def test_an_at_within_a_string_is_no_modifier(store: SeriesStore) -> None:
    assert len(evaluate_vector('x{a!="@ -1"} # @ -1', store)) == 1


@pytest.mark.parametrize("expr", ["sum(", "x{a=}", "", "rate(x)", "x or", 'x{a="1" or b="2"}', "x[1.5s]"])
def test_what_is_no_promql(store: SeriesStore, expr: str) -> None:
    with pytest.raises(PromQLSyntaxError, match="parse error"):
        evaluate(expr, store, 1000.0)


def evaluate_vector(expr: str, store: SeriesStore) -> tuple[object, ...]:
    result = evaluate(expr, store, 1000.0)
    assert not isinstance(result, Scalar)
    return result.labels
