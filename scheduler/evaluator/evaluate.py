"""An expression, samples and a time in; numbers out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from scheduler.evaluator.aggregations import aggregate
from scheduler.evaluator.binary import matching_of, of_scalars, of_vector_and_scalar, of_vectors
from scheduler.evaluator.expression import kind_of, parse
from scheduler.evaluator.functions import FUNCTIONS
from scheduler.evaluator.selectors import Moment, Window, select_latest, select_windows, subquery_windows
from scheduler.evaluator.store import SeriesStore
from scheduler.evaluator.values import (
    LabelKey,
    Labels,
    Scalar,
    UnsupportedPromQLError,
    Vector,
    label_key,
    make_vector,
    unique_vector,
    without_name,
)
from scheduler.promql.nodes import (
    Aggregation,
    Binary,
    Call,
    Node,
    Number,
    Range,
    Selector,
    Subquery,
    Type,
    Unary,
    unwrapped,
)

LOOKBACK_S: Final = 300.0


def evaluate(expr: str, store: SeriesStore, at_s: float, lookback_s: float = LOOKBACK_S) -> Vector | Scalar:
    """Return what a Prometheus with these samples answers to an instant query.

    Parameters
    ----------
    at_s
        Unix seconds; counts to the millisecond.
    lookback_s
        How old the latest sample of a series may be.

    Raises
    ------
    PromQLError
        See `evaluator.values`.
    """
    at_ms = round(at_s * 1000)
    return evaluate_tree(parse(expr), store, Moment(at_ms, round(lookback_s * 1000), at_ms, at_ms))


def evaluate_tree(
    root: Node, store: SeriesStore, moment: Moment, check: Callable[[], None] = lambda: None
) -> Vector | Scalar:
    """Evaluate a tree of `expression.parse`; `check` is called at each node and may raise to end it."""
    evaluator = Evaluator(store, moment, check)
    # Division by zero and the like have defined results in PromQL.
    with np.errstate(all="ignore"):
        if root.type is Type.SCALAR:
            return Scalar(evaluator.scalar(root), evaluator.warnings)
        vector = evaluator.vector(root)
    return Vector(unique_vector(vector.labels, vector.values).labels, vector.values, evaluator.warnings)


@dataclass(frozen=True, slots=True)
class RangeResult:
    """Per series its points as (Unix milliseconds, value), rising in time; a scalar is one series without labels."""

    series: list[tuple[Labels, list[tuple[int, float]]]]
    warnings: tuple[str, ...]


def evaluate_range(
    root: Node, store: SeriesStore, times_ms: range, lookback_ms: int, check: Callable[[], None] = lambda: None
) -> RangeResult:
    """Evaluate a tree of `expression.parse` at each of several times."""
    series: dict[LabelKey, tuple[Labels, list[tuple[int, float]]]] = {}
    warnings: dict[str, None] = {}
    for at_ms in times_ms:
        result = evaluate_tree(root, store, Moment(at_ms, lookback_ms, times_ms.start, times_ms.stop - 1), check)
        warnings.update(dict.fromkeys(result.warnings))
        vector = make_vector([{}], [result.value]) if isinstance(result, Scalar) else result
        for labels, value in zip(vector.labels, vector.values.tolist(), strict=True):
            series.setdefault(label_key(labels), (labels, []))[1].append((at_ms, value))
    return RangeResult([series[key] for key in sorted(series, key=sorted)], tuple(warnings))


class Evaluator:
    """One evaluation: the `Evaluation` that functions and aggregations ask."""

    def __init__(self, store: SeriesStore, moment: Moment, check: Callable[[], None]) -> None:
        self._store = store
        self._moment = moment
        self._check = check
        self._warnings: dict[str, None] = {}

    @property
    def moment(self) -> Moment:
        return self._moment

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(self._warnings)

    def warn(self, text: str) -> None:
        self._warnings[text] = None

    def vector(self, node: Node) -> Vector:
        self._check()
        node = unwrapped(node)
        evaluate_node = _VECTOR_NODES.get(type(node))
        if evaluate_node is None:
            raise UnsupportedPromQLError(kind_of(node))
        return evaluate_node(self, node)

    def scalar(self, node: Node) -> float:
        self._check()
        node = unwrapped(node)
        evaluate_node = _SCALAR_NODES.get(type(node))
        if evaluate_node is None:
            raise UnsupportedPromQLError(kind_of(node))
        return evaluate_node(self, node)

    def windows(self, node: Node) -> Iterator[Window]:
        self._check()
        node = unwrapped(node)
        if isinstance(node, Subquery):
            return subquery_windows(node, self._moment, lambda moment: self._within(node.expr, moment))
        if not isinstance(node, Range):
            raise UnsupportedPromQLError(kind_of(node), "as a range")
        return select_windows(self._store, node, self._moment)

    def latest(self, node: Selector) -> Iterator[tuple[Labels, int, float]]:
        self._check()
        return select_latest(self._store, node, self._moment)

    def _within(self, node: Node, moment: Moment) -> Vector:
        """Evaluate the expression of a subquery at one of its steps."""
        evaluator = Evaluator(self._store, moment, self._check)
        is_scalar = node.type is Type.SCALAR
        vector = make_vector([{}], [evaluator.scalar(node)]) if is_scalar else evaluator.vector(node)
        self._warnings.update(dict.fromkeys(evaluator.warnings))
        return unique_vector(vector.labels, vector.values)


def _selected(evaluator: Evaluator, node: Selector) -> Vector:
    found = list(evaluator.latest(node))
    return make_vector((labels for labels, _, _ in found), (value for _, _, value in found))


def _signed(evaluator: Evaluator, node: Unary) -> Vector:
    vector = evaluator.vector(node.expr)
    if node.op == "+":
        return vector
    return unique_vector(map(without_name, vector.labels), -vector.values)


def _called(evaluator: Evaluator, node: Call) -> Any:
    return FUNCTIONS[node.function.name](evaluator, node.args)


def _binary(evaluator: Evaluator, node: Binary) -> Vector:
    operator, is_bool = node.op, node.is_bool
    is_left_scalar = node.lhs.type is Type.SCALAR
    if not is_left_scalar and node.rhs.type is not Type.SCALAR:
        left, right = evaluator.vector(node.lhs), evaluator.vector(node.rhs)
        return of_vectors(operator, left, right, matching_of(node.matching), is_bool=is_bool)
    if is_left_scalar:
        scalar, vector = evaluator.scalar(node.lhs), evaluator.vector(node.rhs)
    else:
        vector, scalar = evaluator.vector(node.lhs), evaluator.scalar(node.rhs)
    return of_vector_and_scalar(operator, vector, scalar, is_swapped=is_left_scalar, is_bool=is_bool)


def _binary_of_scalars(evaluator: Evaluator, node: Binary) -> float:
    return of_scalars(node.op, evaluator.scalar(node.lhs), evaluator.scalar(node.rhs))


_VECTOR_NODES: Final[Mapping[type, Callable[[Evaluator, Any], Vector]]] = {
    Selector: _selected,
    Aggregation: aggregate,
    Binary: _binary,
    Call: _called,
    Unary: _signed,
}
_SCALAR_NODES: Final[Mapping[type, Callable[[Evaluator, Any], float]]] = {
    Number: lambda _, node: node.value,
    Binary: _binary_of_scalars,
    Call: _called,
    Unary: lambda evaluator, node: evaluator.scalar(node.expr) * (-1 if node.op == "-" else 1),
}
