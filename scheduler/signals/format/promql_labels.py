"""Which labels the series of an expression may have, as far as the expression itself says it.

An upper bound: what is not among them no sample can bring, so that a signal that needs it can be refused at load.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from scheduler.promql.nodes import (
    Aggregation,
    Binary,
    Call,
    Node,
    Number,
    Paren,
    Range,
    Selector,
    String,
    Subquery,
    Type,
    Unary,
    unwrapped,
)

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


def labels_of(node: Node) -> Labels:
    """Return the labels that the result of a syntax tree may have; ANY where it says nothing of them."""
    if isinstance(node, (Paren, Unary, Subquery)):
        return labels_of(node.expr)
    if isinstance(node, (Number, String)):
        return NONE
    if isinstance(node, Aggregation):
        return _of_aggregation(node)
    if isinstance(node, Binary):
        return _of_binary(node)
    return _of_call(node) if isinstance(node, Call) else ANY


def _of_aggregation(node: Aggregation) -> Labels:
    inner = labels_of(node.expr)
    if node.op in _SELECTING:
        return inner
    kept = inner.without(node.grouping) if node.is_without else inner & _named(node.grouping)
    if node.op == "count_values" and isinstance(node.param, String):
        kept |= _named([node.param.value])
    return kept


def _of_binary(node: Binary) -> Labels:
    left, right = labels_of(node.lhs), labels_of(node.rhs)
    matching = node.matching
    if node.op in _SETS:
        return left
    if node.op == "or":
        return left | right
    if Type.SCALAR in (node.lhs.type, node.rhs.type):
        return right if node.lhs.type is Type.SCALAR else left
    extra = _named(matching.included)
    if matching.many == "left":
        return left | (extra & right)
    if matching.many == "right":
        return right | (extra & left)
    if not matching.is_written:
        return left & right
    return left & right & _named(matching.labels) if matching.is_on else left.without(matching.labels)


def _of_call(node: Call) -> Labels:
    name, args = node.function.name, node.args
    if name == "info":
        return ANY
    if name in _ABSENT:
        argument = unwrapped(args[0])
        selector = argument.selector if isinstance(argument, Range) else argument
        matchers = selector.matchers if isinstance(selector, Selector) else ()
        return _named(matcher.label for matcher in matchers if matcher.operator == "=")
    series = [arg for arg in args if arg.type in (Type.VECTOR, Type.MATRIX)]
    if not series or node.type is Type.SCALAR:
        return NONE
    labels = labels_of(series[0])
    if name in _WRITING and isinstance(args[1], String):
        return labels | _named([args[1].value])
    return labels.without(["le"]) if name == "histogram_quantile" else labels


def _named(names: Iterable[str]) -> Labels:
    return Labels(frozenset(names))
