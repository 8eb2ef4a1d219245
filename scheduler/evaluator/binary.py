"""Operators between vectors and scalars: arithmetic, comparison, matching of series, and the set operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from scheduler.evaluator.values import (
    EMPTY,
    NAME,
    ExecutionError,
    Floats,
    LabelKey,
    Labels,
    Vector,
    label_key,
    label_text,
    only,
    unique_vector,
    with_label,
    without,
    without_name,
)
from scheduler.promql import nodes

_ARITHMETIC: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    # As in C: the sign is that of the dividend.
    "%": np.fmod,
    "^": np.power,
    "atan2": np.arctan2,
}
_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "==": np.equal,
    "!=": np.not_equal,
    ">": np.greater,
    "<": np.less,
    ">=": np.greater_equal,
    "<=": np.less_equal,
}
_SETS: Final = frozenset({"and", "or", "unless"})


@dataclass(frozen=True, slots=True)
class Matching:
    """By which labels the series of two sides belong together.

    on
        Whether `names` are the labels that must be equal, rather than those that need not.
    many
        The side that may have several series to one of the other: "", "left" or "right".
    included
        Labels that the result takes from the other side.
    """

    on: bool
    names: tuple[str, ...]
    many: str
    included: tuple[str, ...]

    def signature(self, labels: Labels) -> Labels:
        """Return the labels that must be equal."""
        return only(labels, self.names) if self.on else without(labels, frozenset({*self.names, NAME}))


def matching_of(written: nodes.Matching) -> Matching:
    return Matching(on=written.is_on, names=written.labels, many=written.many, included=written.included)


def of_scalars(operator: str, left: float, right: float) -> float:
    compute = _ARITHMETIC.get(operator) or _COMPARISONS[operator]
    return float(compute(np.float64(left), np.float64(right)))


def of_vector_and_scalar(operator: str, vector: Vector, scalar: float, *, is_swapped: bool, is_bool: bool) -> Vector:
    """Apply an operator to each value; `is_swapped` where the scalar stands on the left."""
    sides = (scalar, vector.values) if is_swapped else (vector.values, scalar)
    if operator in _ARITHMETIC:
        return unique_vector(map(without_name, vector.labels), _ARITHMETIC[operator](*sides))
    holds = _COMPARISONS[operator](*sides)
    if is_bool:
        return unique_vector(map(without_name, vector.labels), holds.astype(np.float64))
    rows = np.flatnonzero(holds)
    return unique_vector((vector.labels[row] for row in rows), vector.values[rows])


def of_vectors(operator: str, left: Vector, right: Vector, matching: Matching, *, is_bool: bool) -> Vector:
    """Apply an operator to the pairs of series that belong together.

    Raises
    ------
    ExecutionError
        Where a series has several partners and the expression does not allow that.
    """
    if operator in _SETS:
        return _of_sets(operator, left, right, matching)
    if not len(left) or not len(right):
        return EMPTY
    many, one = (right, left) if matching.many == "right" else (left, right)
    pairs = _pairs(many, one, matching)
    rows = np.array([pair[0] for pair in pairs], dtype=np.intp)
    partners = np.array([pair[1] for pair in pairs], dtype=np.intp)
    drops_name = is_bool or operator in _ARITHMETIC
    labels = [_result_labels(many.labels[i], one.labels[j], matching, drops_name) for i, j in pairs]
    _check_unique(labels, [matching.signature(many.labels[i]) for i, _ in pairs], matching)
    sides = (many.values[rows], one.values[partners])
    values, kept = _compute(operator, *(reversed(sides) if matching.many == "right" else sides), is_bool=is_bool)
    return unique_vector((label for label, is_kept in zip(labels, kept, strict=True) if is_kept), values[kept])


def _compute(operator: str, left: Floats, right: Floats, *, is_bool: bool) -> tuple[Floats, Any]:
    """Return the values, and which of them are kept."""
    everything = np.ones(len(left), dtype=np.bool_)
    if operator in _ARITHMETIC:
        return _ARITHMETIC[operator](left, right), everything
    holds = _COMPARISONS[operator](left, right)
    return (holds.astype(np.float64), everything) if is_bool else (left, holds)


def _pairs(many: Vector, one: Vector, matching: Matching) -> list[tuple[int, int]]:
    """Return the rows of both sides that belong together."""
    partners: dict[LabelKey, int] = {}
    for row, labels in enumerate(one.labels):
        signature = matching.signature(labels)
        before = partners.setdefault(label_key(signature), row)
        if before != row:
            side = "left" if matching.many == "right" else "right"
            raise ExecutionError(
                f"found duplicate series for the match group {label_text(signature)} on the {side} hand-side of the "
                f"operation: [{label_text(labels)}, {label_text(one.labels[before])}];many-to-many matching not "
                "allowed: matching labels must be unique on one side"
            )
    found = ((row, partners.get(label_key(matching.signature(labels)))) for row, labels in enumerate(many.labels))
    return [(row, partner) for row, partner in found if partner is not None]


def _result_labels(many: Labels, one: Labels, matching: Matching, drops_name: bool) -> Labels:
    labels = without_name(many) if drops_name else many
    if not matching.many:
        names = frozenset(matching.names)
        labels = only(labels, matching.names) if matching.on else without(labels, names)
    for name in matching.included:
        labels = with_label(labels, name, one.get(name, ""))
    return labels


def _check_unique(labels: list[Labels], signatures: list[Labels], matching: Matching) -> None:
    if not matching.many:
        if len({label_key(one) for one in signatures}) < len(signatures):
            what = "many-to-one matching must be explicit (group_left/group_right)"
            raise ExecutionError(f"multiple matches for labels: {what}")
        return
    seen = {(label_key(one), label_key(signature)) for one, signature in zip(labels, signatures, strict=True)}
    if len(seen) < len(labels):
        raise ExecutionError("multiple matches for labels: grouping labels must ensure unique matches")


def _of_sets(operator: str, left: Vector, right: Vector, matching: Matching) -> Vector:
    lefts = [label_key(matching.signature(labels)) for labels in left.labels]
    rights = [label_key(matching.signature(labels)) for labels in right.labels]
    if operator == "or":
        known = frozenset(lefts)
        rows = [row for row, key in enumerate(rights) if key not in known]
        labels = [*left.labels, *(right.labels[row] for row in rows)]
        return unique_vector(labels, np.concatenate([left.values, right.values[rows]]))
    wanted, present = operator == "and", frozenset(rights)
    rows = [row for row, key in enumerate(lefts) if (key in present) is wanted]
    return unique_vector((left.labels[row] for row in rows), left.values[rows])
