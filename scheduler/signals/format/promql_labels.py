"""Which labels the series of an expression may have, as far as the expression itself says it.

An upper bound: what is not among them no sample can bring, so that a signal that needs it can be refused at load.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import promql_parser as ast

_SELECTING: Final = ("topk", "bottomk", "limitk", "limit_ratio")
"""Aggregations whose result keeps the labels of the series they choose."""
_SETS: Final = ("and", "unless")
_WRITING: Final = ("label_replace", "label_join")
_ABSENT: Final = ("absent", "absent_over_time")


@dataclass(frozen=True, slots=True)
class Labels:
    """`names` alone, or where `is_open`, all but `names`."""

    names: frozenset[str] = frozenset()
    is_open: bool = False

    def has(self, name: str) -> bool:
        return (name in self.names) != self.is_open

    def __and__(self, other: Labels) -> Labels:
        if self.is_open and other.is_open:
            return Labels(self.names | other.names, is_open=True)
        closed, rest = (other, self) if self.is_open else (self, other)
        return Labels(frozenset(name for name in closed.names if rest.has(name)))

    def __or__(self, other: Labels) -> Labels:
        if not self.is_open and not other.is_open:
            return Labels(self.names | other.names)
        opened, rest = (self, other) if self.is_open else (other, self)
        return Labels(frozenset(name for name in opened.names if not rest.has(name)), is_open=True)

    def without(self, names: Iterable[str]) -> Labels:
        return self & Labels(frozenset(names), is_open=True)


ANY: Final = Labels(is_open=True)
NONE: Final = Labels()


def labels_of(node: Any) -> Labels:
    """Return the labels that the result of a syntax tree may have; ANY where it says nothing of them."""
    if isinstance(node, (ast.ParenExpr, ast.UnaryExpr, ast.SubqueryExpr)):
        return labels_of(node.expr)
    if isinstance(node, (ast.NumberLiteral, ast.StringLiteral)):
        return NONE
    if isinstance(node, ast.AggregateExpr):
        return _of_aggregation(node)
    if isinstance(node, ast.BinaryExpr):
        return _of_binary(node)
    return _of_call(node) if isinstance(node, ast.Call) else ANY


def _of_aggregation(node: Any) -> Labels:
    inner, op = labels_of(node.expr), str(node.op)
    if op in _SELECTING:
        return inner
    if node.modifier is None:
        kept = NONE
    elif str(node.modifier.type).endswith("Without"):
        kept = inner.without(node.modifier.labels)
    else:
        kept = inner & _named(node.modifier.labels)
    if op == "count_values" and isinstance(node.param, ast.StringLiteral):
        kept |= _named([node.param.val])
    return kept


def _of_binary(node: Any) -> Labels:
    left, right = labels_of(node.lhs), labels_of(node.rhs)
    op, modifier = str(node.op), node.modifier
    if op in _SETS:
        return left
    if op == "or":
        return left | right
    if _is_scalar(node.lhs) or _is_scalar(node.rhs):
        return right if _is_scalar(node.lhs) else left
    card = "" if modifier is None else str(modifier.card)
    extra = _named(() if modifier is None else modifier.group_labels or ())
    if card.endswith("ManyToOne"):
        return left | (extra & right)
    if card.endswith("OneToMany"):
        return right | (extra & left)
    matching = None if modifier is None else modifier.matching
    if matching is None:
        return left & right
    if str(matching.type).endswith("Include"):
        return left & right & _named(matching.labels)
    return left.without(matching.labels)


def _of_call(node: Any) -> Labels:
    name, args = node.func.name, list(node.args)
    if name == "info":
        return ANY
    if name in _ABSENT:
        selector = getattr(args[0], "vector_selector", args[0])
        matchers = selector.matchers.matchers if isinstance(selector, ast.VectorSelector) else ()
        return _named(matcher.name for matcher in matchers if str(matcher.op).endswith(".Equal"))
    series = [arg for arg, kind in zip(args, node.func.arg_types, strict=False) if kind in _SERIES]
    if not series or node.func.return_type == ast.ValueType.Scalar:
        return NONE
    labels = labels_of(series[0])
    if name in _WRITING and isinstance(args[1], ast.StringLiteral):
        return labels | _named([args[1].val])
    return labels.without(["le"]) if name == "histogram_quantile" else labels


_SERIES: Final = (ast.ValueType.Vector, ast.ValueType.Matrix)


def _is_scalar(node: Any) -> bool:
    while isinstance(node, (ast.ParenExpr, ast.UnaryExpr)):
        node = node.expr
    if isinstance(node, ast.BinaryExpr):
        return _is_scalar(node.lhs) and _is_scalar(node.rhs)
    return isinstance(node, ast.NumberLiteral) or (
        isinstance(node, ast.Call) and bool(node.func.return_type == ast.ValueType.Scalar)
    )


def _named(names: Iterable[str]) -> Labels:
    return Labels(frozenset(names))
